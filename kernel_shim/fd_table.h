// The descriptors that stand for devices of the engine, by number, with what the provider has registered for
// them.
//
// An entry is one atomic word: device number, place and generation of a registration. The first 1024
// descriptors have theirs in an array, higher ones in pages that are made when they are needed. No lock and
// no allocation from the heap, so hooks can use the table in signal handlers and a child after fork finds it
// whole.
//
// The table can be wrong in both directions, and its users heal it (device.h): a descriptor can come without
// a hook having seen it (SCM_RIGHTS, exec), and it can go so (a close inside the C library).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uib::shim {

/// 0: not a device of ours. Else device number + 1 in bits 0-15, place of the registration + 1 (0: none) in
/// bits 16-31, the registration's generation in bits 32-63.
using FdWord = std::uint64_t;

inline constexpr std::size_t kDirectFds = 1024;
extern constinit std::atomic<FdWord> direct_fds[kDirectFds];

FdWord find_paged(int fd);

/// The entry of a descriptor.
inline FdWord find_fd(int fd) {
    if (static_cast<unsigned>(fd) < kDirectFds) [[likely]]
        return direct_fds[fd].load(std::memory_order_relaxed);
    return find_paged(fd);
}

inline unsigned device_of(FdWord word) {
    return static_cast<unsigned>(word & 0xffff) - 1;
}

/// Enters a descriptor without a registration.
void enter_fd(int fd, unsigned device);

// These two do nothing in a child of vfork (or of a clone that shares memory), whose descriptors are not
// those of the table.
void forget_fd(int fd);
void copy_fd(int from, int to);

/// Calls `visit` with each descriptor from first to last that has an entry.
void for_each_fd(unsigned first, unsigned last, void (*visit)(int fd));

/// Tells children of fork, which have a table of their own, from those of vfork, which share their parent's.
void watch_forks();

struct Callbacks {
    int (*on_write)(void* cookie, const void* buffer, std::size_t length) = nullptr;
    int (*on_ioctl)(void* cookie, unsigned long request, void* argument) = nullptr;
    void* cookie = nullptr;
};

/// What is registered for the descriptor; null pointers if nothing is.
Callbacks callbacks_of(int fd);
void register_callbacks(int fd, const Callbacks& callbacks);
void unregister_callbacks(int fd);

}  // namespace uib::shim
