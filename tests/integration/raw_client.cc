#include "tests/integration/raw_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace uib::test {

namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

UniqueFd connect_to(const std::string& path) {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) fail("socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throw std::invalid_argument("socket path is too long");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail("connect");
    const timeval limit{10, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return socket;
}

void send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * ipc::kMaxMessageFds)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
        if (errno == EPIPE || errno == ECONNRESET) throw Closed("the engine closed the connection");
        fail("sendmsg");
    }
}

std::size_t receive_message(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>& descriptors) {
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 64)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) throw Closed("the engine closed the connection");
    if (got < 0) fail("the engine does not answer");
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
            descriptors.emplace_back(number);
        }
    }
    return static_cast<std::size_t>(got);
}

}  // namespace

Refused::Refused(int refusal) : std::runtime_error(std::strerror(refusal)), number(refusal) {}

RawClient::RawClient(const std::string& socket_path, const std::string& device)
    : socket_(connect_to(socket_path)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) fail("pipe2");
    events_read_ = UniqueFd(ends[0]);
    events_write_ = UniqueFd(ends[1]);
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
    helper_own_ = UniqueFd(ends[0]);
    helper_engine_ = UniqueFd(ends[1]);
    ipc::HelloRequest hello{};
    device.copy(hello.device, sizeof hello.device - 1);
    hello.probe_address = reinterpret_cast<std::uintptr_t>(probe_);
    hello.probe_value = probe_[0];
    const int descriptors[] = {socket_.get(), events_write_.get(), helper_engine_.get()};
    const auto reply = call<ipc::HelloReply>(ipc::Operation::kHello, hello, descriptors);
    doorbells_ = reply.doorbells;
    if (last_descriptors_.size() < 2) throw std::runtime_error("the hello's reply lacks descriptors");
    wake_ = std::move(last_descriptors_[1]);
}

RawClient::~RawClient() {
    for (const auto& chunk : chunks_) ::munmap(chunk.data(), chunk.size());
}

void RawClient::take_chunk(UniqueFd descriptor) {
    struct stat info {};
    if (::fstat(descriptor.get(), &info) != 0) fail("fstat of a chunk");
    const auto bytes = static_cast<std::size_t>(info.st_size);
    void* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
    if (mapping == MAP_FAILED) fail("mmap of a chunk");
    chunks_.emplace_back(static_cast<std::byte*>(mapping), bytes);
}

void RawClient::exchange(ipc::Operation operation, std::span<const std::byte> body,
                         std::span<std::byte> reply, std::span<const int> descriptors) {
    std::vector<std::byte> message(sizeof(ipc::RequestHeader) + body.size());
    const ipc::RequestHeader request{ipc::kProtocolMagic, ipc::kProtocolVersion,
                                     static_cast<std::uint16_t>(operation),
                                     static_cast<std::uint32_t>(message.size()), ++tag_};
    std::memcpy(message.data(), &request, sizeof request);
    std::memcpy(message.data() + sizeof request, body.data(), body.size());
    send_message(socket_.get(), message, descriptors);
    std::vector<std::byte> answer(ipc::kMaxMessageBytes);
    last_descriptors_.clear();
    const std::size_t got = receive_message(socket_.get(), answer, last_descriptors_);
    ipc::ReplyHeader header{};
    if (got < sizeof header) throw std::runtime_error("a reply that is shorter than its header");
    std::memcpy(&header, answer.data(), sizeof header);
    if (header.status != 0) throw Refused(header.status);
    if (header.tag != tag_ || got != sizeof header + reply.size())
        throw std::runtime_error("a reply of another size or tag");
    std::memcpy(reply.data(), answer.data() + sizeof header, reply.size());
    for (std::uint32_t i = 0; i < header.new_chunks; ++i) take_chunk(std::move(last_descriptors_.at(i)));
    last_descriptors_.erase(last_descriptors_.begin(), last_descriptors_.begin() + header.new_chunks);
}

bool RawClient::closes() const {
    pollfd closed{socket_.get(), 0, 0};
    return ::poll(&closed, 1, 10'000) == 1 && (closed.revents & POLLHUP) != 0;
}

void RawClient::wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace uib::test
