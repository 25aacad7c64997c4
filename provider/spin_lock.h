// A lock for the data path: a few instructions when free, gives the CPU away when not. It can be switched off
// for objects that the program has promised to use from one thread only.
#pragma once

#include <sched.h>

#include <atomic>

namespace uib::provider {

class SpinLock {
  public:
    /// Before the object is shared: makes lock() and unlock() do nothing.
    void disable() { enabled_ = false; }

    void lock() {
        if (!enabled_) return;
        while (taken_.exchange(true, std::memory_order_acquire)) {
            for (unsigned turn = 0; taken_.load(std::memory_order_relaxed); ++turn) {
                if (turn >= kTurnsBeforeYield) ::sched_yield();
            }
        }
    }
    void unlock() {
        if (enabled_) taken_.store(false, std::memory_order_release);
    }

  private:
    static constexpr unsigned kTurnsBeforeYield = 64;
    std::atomic<bool> taken_{false};
    bool enabled_ = true;
};

}  // namespace uib::provider
