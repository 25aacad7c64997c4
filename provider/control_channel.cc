#include "provider/control_channel.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "engine/ipc/socket_path.h"

namespace uib::provider {
namespace {

constexpr int kLooksBeforeSleep = 200;

using FdSpace = std::array<char, CMSG_SPACE(ipc::kMaxMessageFds * sizeof(int))>;

std::vector<UniqueFd> take_fds(msghdr& message) {
    std::vector<UniqueFd> fds;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            fds.emplace_back(fd);
        }
    }
    return fds;
}

}  // namespace

int ControlChannel::exchange(ipc::Operation operation, std::span<const std::byte> request,
                             std::span<std::byte> reply, std::span<const int> fds,
                             std::vector<UniqueFd>* reply_fds) {
    if (const int error = admit(); error != 0) return error;
    const std::lock_guard lock(mutex_);
    if (liveness() == Liveness::kDead) return EIO;
    if (!send(operation, request, fds)) return break_down();
    return receive(operation, reply, reply_fds);
}

int ControlChannel::admit() {
    if (alive() || opener_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return 0;
    const std::lock_guard lock(opening_mutex_);
    if (liveness() != Liveness::kForeign) return alive() ? 0 : EIO;
    opener_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const int error = open_session_();
    opener_.store({}, std::memory_order_relaxed);
    return error;
}

void ControlChannel::before_fork() {
    opening_mutex_.lock();
    mutex_.lock();
    chunks_mutex_.lock();
}

void ControlChannel::after_fork_in_parent() {
    chunks_mutex_.unlock();
    mutex_.unlock();
    opening_mutex_.unlock();
}

void ControlChannel::after_fork_in_child(std::function<int()> open_session) {
    open_session_ = std::move(open_session);
    if (alive()) end_foreign(Liveness::kForeign);
    after_fork_in_parent();
}

void ControlChannel::start_over(int fd) {
    const std::lock_guard lock(chunks_mutex_);
    std::move(chunks_.begin(), chunks_.end(), std::back_inserter(inherited_chunks_));
    chunks_.clear();
    fd_ = fd;
    tag_ = 0;
}

// The monitor thread tells the program; shutting the socket down makes sure that it wakes also where the
// engine is there but speaks nonsense.
int ControlChannel::break_down() {
    declare_dead();
    ::shutdown(fd_, SHUT_RDWR);
    return EIO;
}

void ControlChannel::declare_dead() {
    Liveness expected = Liveness::kAlive;
    liveness_.compare_exchange_strong(expected, Liveness::kDead, std::memory_order_acq_rel);
}

bool ControlChannel::send(ipc::Operation operation, std::span<const std::byte> request,
                          std::span<const int> fds) {
    ipc::RequestHeader header{};
    header.magic = ipc::kProtocolMagic;
    header.version = ipc::kProtocolVersion;
    header.operation = static_cast<std::uint16_t>(operation);
    header.length = static_cast<std::uint32_t>(sizeof header + request.size());
    header.tag = ++tag_;
    std::array<iovec, 2> parts{
        {{&header, sizeof header}, {const_cast<std::byte*>(request.data()), request.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = request.empty() ? 1 : 2;
    alignas(cmsghdr) FdSpace space{};
    if (!fds.empty()) {
        message.msg_control = space.data();
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
    }
    while (true) {
        const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
        if (sent >= 0) return static_cast<std::size_t>(sent) == header.length;
        if (errno != EINTR) return false;
    }
}

int ControlChannel::receive(ipc::Operation operation, std::span<std::byte> reply,
                            std::vector<UniqueFd>* reply_fds) {
    std::array<std::byte, ipc::kMaxMessageBytes> buffer;
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) FdSpace space{};
    msghdr message{};
    ssize_t got = 0;
    // The engine answers within microseconds, sooner than a sleeper would be woken: look a while before
    // sleeping.
    int looks = kLooksBeforeSleep;
    do {
        message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space.data();
        message.msg_controllen = space.size();
        got = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC | (looks > 0 ? MSG_DONTWAIT : 0));
        if (got < 0 && errno == EAGAIN && looks > 0) {
            --looks;
            ::sched_yield();
        } else if (got < 0 && errno == EAGAIN) {
            pollfd readable{fd_, POLLIN, 0};
            ::poll(&readable, 1, -1);
        }
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    std::vector<UniqueFd> fds;
    if (got > 0) fds = take_fds(message);
    ipc::ReplyHeader header{};
    if (got < static_cast<ssize_t>(sizeof header)) return break_down();
    std::memcpy(&header, buffer.data(), sizeof header);
    if (header.magic != ipc::kProtocolMagic || header.version != ipc::kProtocolVersion ||
        header.operation != static_cast<std::uint16_t>(operation) || header.tag != tag_ ||
        header.length != static_cast<std::uint32_t>(got) || header.new_chunks > fds.size()) {
        return break_down();
    }
    if (!adopt_chunks(fds, header.new_chunks)) return break_down();
    if (header.status != 0) return header.status;
    if (!reply.empty()) {
        if (header.length != sizeof header + reply.size()) return break_down();
        std::memcpy(reply.data(), buffer.data() + sizeof header, reply.size());
    }
    if (reply_fds != nullptr) *reply_fds = std::move(fds);
    return 0;
}

bool ControlChannel::adopt_chunks(std::vector<UniqueFd>& fds, std::uint32_t count) {
    const std::lock_guard lock(chunks_mutex_);
    for (std::uint32_t i = 0; i < count; ++i) {
        Mapping chunk;
        if (!chunk.map(fds[i].get(), PROT_READ | PROT_WRITE)) return false;
        chunks_.push_back(std::move(chunk));
    }
    fds.erase(fds.begin(), fds.begin() + count);
    return true;
}

std::byte* ControlChannel::resolve(const ipc::Location& where, std::size_t bytes) {
    const std::lock_guard lock(chunks_mutex_);
    if (where.chunk >= chunks_.size()) return nullptr;
    const Mapping& chunk = chunks_[where.chunk];
    if (where.offset > chunk.size() || bytes > chunk.size() - where.offset) return nullptr;
    return chunk.base() + where.offset;
}

UniqueFd connect_to_engine() {
    const std::string path = ipc::socket_path();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return {};
    }
    std::copy(path.begin(), path.end(), address.sun_path);
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!fd) return {};
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int why = errno;
        fd.reset();
        errno = why;
    }
    return fd;
}

}  // namespace uib::provider
