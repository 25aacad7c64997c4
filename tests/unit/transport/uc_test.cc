// UC: messages, dropped messages, receive requests that are used again (IBA 9.8.2, classes D1 and E).
#include <gtest/gtest.h>

#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

struct Uc : ::testing::Test {
    static constexpr std::uint32_t kPsn = 0x1100;
    Uc() : b(Service::kUc, 0x12) {}
    void in(Operation operation, std::uint32_t psn, std::size_t length) {
        net::Packet packet = packet_for(b, operation, kPsn + psn, std::span(data).first(length));
        packet.reth = {Station::kBase, b.region->key(), static_cast<std::uint32_t>(length)};
        b.deliver(packet);
    }
    Station b;
    std::vector<std::byte> data = std::vector<std::byte>(5000, std::byte{1});
};

TEST_F(Uc, messages_arrive_and_complete_when_sent) {
    for (const bool lend : {true, false}) {
        Pair pair(Service::kUc, lend);
        pair.connect();
        unsigned seed = 0;
        for (const std::uint32_t length : {0U, 1U, 256U, 257U, 512U, 5000U}) {
            ++seed;
            pair.a.fill(0, length, seed);
            pair.b.post_receive(seed, 100'000, 6000);
            Work work;
            work.entries = {pair.a.entry(0, length)};
            pair.a.post(work);
            work.opcode = WorkOpcode::kRdmaWrite;
            work.remote_address = Station::kBase + 200'000;
            work.rkey = pair.b.region->key();
            pair.a.post(work);
            pair.settle(3);
            ASSERT_EQ(pair.b.receives.size(), seed);
            EXPECT_EQ(pair.b.receives.back().byte_len, length);
            EXPECT_TRUE(pair.b.holds(100'000, length, seed));
            EXPECT_TRUE(pair.b.holds(200'000, length, seed));
            ASSERT_EQ(pair.a.sends.size(), 2 * seed);
            EXPECT_EQ(pair.a.sends.back().status, Status::kSuccess);
        }
        for (const SentPacket& sent : pair.seen) EXPECT_FALSE(sent.packet.bth.ack_req);
    }
}

TEST_F(Uc, completion_waits_for_the_next_run) {
    b.connect(0x11);
    Work work;
    work.entries = {b.entry(0, 10)};
    b.post(work);
    b.qp->run(10);
    EXPECT_EQ(b.out.size(), 1U);
    EXPECT_TRUE(b.sends.empty());
    EXPECT_TRUE(b.qp->wants_run());
    b.qp->run(10);
    EXPECT_EQ(b.sends.size(), 1U);
    EXPECT_FALSE(b.qp->wants_run());
}

TEST_F(Uc, lost_packet_drops_its_message_and_keeps_the_receive) {
    b.connect(0x11);
    b.post_receive(1, 0, 5000);
    in(Operation::kSendFirst, 0, 256);
    in(Operation::kSendLast, 2, 10);  // 1 is lost
    in(Operation::kSendLast, 3, 10);
    EXPECT_TRUE(b.receives.empty());
    EXPECT_EQ(b.count().dropped_sequence, 2U);
    in(Operation::kSendOnly, 9, 20);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].wr_id, 1U);
    EXPECT_EQ(b.receives[0].byte_len, 20U);
}

TEST_F(Uc, first_packet_inside_a_message_starts_anew) {
    b.connect(0x11);
    b.post_receive(1, 0, 5000);
    in(Operation::kSendFirst, 0, 256);
    in(Operation::kSendFirst, 1, 256);
    in(Operation::kSendLast, 2, 10);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].byte_len, 266U);
}

TEST_F(Uc, shared_queue_gets_the_receive_back_in_error) {
    b.receive_queue.is_shared = true;
    b.connect(0x11);
    b.post_receive(1, 0, 5000);
    in(Operation::kSendFirst, 0, 256);
    in(Operation::kSendLast, 2, 10);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_NE(b.receives[0].status, Status::kSuccess);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(Uc, shared_queue_in_error_ends_the_queue_pair) {
    b.receive_queue.is_shared = b.receive_queue.is_failed = true;
    b.connect(0x11);
    in(Operation::kSendOnly, 0, 10);
    EXPECT_EQ(b.qp->state(), QpState::kError);
    EXPECT_EQ(b.events, std::vector{QpEvent::kFatal});
    EXPECT_TRUE(b.receives.empty());
}

TEST_F(Uc, faults_are_dropped_in_silence) {
    b.connect(0x11);
    in(Operation::kSendOnly, 0, 10);
    EXPECT_EQ(b.count().dropped_no_receive, 1U);
    b.post_receive(1, 0, 5);
    in(Operation::kSendOnly, 1, 10);
    EXPECT_EQ(b.count().dropped_length, 1U);
    net::Packet packet = packet_for(b, Operation::kWriteOnly, kPsn + 2, std::span(data).first(10));
    packet.reth = {Station::kBase, 1, 10};
    b.deliver(packet);
    EXPECT_EQ(b.count().remote_access_errors, 1U);
    in(Operation::kReadRequest, 3, 0);
    EXPECT_EQ(b.count().invalid_requests, 1U);
    in(Operation::kSendOnly, 4, 5);
    EXPECT_EQ(b.receives.size(), 1U);
    EXPECT_TRUE(b.events.empty());
    b.run();
    EXPECT_TRUE(b.out.empty());
}

// C9-199: like an invalid opcode, so it ends the message (class D1).
TEST_F(Uc, padding_belongs_to_the_end_of_a_message) {
    b.connect(0x11);
    b.post_receive(1, 0, 5000);
    in(Operation::kSendFirst, 0, 256);
    net::Packet middle = packet_for(b, Operation::kSendMiddle, kPsn + 1, std::span(data).first(256));
    middle.bth.pad = 1;
    b.deliver(middle);
    EXPECT_EQ(b.count().padding_errors, 1U);
    in(Operation::kSendLast, 2, 10);
    EXPECT_TRUE(b.receives.empty());
    net::Packet only = packet_for(b, Operation::kSendOnly, kPsn + 3, std::span(data).first(3));
    only.bth.pad = 1;
    b.deliver(only);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].byte_len, 3U);
}

