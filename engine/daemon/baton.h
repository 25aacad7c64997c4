// The lane's baton: who holds it may touch the adapter and everything below.
//
// The lane holds it while it runs turns. The control thread, which has parsed a request and made what can be
// made beside the lane (descriptors, buffers), asks for it, changes objects and gives it back; the lane looks
// once a turn whether it is wanted, and does not hold it while it sleeps or yields.
//
// Why not messages to the lane, as the first sketch had it: a request then costs two hand-overs between
// threads, and a wake-up of 25 to 60 us each where the lane sleeps; making 5,000 queue pairs a second takes
// 20,000 requests. With the baton a request costs an uncontended lock while the lane sleeps, and at most one
// turn (a few microseconds) while it works.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>

namespace uib::daemon {

class Baton {
  public:
    /// The control thread's hold.
    class Hold {
      public:
        explicit Hold(Baton& baton) : baton_(baton) {
            baton_.wanted_.fetch_add(1);
            baton_.acquire();
            baton_.wanted_.fetch_sub(1);
        }
        ~Hold() { baton_.mutex_.unlock(); }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;

      private:
        Baton& baton_;
    };

    // The lane's side.
    void take() { mutex_.lock(); }
    void give() { mutex_.unlock(); }
    [[nodiscard]] bool wanted() const { return wanted_.load(std::memory_order_relaxed) != 0; }
    /// Lets whoever waits have it; returns with the baton in hand again.
    void hand_over() {
        mutex_.unlock();
        // A mutex is not fair: wait until the other side has it before asking for it again.
        while (wanted()) ::sched_yield();
        mutex_.lock();
    }

  private:
    /// The lane hands over within a turn, which is over long before a sleeper would have been woken.
    void acquire() {
        constexpr int kTries = 200;
        for (int tries = 0; tries < kTries; ++tries) {
            if (mutex_.try_lock()) return;
            ::sched_yield();
        }
        mutex_.lock();
    }

    std::mutex mutex_;
    std::atomic<int> wanted_{0};
};

}  // namespace uib::daemon
