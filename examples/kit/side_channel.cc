#include "examples/kit/side_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "examples/kit/verbs.h"

namespace uib::kit {

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
