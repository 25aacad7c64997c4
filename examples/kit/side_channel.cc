#include "examples/kit/side_channel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "examples/kit/verbs.h"

namespace uib::kit {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList look_up(const char* host, const std::string& port) {
    addrinfo hints{};
    hints.ai_family = host == nullptr ? AF_INET6 : AF_UNSPEC;  // which takes IPv4 callers, too
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = host == nullptr ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(host, port.c_str(), &hints, &found); error != 0)
        throw Error("port " + port + ": " + ::gai_strerror(error));
    return {found, &::freeaddrinfo};
}

/// Closes the descriptor where an exception passes.
struct Socket {
    explicit Socket(int fd) : descriptor(fd) {
        if (fd < 0) fail("socket", errno);
    }
    ~Socket() {
        if (descriptor >= 0) ::close(descriptor);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    int descriptor;
};

/// Batches are announced by small messages that must not wait for one another.
void send_at_once(int descriptor) {
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

SideChannel SideChannel::accept_one(const std::string& port, int limit_seconds) {
    const AddressList own = look_up(nullptr, port);
    const Socket listener(::socket(own->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listener.descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const timeval limit{limit_seconds, 0};
    ::setsockopt(listener.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::bind(listener.descriptor, own->ai_addr, own->ai_addrlen) != 0) fail("bind", errno);
    if (::listen(listener.descriptor, 1) != 0) fail("listen", errno);
    const int peer = ::accept4(listener.descriptor, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) fail("nobody connects", errno);
    send_at_once(peer);
    return {peer, limit_seconds};
}

SideChannel SideChannel::connect_to(const std::string& where, int limit_seconds) {
    const std::size_t colon = where.rfind(':');
    if (colon == std::string::npos) throw Error("no port in " + where);
    std::string host = where.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    const AddressList peer = look_up(host.c_str(), where.substr(colon + 1));
    Socket socket(::socket(peer->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.descriptor, peer->ai_addr, peer->ai_addrlen) != 0) fail("connect", errno);
    send_at_once(socket.descriptor);
    return {std::exchange(socket.descriptor, -1), limit_seconds};
}

SideChannel::SideChannel(int descriptor, int limit_seconds) : descriptor_(descriptor) {
    const timeval limit{limit_seconds, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

SideChannel::~SideChannel() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

std::pair<SideChannel, SideChannel> SideChannel::make_pair(int limit_seconds) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair", errno);
    return {SideChannel(ends[0], limit_seconds), SideChannel(ends[1], limit_seconds)};
}

void SideChannel::send_bytes(const void* data, std::size_t bytes) {
    const char* next = static_cast<const char*>(data);
    while (bytes != 0) {
        const ssize_t sent = ::send(descriptor_, next, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) fail("the other side is gone", errno);
        next += sent;
        bytes -= static_cast<std::size_t>(sent);
    }
}

void SideChannel::receive_bytes(void* data, std::size_t bytes) {
    char* next = static_cast<char*>(data);
    while (bytes != 0) {
        const ssize_t got = ::recv(descriptor_, next, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) throw Error("the other side is gone");
        if (got < 0) fail("the other side says nothing", errno);
        next += got;
        bytes -= static_cast<std::size_t>(got);
    }
}

}  // namespace uib::kit
