// The doorbell's promise: a request that was published is always taken, whatever the interleaving, also
// across the engine's sleep. The stress tests run clients and an engine that releases its queues and sleeps
// as often as it can, so that every window of the two protocols is hit many times; a lost wake-up shows as a
// sleep that ends by its time limit.
#include "engine/ipc/doorbell.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace uib::ipc {
namespace {

std::set<std::uint32_t> take_all(DoorbellMap& map) {
    std::set<std::uint32_t> slots;
    map.take([&](std::uint32_t slot) { slots.insert(slot); });
    return slots;
}

TEST(DoorbellMap, TakesEachRungSlotOnce) {
    const auto map = std::make_unique<DoorbellMap>();
    const std::set<std::uint32_t> slots = {0, 1, 63, 64, 4095, 4096, 100'000, kDoorbellSlots - 1};
    for (const std::uint32_t slot : slots) map->ring(slot);
    EXPECT_EQ(take_all(*map), slots);
    EXPECT_TRUE(take_all(*map).empty());
}

TEST(DoorbellMap, OnlyTheRingThatWakesTheTopSaysSo) {
    const auto map = std::make_unique<DoorbellMap>();
    EXPECT_TRUE(map->ring(5));
    EXPECT_FALSE(map->ring(5));
    EXPECT_FALSE(map->ring(6));
    EXPECT_FALSE(map->ring(5000));
    take_all(*map);
    EXPECT_TRUE(map->ring(5));
}

TEST(DoorbellMap, RingDuringTakeIsSeenByTheNextTake) {
    const auto map = std::make_unique<DoorbellMap>();
    map->ring(7);
    map->take([&](std::uint32_t) { map->ring(7); });
    EXPECT_EQ(take_all(*map), std::set<std::uint32_t>{7});
}

TEST(QueueControl, ReleaseAsksForTheBellAndWatchDoesNot) {
    QueueControl queue{};
    EXPECT_FALSE(publish(queue, 1));
    EXPECT_EQ(release_queue(queue), 1U);
    EXPECT_TRUE(publish(queue, 2));
    watch_queue(queue);
    EXPECT_FALSE(publish(queue, 3));
}

/// An engine that sleeps whenever it can, and clients that post one request at a time to queues of their own
/// and wait until it was taken: each post meets the engine somewhere in its way to sleep.
class SleepStress : public ::testing::Test {
  protected:
    static constexpr unsigned kClients = 3;
    static constexpr std::uint32_t kPosts = 20'000;

    void post(unsigned client, std::uint32_t count) {
        const std::uint32_t slot = client * 5000;
        if (publish(queues_[client], count) && map_->ring(slot) &&
            page_->sleeping.load(std::memory_order_seq_cst) != 0) {
            const std::uint64_t one = 1;
            ASSERT_EQ(::write(eventfd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
        }
    }

    void run_client(unsigned client) {
        for (std::uint32_t i = 1; i <= kPosts; ++i) {
            post(client, i);
            while (taken_[client].load(std::memory_order_acquire) != i) ::sched_yield();
        }
    }

    void take_from(unsigned client) {
        watch_queue(queues_[client]);
        while (true) {
            taken_[client].store(queues_[client].producer.load(std::memory_order_acquire),
                                 std::memory_order_release);
            // No turn of grace: the queue is let go at once, the hardest case.
            if (release_queue(queues_[client]) == taken_[client].load(std::memory_order_relaxed)) return;
            watch_queue(queues_[client]);
        }
    }

    void run_engine() {
        while (!done()) {
            map_->take([&](std::uint32_t slot) { take_from(slot / 5000); });
            page_->sleeping.store(1, std::memory_order_seq_cst);
            if (map_->top.load(std::memory_order_seq_cst) == 0 && !done()) {
                pollfd wait{eventfd_, POLLIN, 0};
                if (::poll(&wait, 1, 2000) == 0 && !done()) ++lost_;
                std::uint64_t count = 0;
                [[maybe_unused]] const auto got = ::read(eventfd_, &count, sizeof count);
                ++sleeps_;
            }
            page_->sleeping.store(0, std::memory_order_seq_cst);
        }
    }

    [[nodiscard]] bool done() const { return finished_.load() == kClients; }

    std::unique_ptr<DoorbellMap> map_ = std::make_unique<DoorbellMap>();
    std::unique_ptr<EnginePage> page_ = std::make_unique<EnginePage>();
    std::vector<QueueControl> queues_ = std::vector<QueueControl>(kClients);
    std::vector<std::atomic<std::uint32_t>> taken_ = std::vector<std::atomic<std::uint32_t>>(kClients);
    std::atomic<unsigned> finished_{0};
    unsigned lost_ = 0;
    unsigned sleeps_ = 0;
    int eventfd_ = ::eventfd(0, EFD_NONBLOCK);
};

TEST_F(SleepStress, NoWakeUpIsLost) {
    for (QueueControl& queue : queues_) queue.need_doorbell.store(1);
    std::vector<std::thread> clients;
    for (unsigned client = 0; client < kClients; ++client)
        clients.emplace_back([this, client] {
            run_client(client);
            ++finished_;
            const std::uint64_t one = 1;
            EXPECT_EQ(::write(eventfd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
        });
    run_engine();
    for (std::thread& client : clients) client.join();
    for (unsigned client = 0; client < kClients; ++client) EXPECT_EQ(taken_[client].load(), kPosts);
    EXPECT_EQ(lost_, 0U);
    EXPECT_GT(sleeps_, 100U) << "the engine hardly slept: the test shows nothing";
    ::close(eventfd_);
}

}  // namespace
}  // namespace uib::ipc
