// The sending queue pair of XRC: RC's requester with an XRCETH in each request and no credits (IBA 9.7.9).
#include <gtest/gtest.h>

#include "engine/transport/aeth.h"
#include "engine/transport/rnr_timer.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

struct XrcInitiator : ::testing::Test {
    static constexpr std::uint32_t kPsn = 0x1100;
    static constexpr std::uint32_t kSrq = 0x123456;
    XrcInitiator() : a(Service::kXrcInitiator, 0x11) { a.connect(0x12); }
    void post(WorkOpcode opcode, std::uint32_t length, std::uint32_t srq = kSrq) {
        Work work;
        work.opcode = opcode;
        if (length > 0) work.entries = {a.entry(0, length)};
        work.xrc_srq = srq;
        a.post(work);
    }
    void ack(std::uint32_t psn, std::uint8_t syndrome = 0x1F) {
        a.deliver(response_for(a, Operation::kAcknowledge, kPsn + psn, syndrome));
    }
    Station a;
};

TEST_F(XrcInitiator, every_request_packet_names_its_shared_queue) {
    post(WorkOpcode::kSend, 700);
    post(WorkOpcode::kRdmaWrite, 300, 7);
    post(WorkOpcode::kRdmaRead, 300, 8);
    post(WorkOpcode::kFetchAdd, 8, 9);
    post(WorkOpcode::kAtomicWrite, 8, 10);
    post(WorkOpcode::kSend, 1, 11);
    a.run();
    const std::vector<std::pair<Operation, std::uint32_t>> expected = {
        {Operation::kSendFirst, kSrq}, {Operation::kSendMiddle, kSrq}, {Operation::kSendLast, kSrq},
        {Operation::kWriteFirst, 7},   {Operation::kWriteLast, 7},     {Operation::kReadRequest, 8},
        {Operation::kFetchAdd, 9},     {Operation::kAtomicWrite, 10},  {Operation::kSendOnly, 11}};
    ASSERT_EQ(a.out.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(a.out[i].packet.bth.opcode, net::opcode(net::Service::kXrc, expected[i].first)) << i;
        EXPECT_EQ(a.out[i].packet.xrc_srq, expected[i].second) << i;
    }
}

TEST_F(XrcInitiator, sends_are_not_limited_by_credits) {
    for (int i = 0; i < 3; ++i) post(WorkOpcode::kSend, 600);
    a.run();
    EXPECT_EQ(a.out.size(), 9U);
    ack(8);
    EXPECT_EQ(a.sends.size(), 3U);
    EXPECT_EQ(a.sends.back().status, Status::kSuccess);
}

TEST_F(XrcInitiator, lost_packets_are_sent_again) {
    post(WorkOpcode::kSend, 300);
    a.run();
    a.take_out();
    a.advance(ack_timeout(a.parameters.timeout));
    a.run();
    ASSERT_EQ(a.out.size(), 2U);
    EXPECT_EQ(a.out[0].psn(), kPsn);
    EXPECT_EQ(a.out[0].packet.xrc_srq, kSrq);
    ack(0, kRnrNak | 1);
    EXPECT_EQ(a.count().rnr_naks_received, 1U);
    ack(1);
    EXPECT_EQ(a.sends.size(), 1U);
}

TEST_F(XrcInitiator, takes_responses_of_its_service_only) {
    post(WorkOpcode::kSend, 10);
    a.run();
    net::Packet packet = response_for(a, Operation::kAcknowledge, kPsn, 0x1F);
    packet.bth.opcode = net::opcode(net::Service::kRc, Operation::kAcknowledge);
    a.deliver(packet);
    a.deliver(packet_for(a, Operation::kSendOnly, kPsn));
    EXPECT_EQ(a.count().dropped_service, 2U);
    EXPECT_TRUE(a.sends.empty());
    ack(0);
    EXPECT_EQ(a.sends.size(), 1U);
}

TEST_F(XrcInitiator, foreign_domain_has_its_status) {
    post(WorkOpcode::kSend, 10);
    post(WorkOpcode::kSend, 10);
    a.run();
    ack(0, kNakInvalidRdRequest);
    a.run();
    ASSERT_EQ(a.sends.size(), 2U);
    EXPECT_EQ(a.sends[0].status, Status::kRemoteInvalidRdRequest);
    EXPECT_EQ(a.sends[1].status, Status::kFlushed);
    EXPECT_EQ(a.qp->state(), QpState::kError);
    EXPECT_FALSE(a.qp->wants_run());
    ack(1);  // a queue in error drops what comes (C9-215)
    EXPECT_EQ(a.count().dropped_state, 1U);
}

TEST_F(XrcInitiator, drains_and_resets) {
    post(WorkOpcode::kSend, 10);
    a.run();
    a.qp->apply(QpState::kSqd, a.parameters, true);
    EXPECT_FALSE(a.qp->drained());
    ack(0);
    a.run();
    EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kSendQueueDrained});
    a.qp->apply(QpState::kReset, a.parameters, false);
    a.connect(0x12);
    a.take_out();
    for (int i = 0; i < 2; ++i) post(WorkOpcode::kSend, 600);
    a.run();
    EXPECT_EQ(a.out.size(), 6U);  // still without credits
}

}  // namespace
}  // namespace uib::transport::testing
