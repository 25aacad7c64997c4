#include "provider/work_queue.h"

#include <gtest/gtest.h>

#include <set>

#include "provider/control_channel.h"

namespace uib::provider {
namespace {

struct Ring {
    explicit Ring(std::uint32_t entries) : bytes(entries * 64) {
        memory = {&control, bytes.data(), entries, 64, 2, 0};
    }
    ipc::QueueControl control{};
    std::vector<std::byte> bytes;
    RingMemory memory;
};

class SendQueueTest : public ::testing::Test {
  protected:
    ControlChannel control;  // to nobody: nothing here is staged
    StagingPool pool{control};
    SendQueue queue;
};

TEST_F(SendQueueTest, takes_as_many_requests_as_it_has_slots) {
    Ring ring(4);
    queue.attach(ring.memory, pool);
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(queue.has_room());
        queue.publish(1);
    }
    EXPECT_FALSE(queue.has_room());
    EXPECT_EQ(ring.control.producer.load(), 4U);
}

TEST_F(SendQueueTest, counts_requests_that_are_not_yet_published) {
    Ring ring(2);
    queue.attach(ring.memory, pool);
    EXPECT_TRUE(queue.has_room(1));
    EXPECT_FALSE(queue.has_room(2));
}

TEST_F(SendQueueTest, a_completion_frees_all_older_slots) {
    Ring ring(4);
    queue.attach(ring.memory, pool);
    queue.publish(4);
    queue.complete(2);
    EXPECT_EQ(queue.outstanding(), 1U);
    queue.complete(1);  // an older one changes nothing
    EXPECT_EQ(queue.outstanding(), 1U);
}

TEST_F(SendQueueTest, indices_wrap) {
    Ring ring(4);
    queue.attach(ring.memory, pool);
    for (std::uint32_t i = 0; i < 3; ++i) {
        queue.publish(1);
        queue.complete(i);
    }
    // As after 2^32 requests: the index of the next one is small again.
    EXPECT_EQ(queue.wqe(3), reinterpret_cast<ipc::SendWqe*>(ring.bytes.data() + 3 * 64));
    EXPECT_EQ(queue.wqe(4), reinterpret_cast<ipc::SendWqe*>(ring.bytes.data()));
    EXPECT_EQ(queue.wqe(0xffffffffU), queue.wqe(3));
}

TEST_F(SendQueueTest, the_doorbell_is_rung_only_when_asked_for) {
    Ring ring(4);
    queue.attach(ring.memory, pool);
    EXPECT_FALSE(queue.publish(1));
    ring.control.need_doorbell = 1;
    EXPECT_TRUE(queue.publish(1));
}

TEST_F(SendQueueTest, restart_forgets_everything) {
    Ring ring(4);
    queue.attach(ring.memory, pool);
    queue.publish(3);
    queue.restart();
    EXPECT_EQ(queue.outstanding(), 0U);
    EXPECT_EQ(ring.control.producer.load(), 0U);
}

TEST(SharedReceiveQueue, hands_out_each_slot_once) {
    Ring ring(4);
    std::vector<std::uint32_t> available(4);
    SharedReceiveQueue queue;
    queue.attach(ring.memory, available.data());
    std::set<std::uint32_t> slots;
    for (int i = 0; i < 4; ++i) slots.insert(queue.take_slot().value());
    EXPECT_EQ(slots.size(), 4U);
    EXPECT_FALSE(queue.take_slot().has_value());
}

TEST(SharedReceiveQueue, slots_come_back_in_any_order_and_only_once) {
    Ring ring(4);
    std::vector<std::uint32_t> available(4);
    SharedReceiveQueue queue;
    queue.attach(ring.memory, available.data());
    for (int i = 0; i < 4; ++i) queue.post(queue.take_slot().value());
    queue.give_back(2);
    queue.give_back(2);
    EXPECT_EQ(queue.outstanding(), 3U);
    EXPECT_EQ(queue.take_slot(), 2U);
    EXPECT_FALSE(queue.take_slot().has_value());
}

TEST(SharedReceiveQueue, the_engine_sees_slots_in_the_order_of_posting) {
    Ring ring(4);
    std::vector<std::uint32_t> available(4, 99);
    SharedReceiveQueue queue;
    queue.attach(ring.memory, available.data());
    const std::uint32_t first = queue.take_slot().value();
    const std::uint32_t second = queue.take_slot().value();
    queue.post(second);
    queue.post(first);
    queue.publish();
    EXPECT_EQ(available[0], second);
    EXPECT_EQ(available[1], first);
    EXPECT_EQ(ring.control.producer.load(), 2U);
}

TEST(SharedReceiveQueue, posted_slots_can_be_taken_out_for_a_flush) {
    Ring ring(2);
    std::vector<std::uint32_t> available(2);
    SharedReceiveQueue queue;
    queue.attach(ring.memory, available.data());
    queue.post(queue.take_slot().value());
    EXPECT_TRUE(queue.take_posted().has_value());
    EXPECT_FALSE(queue.take_posted().has_value());
    EXPECT_EQ(queue.outstanding(), 0U);
}

}  // namespace
}  // namespace uib::provider
