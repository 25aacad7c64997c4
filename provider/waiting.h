// When the provider gives its CPU away.
//
// A program, its peer and the engine may be three loops that spin. Where they have no more than a few CPUs
// between them the scheduler decides the speed: a round trip takes milliseconds if all spin and microseconds
// if the idle ones yield. So on such machines, and only there, an empty poll yields, and so does a post to a
// queue that had nothing outstanding: a program that then spins on its own memory never calls the provider
// again. A program that keeps a queue filled posts to a queue that is not idle and loses nothing but one
// yield in kPostsBetweenYields, for those that post unsignaled requests and never poll.
#pragma once

#include <sched.h>

#include <atomic>

#include "engine/ipc/usable_cpus.h"

namespace uib::provider {

inline constexpr unsigned kPostsBetweenYields = 64;

/// Empty polls after which to yield; 0: never. Looked up once a process.
inline unsigned yield_after_polls() {
    static const unsigned polls = ipc::polls_before_yield(ipc::usable_cpus());
    return polls;
}

/// At the end of a poll that found nothing; `empty_polls` counts those in a row.
inline void after_empty_poll(std::atomic<unsigned>& empty_polls) {
    const unsigned limit = yield_after_polls();
    if (limit == 0) return;
    // Pollers that race may lose a count, which only delays a yield.
    const unsigned polls = empty_polls.load(std::memory_order_relaxed) + 1;
    empty_polls.store(polls < limit ? polls : 0, std::memory_order_relaxed);
    if (polls >= limit) ::sched_yield();
}

/// At the end of a post; `posts` counts them since the queue was last idle. No lock may be held.
inline void after_post(bool was_idle, unsigned posts) {
    if (yield_after_polls() == 0) return;
    if (was_idle || posts % kPostsBetweenYields == 0) ::sched_yield();
}

}  // namespace uib::provider