TEST_F(Uc, sequence_numbers_wrap) {
    b.parameters.rq_psn = 0xFFFFFE;
    b.parameters.sq_psn = 0xFFFFFE;
    b.connect(0x11);
    b.post_receive(1, 0, 5000);
    for (const auto& [operation, psn, length] : {std::tuple{Operation::kSendFirst, 0xFFFFFEU, 256U},
                                                 {Operation::kSendMiddle, 0xFFFFFFU, 256U},
                                                 {Operation::kSendMiddle, 0U, 256U},
                                                 {Operation::kSendLast, 1U, 4U}})
        b.deliver(packet_for(b, operation, psn, std::span(data).first(length)));
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].byte_len, 772U);
    Work work;
    work.entries = {b.entry(0, 772)};
    b.post(work);
    b.run();
    ASSERT_EQ(b.out.size(), 4U);
    EXPECT_EQ(b.out[2].psn(), 0U);
    EXPECT_EQ(b.qp->send_psn(), 2U);
}

TEST_F(Uc, local_fault_of_a_send_stops_the_send_queue_only) {
    b.connect(0x11);
    Work work;
    work.entries = {b.entry(0, 10)};
    b.post(work);
    b.post(work);
    b.post(work);
    b.send_queue.works[1].entries[0].lkey ^= 1;
    b.run();
    ASSERT_EQ(b.sends.size(), 3U);
    EXPECT_EQ(b.sends[0].status, Status::kSuccess);
    EXPECT_EQ(b.sends[1].status, Status::kLocalProtection);
    EXPECT_EQ(b.sends[2].status, Status::kFlushed);
    EXPECT_EQ(b.qp->state(), QpState::kSqe);
    b.post_receive(1, 0, 100);
    in(Operation::kSendOnly, 0, 10);
    EXPECT_EQ(b.receives.size(), 1U);
    b.qp->apply(QpState::kRts, b.parameters, false);
    b.take_out();
    b.post(work);
    b.run();
    EXPECT_EQ(b.out.size(), 1U);
    EXPECT_EQ(b.sends.back().status, Status::kSuccess);
}

}  // namespace
}  // namespace uib::transport::testing
