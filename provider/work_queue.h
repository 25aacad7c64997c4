// The client's side of the send, receive and shared receive rings (engine/ipc/ring.h): which slots are free,
// and what the program still has outstanding.
//
//   SendQueue           posted in order; a polled completion frees its own slot and all older ones, and gives
//                       their staged payloads back
//   ReceiveQueue        posted and completed in order; each polled completion frees the oldest slot
//   SharedReceiveQueue  slots are taken from a free list and come back in any order
//
// Posting needs the queue's lock (the owner's SpinLock); freeing is done by whoever polls and, for send and
// receive queues, needs no lock: `freed` is written by the poller (under its CQ's lock) and read by the
// poster.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ipc/ring.h"
#include "provider/staging.h"

namespace uib::provider {

/// The ring's memory.
struct RingMemory {
    ipc::QueueControl* control = nullptr;
    std::byte* slots = nullptr;
    std::uint32_t entries = 0;  ///< a power of two, or 0: no ring
    std::uint32_t stride = 0;
    std::uint32_t max_sge = 0;
    std::uint32_t max_inline = 0;

    std::byte* slot(std::uint32_t index) const {
        return slots + static_cast<std::size_t>(index & (entries - 1)) * stride;
    }
};

/// The in-order rings.
class OrderedQueue {
  public:
    void attach(const RingMemory& memory) {
        memory_ = memory;
        producer_ = 0;
        freed_.store(0, std::memory_order_relaxed);
    }
    const RingMemory& memory() const { return memory_; }

    /// True if `ahead` requests not yet published and one more fit.
    bool has_room(std::uint32_t ahead = 0) const { return outstanding() + ahead < memory_.entries; }
    std::uint32_t outstanding() const { return producer_ - freed_.load(std::memory_order_acquire); }
    std::uint32_t producer() const { return producer_; }
    std::uint32_t freed() const { return freed_.load(std::memory_order_acquire); }

    /// Makes `count` more requests visible. True when the doorbell must be rung.
    bool publish(std::uint32_t count);

    /// Both sides start over, after the QP went to RESET.
    void restart() {
        producer_ = 0;
        freed_.store(0, std::memory_order_release);
        if (memory_.control != nullptr) memory_.control->producer.store(0, std::memory_order_seq_cst);
    }

  protected:
    RingMemory memory_;
    std::uint32_t producer_ = 0;
    std::atomic<std::uint32_t> freed_{0};
    // Of send queues; here because Qp must stay of standard layout.
    StagingPool* staging_ = nullptr;
    std::vector<StagedBlock> blocks_;  ///< each slot's staged payload
};

class SendQueue : public OrderedQueue {
  public:
    void attach(const RingMemory& memory, StagingPool& staging) {
        OrderedQueue::attach(memory);
        staging_ = &staging;
        blocks_.assign(memory.entries, {});
    }

    ipc::SendWqe* wqe(std::uint32_t index) const {
        return reinterpret_cast<ipc::SendWqe*>(memory_.slot(index));
    }

    /// The request with this free-running index was completed, and with it all older ones.
    void complete(std::uint32_t index);

    /// Room in shared memory for the payload of `wqe`, which is not yet published; null if there is none.
    std::byte* stage(ipc::SendWqe& wqe, std::uint32_t bytes);
    /// Takes that back.
    void unstage(ipc::SendWqe& wqe);
    /// `count` requests behind the last published one were written and are given up.
    void give_up(std::uint32_t count);

    /// Both sides start over, after the QP went to RESET.
    void restart();
    /// Gives back what all requests have staged: the engine has done with the ring.
    void unstage_all();

  private:
    void release(StagedBlock& block);
    StagedBlock& block_of(std::uint32_t index) { return blocks_[index & (memory_.entries - 1)]; }
    StagedBlock& block_of(const ipc::SendWqe& wqe) {
        const auto offset = reinterpret_cast<const std::byte*>(&wqe) - memory_.slots;
        return blocks_[static_cast<std::size_t>(offset) / memory_.stride];
    }
};

class ReceiveQueue : public OrderedQueue {
  public:
    ipc::ReceiveWqe* wqe(std::uint32_t index) const {
        return reinterpret_cast<ipc::ReceiveWqe*>(memory_.slot(index));
    }
    void complete_oldest() {
        freed_.store(freed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
};

class SharedReceiveQueue {
  public:
    void attach(const RingMemory& memory, std::uint32_t* available);
    const RingMemory& memory() const { return memory_; }

    ipc::ReceiveWqe* wqe(std::uint32_t slot) const {
        return reinterpret_cast<ipc::ReceiveWqe*>(memory_.slot(slot));
    }

    /// A free slot, now the caller's until post() or give_back(); empty if all are posted.
    std::optional<std::uint32_t> take_slot();
    /// Queues a slot that take_slot() gave; seen by the engine at the next publish().
    void post(std::uint32_t slot);
    bool publish();
    /// The slot's completion was polled, or it was not posted after all.
    void give_back(std::uint32_t slot);

    /// After the engine's death: takes any posted slot out, for a flush.
    std::optional<std::uint32_t> take_posted();

    std::uint32_t outstanding() const { return memory_.entries - static_cast<std::uint32_t>(free_.size()); }

  private:
    RingMemory memory_;
    std::uint32_t* available_ = nullptr;
    std::uint32_t producer_ = 0;
    std::vector<std::uint32_t> free_;
    std::vector<bool> taken_;
};

}  // namespace uib::provider
