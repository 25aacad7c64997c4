// The lane: the thread that runs the adapter's turns, and how it waits.
//
// While there is work it turns. Without work it spins for a while, giving its CPU away after each empty turn
// where CPUs are few (ipc/usable_cpus.h), then sleeps on the doorbell descriptors of its clients (eventfds,
// edge-triggered and never read, so that no client can drain another's wake-up or make the lane block).
// ipc/doorbell.h has the argument why no doorbell is lost on the way to sleep. Timers end the sleep; one that
// is due sooner than a sleep is worth keeps the lane spinning. Where a port's driver has nothing to wait on
// (vhost, virtio_user, memif, tap, pci), the sleep is a nap, the longer the longer nothing came.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "engine/daemon/baton.h"
#include "engine/daemon/engine_page.h"
#include "engine/ipc/unique_fd.h"
#include "engine/verbs/adapter.h"

namespace uib::daemon {

class Lane {
  public:
    /// `attention` is written when a client needs the control thread (a protocol breach, a backlog).
    Lane(verbs::Adapter& adapter, Baton& baton, EnginePage& page, int attention_fd);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    void start();
    void stop();

    /// Watches a client's wake-up eventfd. Callable from any thread.
    bool watch(int eventfd);
    /// To be called before the eventfd is closed: the client's duplicate would keep it watched.
    void unwatch(int eventfd);

    /// After the control thread has changed something that the lane must look at: ends its sleep.
    void nudge();

    [[nodiscard]] std::uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

  private:
    void run();
    void sleep();
    void wait_without_work();
    /// When a sleep that begins now ends by itself; kNever: not at all.
    [[nodiscard]] transport::Time alarm(transport::Time now) const;

    verbs::Adapter& adapter_;
    Baton& baton_;
    EnginePage& page_;
    int attention_fd_;
    unsigned polls_before_yield_;
    unsigned empty_turns_ = 0;
    transport::Time last_busy_ = 0;
    ipc::UniqueFd epoll_;
    ipc::UniqueFd nudge_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> sleeps_{0};
    std::thread thread_;
};

}  // namespace uib::daemon
