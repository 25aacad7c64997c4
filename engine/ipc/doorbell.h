// Doorbells: how a client tells the engine which of its queues have work, at no cost for queues that have
// none.
//
// Each context has one DoorbellMap: a tree of bits, 64 wide, three levels deep. A queue pair has a slot (a
// leaf bit). To ring, the client sets the leaf bit; if the leaf word was zero before it sets the word's bit
// one level up, and so on. The engine takes words with exchange(0) from the top down. So an idle context
// costs the engine one load, whatever its number of QPs.
//
// No ring is lost: a word that is not zero has a bit above it that is set, or about to be set by the client
// that made the word non-zero; and the engine clears a word before it looks below it.
//
// The bell itself is rung only when asked for. While the engine has a queue on its active list it watches the
// producer index and `need_doorbell` is 0. Before it lets a queue go it sets need_doorbell, then looks at the
// producer once more (release_queue). The client moves the producer, then looks at need_doorbell (publish).
// All four accesses are sequentially consistent, so in their one total order either the client's load comes
// after the engine's store, or the engine's load comes after the client's store: at least one side sees the
// other, and a work request is never left behind.
//
// Sleeping works the same way one level up: before the engine sleeps it sets EnginePage::sleeping, looks at
// the top word of every context once more, and only then waits on its eventfd. The client that has made a top
// word non-zero looks at `sleeping` and, if set, writes the eventfd. The eventfd keeps the wake-up if the
// engine has not gone to sleep yet. (Sequentially consistent accesses rather than fences: same instructions
// on x86-64, and the thread sanitizer knows them.)
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/ipc/ring.h"

namespace uib::ipc {

/// Shared by all contexts, written by the engine, mapped read-only by clients.
struct EnginePage {
    std::uint32_t magic;
    std::uint32_t version;
    alignas(kCacheLine) std::atomic<std::uint32_t> sleeping;  ///< 1: write the eventfd after ringing
    alignas(kCacheLine) std::atomic<std::uint32_t> stopping;  ///< 1: the engine is going away in good order
    std::uint32_t usable_cpus;                                ///< the engine's own count, for diagnostics
};
inline constexpr std::uint32_t kEnginePageMagic = 0x75696231;  // "uib1"

inline constexpr std::uint32_t kDoorbellSlots = 64 * 64 * 64;

struct DoorbellMap {
    alignas(kCacheLine) std::atomic<std::uint64_t> top;
    alignas(kCacheLine) std::atomic<std::uint64_t> middle[64];
    alignas(kCacheLine) std::atomic<std::uint64_t> leaf[64 * 64];

    /// Client side: marks `slot` (< kDoorbellSlots). Returns true when the top word changed from zero, that
    /// is when the caller must look at EnginePage::sleeping.
    bool ring(std::uint32_t slot) {
        const std::uint32_t word = slot / 64;
        if (leaf[word].fetch_or(bit(slot % 64), std::memory_order_seq_cst) != 0) return false;
        const std::uint32_t group = word / 64;
        if (middle[group].fetch_or(bit(word % 64), std::memory_order_seq_cst) != 0) return false;
        return top.fetch_or(bit(group), std::memory_order_seq_cst) == 0;
    }

    /// Engine side: calls f(slot) for each slot rung since the last call.
    template <typename F>
    void take(F&& f) {
        if (top.load(std::memory_order_relaxed) == 0) return;
        for_each_bit(top.exchange(0, std::memory_order_seq_cst), [&](std::uint32_t group) {
            for_each_bit(middle[group].exchange(0, std::memory_order_seq_cst), [&](std::uint32_t inner) {
                const std::uint32_t word = group * 64 + inner;
                for_each_bit(leaf[word].exchange(0, std::memory_order_seq_cst),
                             [&](std::uint32_t low) { f(word * 64 + low); });
            });
        });
    }

    static constexpr std::uint64_t bit(std::uint32_t n) { return std::uint64_t{1} << n; }

  private:
    template <typename F>
    static void for_each_bit(std::uint64_t word, F&& f) {
        while (word != 0) {
            f(static_cast<std::uint32_t>(__builtin_ctzll(word)));
            word &= word - 1;
        }
    }
};

/// Client side: makes the requests before `producer` visible. True when the doorbell must be rung for them.
inline bool publish(QueueControl& queue, std::uint32_t producer) {
    queue.producer.store(producer, std::memory_order_seq_cst);
    return queue.need_doorbell.load(std::memory_order_seq_cst) != 0;
}

/// Engine side: stops watching a queue. Returns the producer index as it is after the client was told; if
/// that is not what the caller has consumed, it must take the queue back (watch_queue) and go on.
inline std::uint32_t release_queue(QueueControl& queue) {
    queue.need_doorbell.store(1, std::memory_order_seq_cst);
    return queue.producer.load(std::memory_order_seq_cst);
}

/// Engine side: watches the queue by itself again; the client need not ring.
inline void watch_queue(QueueControl& queue) {
    queue.need_doorbell.store(0, std::memory_order_relaxed);
}

}  // namespace uib::ipc
