// The client's side of a completion ring (engine/ipc/ring.h). An entry is there when its `sequence` equals
// the free-running index + 1; entries that the provider has marked void (their QP is gone) are skipped. One
// thread at a time: the CQ's lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/ipc/ring.h"

namespace uib::provider {

class CompletionRing {
  public:
    void attach(ipc::CqControl* control, ipc::Cqe* ring, std::uint32_t entries) {
        control_ = control;
        ring_ = ring;
        entries_ = entries;
    }

    std::uint32_t entries() const { return entries_; }
    std::uint32_t consumer() const { return consumer_; }
    bool overrun() const { return control_->overrun.load(std::memory_order_acquire) != 0; }

    /// The oldest entry, or null. Stays valid until pop() and the next release().
    ipc::Cqe* front() {
        while (ipc::Cqe* cqe = at(consumer_)) {
            if ((cqe->flags & ipc::kCqeVoid) == 0) return cqe;
            ++consumer_;
        }
        return nullptr;
    }
    void pop() { ++consumer_; }
    /// Gives the popped entries back to the engine.
    void release() { control_->consumer.store(consumer_, std::memory_order_release); }

    /// Asks for an event: of the next completion (kArmAll) or the next solicited one. Never weakens an
    /// earlier request.
    void arm(ipc::CqArm arm) {
        std::uint32_t before = control_->armed.load(std::memory_order_relaxed);
        while (before < arm &&
               !control_->armed.compare_exchange_weak(before, arm, std::memory_order_seq_cst)) {
        }
        // Orders the program's next poll after the arming: see CqControl::armed.
        (void)ring_[consumer_ & (entries_ - 1)].sequence.load(std::memory_order_seq_cst);
    }

    /// Calls f(cqe) for each entry that is neither void nor polled.
    template <typename F>
    void for_each_pending(F&& f) {
        for (std::uint32_t index = consumer_; index - consumer_ < entries_; ++index) {
            ipc::Cqe* cqe = at(index);
            if (cqe == nullptr) return;
            if ((cqe->flags & ipc::kCqeVoid) == 0) f(*cqe);
        }
    }

  private:
    ipc::Cqe* at(std::uint32_t index) const {
        ipc::Cqe& cqe = ring_[index & (entries_ - 1)];
        return cqe.sequence.load(std::memory_order_acquire) == index + 1 ? &cqe : nullptr;
    }

    ipc::CqControl* control_ = nullptr;
    ipc::Cqe* ring_ = nullptr;
    std::uint32_t entries_ = 0;
    std::uint32_t consumer_ = 0;
};

}  // namespace uib::provider
