// Transitions: reset, SQD and its event, the error state and its flushes, the last receive of a shared queue.
#include <gtest/gtest.h>

#include "engine/transport/rc_queue_pair.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

constexpr std::uint32_t kPsn = 0x1100;

Work write_of(Station& station, std::uint32_t length) {
    Work work;
    work.opcode = WorkOpcode::kRdmaWrite;
    work.entries = {station.entry(0, length)};
    return work;
}

TEST(States, error_flushes_everything_in_order_and_what_comes_later) {
    Station a(Service::kRc, 0x11);
    a.connect(0x12);
    Work work = write_of(a, 10);
    a.post(work);
    work.flags = 0;
    a.post(work);
    a.run();
    a.post(work);
    for (unsigned i = 0; i < 3; ++i) a.post_receive(i, 0, 10);
    a.qp->apply(QpState::kError, a.parameters, false);
    EXPECT_TRUE(a.qp->wants_run());
    a.run(2);
    ASSERT_EQ(a.sends.size(), 3U);
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(a.sends[i].status, Status::kFlushed);
        EXPECT_EQ(a.sends[i].wqe_index, i);
    }
    ASSERT_EQ(a.receives.size(), 3U);
    EXPECT_EQ(a.receives[2].wr_id, 2U);
    EXPECT_FALSE(a.qp->wants_run());
    a.post(work);
    a.post_receive(9, 0, 10);
    EXPECT_TRUE(a.qp->wants_run());
    a.run();
    EXPECT_EQ(a.sends.size(), 4U);
    EXPECT_EQ(a.receives.size(), 4U);
    EXPECT_TRUE(a.events.empty());
    EXPECT_EQ(a.qp->next_timer(), kNever);
    a.deliver(response_for(a, Operation::kAcknowledge, kPsn + 1));
    EXPECT_EQ(a.sends.size(), 4U);
}

TEST(States, last_receive_of_a_shared_queue_is_told_once) {
    for (const bool taken : {false, true}) {
        Station b(Service::kRc, 0x12);
        b.receive_queue.is_shared = true;
        b.connect(0x11);
        b.post_receive(1, 0, 1000);
        b.post_receive(2, 0, 1000);
        const std::vector<std::byte> data(256);
        if (taken) b.deliver(packet_for(b, Operation::kSendFirst, kPsn, data));
        b.qp->apply(QpState::kError, b.parameters, false);
        b.run();
        b.run();
        b.qp->apply(QpState::kError, b.parameters, false);
        b.run();
        EXPECT_EQ(b.receives.size(), taken ? 1U : 0U);
        EXPECT_EQ(b.receive_queue.posted.size(), taken ? 1U : 2U);  // the others belong to other QPs
        EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kLastWqeReached});
    }
}

TEST(States, sqd_finishes_what_has_begun_and_tells) {
    Station a(Service::kRc, 0x11);
    a.connect(0x12);
    a.post(write_of(a, 1000));
    a.post(write_of(a, 10));
    a.room = 2;
    a.qp->run(10);
    EXPECT_EQ(a.take_out().size(), 2U);
    a.qp->apply(QpState::kSqd, a.parameters, true);
    EXPECT_FALSE(a.qp->drained());
    a.room = 100;
    a.run();
    EXPECT_EQ(a.take_out().size(), 2U);  // the rest of the first, nothing of the second
    EXPECT_TRUE(a.events.empty());
    a.deliver(response_for(a, Operation::kAcknowledge, kPsn + 3));
    a.run();
    EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kSendQueueDrained});
    EXPECT_TRUE(a.qp->drained());
    a.qp->apply(QpState::kRts, a.parameters, false);
    a.run();
    EXPECT_EQ(a.take_out().size(), 1U);
    EXPECT_EQ(a.events.size(), 1U);
}

TEST(States, sqd_asks_for_the_acknowledge_that_it_needs) {
    Station a(Service::kRc, 0x11);
    a.connect(0x12);
    Work work = write_of(a, 10);
    work.flags = 0;
    a.post(work);
    a.post(work);
    a.room = 1;
    a.qp->run(1);
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_FALSE(a.take_out()[0].packet.bth.ack_req);
    a.qp->apply(QpState::kSqd, a.parameters, true);
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_EQ(a.out[0].psn(), kPsn);
    EXPECT_TRUE(a.out[0].packet.bth.ack_req);
    EXPECT_FALSE(a.qp->wants_run());
    a.deliver(response_for(a, Operation::kAcknowledge, kPsn));
    a.run();
    EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kSendQueueDrained});
}

TEST(States, idle_queue_pair_drains_at_once) {
    Station a(Service::kUd, 0x11);
    a.connect(0x12);
    a.qp->apply(QpState::kSqd, a.parameters, true);
    EXPECT_TRUE(a.qp->wants_run());
    a.run();
    EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kSendQueueDrained});
}

TEST(States, reset_forgets_without_completions_and_starts_afresh) {
    Station a(Service::kRc, 0x11);
    a.connect(0x12);
    a.post(write_of(a, 10));
    a.post_receive(1, 0, 10);
    a.run();
    a.take_out();
    a.send_queue.base += static_cast<std::uint32_t>(a.send_queue.works.size());
    a.send_queue.works.clear();
    a.qp->apply(QpState::kReset, a.parameters, false);
    EXPECT_FALSE(a.qp->wants_run());
    EXPECT_TRUE(a.sends.empty());
    EXPECT_EQ(a.qp->next_timer(), kNever);
    a.parameters.sq_psn = 5;
    a.connect(0x12);
    a.post(write_of(a, 10));
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_EQ(a.out[0].psn(), 5U);
    a.deliver(response_for(a, Operation::kAcknowledge, 5));
    EXPECT_EQ(a.sends.size(), 1U);
}

// A thousand idle connections must not cost a machine its memory.
TEST(States, queue_pair_is_small) {
    EXPECT_LT(sizeof(RcQueuePair) + 128 * sizeof(SendRecord), 8192U);
}

TEST(States, largest_message_spans_half_of_the_psns) {
    Station a(Service::kRc, 0x11);
    a.connect(0x12);
    Work read;
    read.opcode = WorkOpcode::kRdmaRead;
    memory::RegionInit null;
    null.pd = 1;
    null.access = ipc::kAccessLocalWrite;
    null.length = kMaxMessageBytes;
    null.space = a.space;
    read.entries = {{0, kMaxMessageBytes, a.keys().add_region(std::move(null))->key()}};
    a.post(read);
    a.post(write_of(a, 1));
    a.run();
    ASSERT_EQ(a.out.size(), 1U);  // nothing fits behind it (C9-61)
    EXPECT_EQ(a.out[0].packet.reth.dma_length, kMaxMessageBytes);
    EXPECT_EQ(a.qp->send_psn(), (kPsn + (1U << 23)) & 0xFFFFFF);
    EXPECT_NE(a.qp->next_timer(), kNever);
    a.deliver(response_for(a, Operation::kAcknowledge, kPsn + (1U << 23) - 1, 0x63));
    EXPECT_EQ(a.count().implied_naks, 1U);
}

TEST(States, many_requests_in_flight_are_remembered) {
    Station a(Service::kRc, 0x11);
    a.connect(0x12);
    for (unsigned i = 0; i < 1000; ++i) a.post(write_of(a, 1));
    a.run();
    EXPECT_EQ(a.out.size(), 1000U);
    a.deliver(response_for(a, Operation::kAcknowledge, kPsn + 999));
    ASSERT_EQ(a.sends.size(), 1000U);
    for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(a.sends[i].wr_id, i);
}

}  // namespace
}  // namespace uib::transport::testing
