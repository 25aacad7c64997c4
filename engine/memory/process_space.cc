#include "engine/memory/process_space.h"

#include <poll.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include "engine/memory/range_cursor.h"

namespace uib::memory {
namespace {

constexpr std::uint64_t kLookEveryNs = 1'000'000;
/// The kernel moves at most 2 GiB less a page a call.
constexpr std::uint64_t kMaxCallBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxVectors = IOV_MAX;

std::uint64_t now_ns() {
    timespec time = {};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void* as_pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(address);
}

/// One side of a call. What runs on from the piece before becomes one iovec with it, so each side has as few
/// as it can, however differently the two are cut.
class Vector {
  public:
    void clear() { count_ = 0; }
    [[nodiscard]] bool full() const { return count_ == pieces_.size(); }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] const iovec* data() const { return pieces_.data(); }

    void add(void* at, std::uint64_t length) {
        if (count_ != 0) {
            iovec& last = pieces_[count_ - 1];
            if (static_cast<char*>(last.iov_base) + last.iov_len == at) {
                last.iov_len += length;
                return;
            }
        }
        pieces_[count_++] = {at, length};
    }

  private:
    std::array<iovec, kMaxVectors> pieces_;
    std::size_t count_ = 0;
};

/// Kept, for a call must not initialise 32 KiB of them.
thread_local Vector local_side;
thread_local Vector remote_side;

}  // namespace

ProcessSpace::ProcessSpace(pid_t pid, OwnedFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}

ProcessSpace::ProcessSpace(std::unique_ptr<HelperChannel> helper) : helper_(std::move(helper)) {}

bool ProcessSpace::can_reach(pid_t pid, std::uint64_t probe_address, std::uint64_t probe_value) {
    std::uint64_t word = 0;
    const iovec local = {&word, sizeof(word)};
    const iovec first = {as_pointer(probe_address), sizeof(word)};
    if (process_vm_readv(pid, &local, 1, &first, 1, 0) != static_cast<ssize_t>(sizeof(word))) return false;
    if (word != probe_value) return false;
    word = ~probe_value;
    const iovec second = {as_pointer(probe_address + sizeof(word)), sizeof(word)};
    return process_vm_writev(pid, &local, 1, &second, 1, 0) == static_cast<ssize_t>(sizeof(word));
}

bool ProcessSpace::alive() {
    if (dead()) return false;
    const std::uint64_t now = now_ns();
    if (looked_at_ns_ != 0 && now - looked_at_ns_ < kLookEveryNs) return true;
    pollfd process = {pidfd_.get(), POLLIN, 0};
    int result = 0;
    do {
        result = poll(&process, 1, 0);
    } while (result < 0 && errno == EINTR);
    if (result != 0) {  // it has ended, or there is no telling
        mark_dead();
        return false;
    }
    looked_at_ns_ = now;
    return true;
}

bool ProcessSpace::read(std::span<const RemoteRange> from, std::byte* to) {
    if (!helper_) return read_remote(from, to);
    return !dead() && helper_->read(from, to);
}

bool ProcessSpace::write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) {
    if (!helper_) return write_remote(to, from);
    return !dead() && helper_->write(to, from);
}

bool ProcessSpace::judge(ssize_t moved, std::uint64_t expected) {
    if (moved < 0 && errno == ESRCH) mark_dead();
    return moved >= 0 && static_cast<std::uint64_t>(moved) == expected;
}

bool ProcessSpace::read_remote(std::span<const RemoteRange> from, std::byte* to) {
    RangeCursor<RemoteRange> source(from);
    while (!source.done()) {
        if (!alive()) return false;
        std::uint64_t bytes = 0;
        remote_side.clear();
        while (!source.done() && !remote_side.full() && bytes < kMaxCallBytes) {
            const std::uint64_t part = std::min(source.left(), kMaxCallBytes - bytes);
            remote_side.add(as_pointer(source.range().address + source.used()), part);
            bytes += part;
            source.advance(part);
        }
        const iovec local = {to, bytes};
        ssize_t moved = 0;
        do {
            moved = process_vm_readv(pid_, &local, 1, remote_side.data(), remote_side.count(), 0);
        } while (moved < 0 && errno == EINTR);
        if (!judge(moved, bytes)) return false;
        to += bytes;
    }
    return true;
}

bool ProcessSpace::write_remote(std::span<const RemoteRange> to, std::span<const ConstBytes> from) {
    RangeCursor<RemoteRange> target(to);
    RangeCursor<ConstBytes> source(from);
    while (!target.done()) {
        if (!alive()) return false;
        std::uint64_t bytes = 0;
        remote_side.clear();
        local_side.clear();
        while (!target.done() && !remote_side.full() && !local_side.full() && bytes < kMaxCallBytes) {
            if (source.done()) return false;
            const std::uint64_t part =
                std::min<std::uint64_t>({target.left(), source.left(), kMaxCallBytes - bytes});
            remote_side.add(as_pointer(target.range().address + target.used()), part);
            local_side.add(const_cast<std::byte*>(source.range().data + source.used()), part);
            bytes += part;
            target.advance(part);
            source.advance(part);
        }
        ssize_t moved = 0;
        do {
            moved = process_vm_writev(pid_, local_side.data(), local_side.count(), remote_side.data(),
                                      remote_side.count(), 0);
        } while (moved < 0 && errno == EINTR);
        if (!judge(moved, bytes)) return false;
    }
    return true;
}

}  // namespace uib::memory
