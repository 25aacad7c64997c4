#include "engine/cli/engine_client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/cli/environment.h"

namespace uib::cli {
namespace {

constexpr time_t kPatienceSeconds = 5;

ipc::UniqueFd connect_to(const std::string& socket_path) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (socket_path.size() >= sizeof name.sun_path)
        throw Failure("the socket's path is too long: " + socket_path);
    socket_path.copy(name.sun_path, socket_path.size());
    ipc::UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
        setsockopt(fd.get(), SOL_SOCKET, option, &patience, sizeof patience);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return fd;
    const std::string place = "no engine answers at " + socket_path;
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
        throw Failure(place + " (start one with `uibd`, or use `uib run -- COMMAND`)");
    throw Failure(place + ": " + std::strerror(errno));
}

std::vector<ipc::UniqueFd> take_descriptors(msghdr& message) {
    std::vector<ipc::UniqueFd> descriptors;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            descriptors.emplace_back(fd);
        }
    }
    return descriptors;
}

bool send_message(int connection, std::vector<char>& message, std::span<const int> descriptors) {
    iovec vector{message.data(), message.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(ipc::kMaxMessageFds * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
    }
    return sendmsg(connection, &header, MSG_NOSIGNAL) >= 0;
}

}  // namespace

EngineClient::EngineClient(const std::string& socket) : socket_(socket), connection_(connect_to(socket)) {
    ipc::HelloRequest hello{};
    hello.flags = ipc::kHelloCommand;
    call(ipc::Operation::kHello, &hello, sizeof hello);
}

EngineClient::Reply EngineClient::call(ipc::Operation operation, const void* body, std::size_t length,
                                       std::span<const int> descriptors) {
    ipc::RequestHeader header{};
    header.magic = ipc::kProtocolMagic;
    header.version = ipc::kProtocolVersion;
    header.operation = static_cast<std::uint16_t>(operation);
    header.length = static_cast<std::uint32_t>(sizeof header + length);
    header.tag = ++tag_;
    std::vector<char> message(sizeof header + length);
    std::memcpy(message.data(), &header, sizeof header);
    if (length != 0) std::memcpy(message.data() + sizeof header, body, length);
    if (!send_message(connection_.get(), message, descriptors))
        throw Failure("the engine at " + socket_ + " does not listen: " + std::strerror(errno));
    return receive(operation);
}

EngineClient::Reply EngineClient::receive(ipc::Operation operation) {
    std::vector<char> message(ipc::kMaxMessageBytes);
    alignas(cmsghdr) char control[CMSG_SPACE(ipc::kMaxMessageFds * sizeof(int))];
    iovec vector{message.data(), message.size()};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t size;
    do size = recvmsg(connection_.get(), &header, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size < 0) throw Failure("the engine at " + socket_ + " does not answer: " + std::strerror(errno));
    Reply reply;
    reply.descriptors = take_descriptors(header);
    if (size == 0) throw Failure("the engine at " + socket_ + " closed the connection; its log says why");

    ipc::ReplyHeader head{};
    if (static_cast<std::size_t>(size) >= sizeof head) std::memcpy(&head, message.data(), sizeof head);
    if (head.magic != ipc::kProtocolMagic || head.version != ipc::kProtocolVersion || head.tag != tag_ ||
        head.operation != static_cast<std::uint16_t>(operation) ||
        head.length != static_cast<std::size_t>(size))
        throw Failure("what answers at " + socket_ + " is no engine of this version (" UIB_VERSION ")");
    if (head.status != 0)
        throw Refusal("the engine refuses: " + std::string(std::strerror(head.status)), head.status);
    reply.body.assign(message.begin() + sizeof head, message.begin() + size);
    return reply;
}

std::string EngineClient::status() {
    return call_for_text(ipc::Operation::kStatus);
}

std::string EngineClient::faults() {
    return call_for_text(ipc::Operation::kListFaults);
}

void EngineClient::start_capture(const ipc::StartCaptureRequest& request, int file, int ended) {
    const std::array<int, 2> descriptors{file, ended};
    call(ipc::Operation::kStartCapture, &request, sizeof request, descriptors);
}

ipc::StopCaptureReply EngineClient::stop_capture() {
    const Reply reply = call(ipc::Operation::kStopCapture, nullptr, 0);
    ipc::StopCaptureReply body{};
    if (reply.body.size() != sizeof body) throw Failure("the engine's numbers of the capture cannot be read");
    std::memcpy(&body, reply.body.data(), sizeof body);
    return body;
}

std::uint32_t EngineClient::add_fault(const ipc::AddFaultRequest& request) {
    const Reply reply = call(ipc::Operation::kAddFault, &request, sizeof request);
    ipc::HandleBody body{};
    if (reply.body.size() != sizeof body) throw Failure("the engine's answer to a rule cannot be read");
    std::memcpy(&body, reply.body.data(), sizeof body);
    return body.handle;
}

void EngineClient::remove_fault(std::uint32_t id) {
    const ipc::HandleBody body{id, 0};
    call(ipc::Operation::kRemoveFault, &body, sizeof body);
}

std::string EngineClient::call_for_text(ipc::Operation operation) {
    const Reply reply = call(operation, nullptr, 0);
    ipc::StatusReply body{};
    struct stat file {};
    if (reply.body.size() != sizeof body || reply.descriptors.size() != 1 ||
        fstat(reply.descriptors[0].get(), &file) != 0)
        throw Failure("the engine's report cannot be read");
    std::memcpy(&body, reply.body.data(), sizeof body);
    if (body.bytes > static_cast<std::uint64_t>(file.st_size))
        throw Failure("the engine's report is cut short");
    std::string text(body.bytes, '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = pread(reply.descriptors[0].get(), text.data() + done, text.size() - done,
                                    static_cast<off_t>(done));
        if (count <= 0) throw Failure("the engine's report cannot be read");
        done += static_cast<std::size_t>(count);
    }
    return text;
}

bool engine_answers(const std::string& socket) {
    try {
        const EngineClient client(socket);
        return true;
    } catch (const Failure&) {
        return false;
    }
}

}  // namespace uib::cli
