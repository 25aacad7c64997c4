// Staging: payloads of private memory that this process copies into shared memory itself, so that the engine
// needs no system call to reach them and sending shares the work between two CPUs.
//
// The pool is a piece of the session's arena (ipc::AllocStagingRequest), asked of the engine when the first
// payload wants it and cut into granules; a block is a run of them. Who owns a block:
//
//   the poster   from take() until its request is published (or given up: then it goes back)
//   the engine   from then on; it may read the bytes as often as it sends them again
//   the poller   when the completion of that request, or of a later one, is polled: it gives the block back
//
// A QP that is reset or destroyed gives back all its blocks, and so do the flushes of a dead engine. Which
// block belongs to which request is kept in the send queue (work_queue.h), in private memory. The program
// sees nothing of this: the payload is what its memory held when it posted, which is all that it may count
// on. Requests that could tell the difference are not staged: fenced ones, whose bytes may still be on their
// way.
//
// Reads are not staged. Their bytes would reach the program's memory when it polls, after a fenced request
// behind them has been sent from there, or after a peer that such a request told of it has written there.
//
// The first free run is taken: a program with little outstanding stays in the same few blocks, which are in
// the caches.
//
// Any thread; the allocator's lock is held for a search of a few words. No system call but the first time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/ipc/control.h"
#include "engine/ipc/ring.h"
#include "provider/spin_lock.h"

namespace uib::provider {

class ControlChannel;

/// A run of granules; empty: none.
struct StagedBlock {
    std::uint16_t first = 0;
    std::uint16_t count = 0;

    explicit operator bool() const { return count != 0; }
};

class StagingPool {
  public:
    static constexpr std::uint32_t kGranule = 4096;
    static constexpr std::size_t kBytes = std::size_t{8} << 20;
    /// Longer payloads are left to the engine: they would fill the pool, and copying them would hold the
    /// posting thread for long.
    static constexpr std::uint32_t kMaxPayload = std::uint32_t{1} << 20;

    /// As long on machines with few CPUs if the queue is idle. There is then no work to share, and while this
    /// process copies, the engine finds nothing to do and yields, perhaps to a program that spins on its own
    /// memory: milliseconds pass before it runs again (waiting.h).
    static constexpr std::uint32_t kMaxIdlePayload = std::uint32_t{64} << 10;

    explicit StagingPool(ControlChannel& control) : control_(control) {}

    /// Room for `bytes` (1 to kMaxPayload), or an empty block: the pool is full, or the engine gave none.
    StagedBlock take(std::uint32_t bytes);
    void give_back(StagedBlock block);

    std::byte* memory(StagedBlock block) const { return memory_ + std::size_t{block.first} * kGranule; }
    /// What SendWqe::staging_offset says.
    static std::uint32_t offset(StagedBlock block) { return block.first * (kGranule / ipc::kStagingUnit); }
    /// Granules in use, for tests.
    std::uint32_t used();

  private:
    static constexpr std::uint32_t kGranules = kBytes / kGranule;
    static constexpr std::uint32_t kWordBits = 64;
    static_assert(kGranule % ipc::kStagingUnit == 0 && kGranules % kWordBits == 0 && kGranules <= 0xFFFF);

    bool ready();
    void ask();
    std::uint32_t find(std::uint32_t count) const;
    std::uint32_t next_in_state(std::uint32_t from, std::uint32_t limit, bool used) const;
    void mark(StagedBlock block, bool used);

    ControlChannel& control_;
    std::once_flag asked_;
    std::byte* memory_ = nullptr;  ///< stays null if the engine gave none
    SpinLock lock_;
    std::array<std::uint64_t, kGranules / kWordBits> used_{};  ///< a bit a granule
};

}  // namespace uib::provider
