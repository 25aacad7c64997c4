#include "engine/memory/helper_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "engine/memory/range_cursor.h"

namespace uib::memory {

struct HelperChannel::Message {
    ipc::HelperRequest head;
    ipc::HelperPiece pieces[ipc::kHelperMaxPieces];
};

std::unique_ptr<HelperChannel> HelperChannel::make(OwnedFd socket, std::size_t staging_bytes,
                                                   std::chrono::milliseconds deadline) {
    OwnedFd staging(memfd_create("uib-helper", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!staging.valid() || ftruncate(staging.get(), static_cast<off_t>(staging_bytes)) != 0 ||
        fcntl(staging.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return nullptr;
    }
    void* const at = mmap(nullptr, staging_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, staging.get(), 0);
    if (at == MAP_FAILED) return nullptr;
    return std::unique_ptr<HelperChannel>(new HelperChannel(
        std::move(socket), std::move(staging), static_cast<std::byte*>(at), staging_bytes, deadline));
}

HelperChannel::HelperChannel(OwnedFd socket, OwnedFd staging, std::byte* base, std::size_t size,
                             std::chrono::milliseconds deadline)
    : socket_(std::move(socket)),
      staging_(std::move(staging)),
      base_(base),
      size_(size),
      deadline_(deadline) {}

HelperChannel::~HelperChannel() {
    munmap(base_, size_);
}

bool HelperChannel::give_up() {
    failed_.store(true, std::memory_order_relaxed);
    return false;
}

bool HelperChannel::wait_readable() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + deadline_;
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
        if (left.count() < 0) return false;
        pollfd waiting = {socket_.get(), POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
        if (ready > 0) return (waiting.revents & POLLIN) != 0;
        if (ready == 0 && left.count() == 0) return false;
        if (ready < 0 && errno != EINTR) return false;
    }
}

bool HelperChannel::exchange(Message& message, std::uint16_t count, bool to_client) {
    message.head = {++tag_, static_cast<std::uint16_t>(to_client ? 1 : 0), count};
    const std::size_t bytes = sizeof(message.head) + count * sizeof(message.pieces[0]);
    // One request is outstanding at most, so the socket has room unless the client plays tricks.
    if (send(socket_.get(), &message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
        return give_up();
    }
    if (!wait_readable()) return give_up();
    ipc::HelperReply reply = {};
    const ssize_t got = recv(socket_.get(), &reply, sizeof(reply), MSG_DONTWAIT | MSG_TRUNC);
    if (got != static_cast<ssize_t>(sizeof(reply)) || reply.tag != tag_) return give_up();
    return reply.status == 0;
}

bool HelperChannel::read(std::span<const RemoteRange> from, std::byte* to) {
    RangeCursor<RemoteRange> source(from);
    Message message = {};
    while (!source.done()) {
        if (failed()) return false;
        std::uint16_t count = 0;
        std::size_t filled = 0;
        while (!source.done() && count < ipc::kHelperMaxPieces && filled < size_) {
            const std::uint64_t part = std::min<std::uint64_t>(source.left(), size_ - filled);
            message.pieces[count++] = {source.range().address + source.used(), filled, part};
            filled += part;
            source.advance(part);
        }
        if (!exchange(message, count, false)) return false;
        std::memcpy(to, base_, filled);
        to += filled;
    }
    return true;
}

bool HelperChannel::write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) {
    RangeCursor<RemoteRange> target(to);
    RangeCursor<ConstBytes> source(from);
    Message message = {};
    while (!target.done()) {
        if (failed()) return false;
        std::uint16_t count = 0;
        std::size_t filled = 0;
        while (!target.done() && count < ipc::kHelperMaxPieces && filled < size_) {
            const std::uint64_t part = std::min<std::uint64_t>(target.left(), size_ - filled);
            message.pieces[count++] = {target.range().address + target.used(), filled, part};
            for (std::uint64_t copied = 0; copied < part;) {
                if (source.done()) return false;
                const std::uint64_t step = std::min<std::uint64_t>(part - copied, source.left());
                std::memcpy(base_ + filled + copied, source.range().data + source.used(), step);
                source.advance(step);
                copied += step;
            }
            filled += part;
            target.advance(part);
        }
        if (!exchange(message, count, true)) return false;
    }
    return true;
}

}  // namespace uib::memory
