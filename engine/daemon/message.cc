#include "engine/daemon/message.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace uib::daemon {

namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * 64);

void take_fds(msghdr& header, Message& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            message.fds.emplace_back(fd);
        }
    }
}

}  // namespace

Received receive(int socket, Message& message, std::string& why) {
    message.fds.clear();
    iovec data{message.bytes.data(), message.bytes.size()};
    alignas(cmsghdr) std::byte control[kControlBytes];
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t length = -1;
    do {
        length = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        if (errno == EAGAIN) return Received::kNothing;
        why = std::string("receiving: ") + std::strerror(errno);
        return errno == ECONNRESET ? Received::kClosed : Received::kBroken;
    }
    take_fds(header, message);
    message.length = static_cast<std::size_t>(length);
    if (length == 0 && message.fds.empty()) return Received::kClosed;
    if ((header.msg_flags & MSG_TRUNC) != 0)
        why = "message of more than " + std::to_string(ipc::kMaxMessageBytes) + " bytes";
    else if ((header.msg_flags & MSG_CTRUNC) != 0 || message.fds.size() > ipc::kMaxMessageFds)
        why = "message with more than " + std::to_string(ipc::kMaxMessageFds) + " descriptors";
    else
        return Received::kMessage;
    return Received::kBroken;
}

bool send(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
    iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * ipc::kMaxMessageFds)] = {};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
    }
    ssize_t sent = -1;
    do {
        sent = ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace uib::daemon
