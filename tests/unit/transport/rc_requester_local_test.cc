// The RC requester's own faults and local operations: their place in the order of completions.
#include <gtest/gtest.h>

#include "engine/transport/aeth.h"
#include "engine/transport/rnr_timer.h"
#include "tests/unit/transport/rc_requester_script.h"

namespace uib::transport::testing {
namespace {

TEST_F(RcRequesterScript, local_fault_waits_for_earlier_requests_and_asks_for_their_ack) {
    connect();
    post(WorkOpcode::kRdmaWrite, 300, 0);
    post(WorkOpcode::kRdmaWrite, 10);
    a.send_queue.works[1].entries[0].lkey ^= 1;
    a.run();
    // The WRITE asked for nothing: its last packet goes out again with AckReq.
    ASSERT_EQ(a.out.size(), 3U);
    EXPECT_FALSE(a.out[1].packet.bth.ack_req);
    EXPECT_EQ(a.out[2].psn(), kPsn + 1);
    EXPECT_TRUE(a.out[2].packet.bth.ack_req);
    EXPECT_EQ(a.qp->state(), QpState::kRts);
    ack(1);
    a.run();
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kLocalProtection);
    EXPECT_EQ(a.qp->state(), QpState::kError);
}

TEST_F(RcRequesterScript, malformed_and_changed_requests_fail) {
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    psns();
    a.send_queue.works[0].entries[0].length = 11;  // the client scribbles, then a resend
    a.advance(ack_timeout(a.parameters.timeout));
    a.run();
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kLocalQpOperation);

    Station other(Service::kRc, 0x11);
    other.connect(0x12);
    Work work;
    work.malformed = true;
    other.post(work);
    other.run();
    ASSERT_EQ(other.sends.size(), 1U);
    EXPECT_EQ(other.sends[0].status, Status::kLocalQpOperation);
}

TEST_F(RcRequesterScript, read_into_memory_that_may_not_be_written_is_refused_before_it_is_sent) {
    connect();
    post(WorkOpcode::kRdmaRead, 10);
    a.send_queue.works[0].entries[0].lkey ^= 1;
    a.run();
    EXPECT_TRUE(a.out.empty());
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kLocalProtection);
}

TEST_F(RcRequesterScript, failing_bind_is_a_window_error) {
    connect();
    a.bind_result = Status::kWindowBind;
    Work bind;
    bind.opcode = WorkOpcode::kBindWindow;
    a.post(bind);
    a.run();
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kWindowBind);
    EXPECT_EQ(a.qp->state(), QpState::kError);
}

TEST_F(RcRequesterScript, bind_behind_silent_requests_gets_its_completion) {
    connect();
    post(WorkOpcode::kRdmaWrite, 300, 0);
    Work bind;
    bind.opcode = WorkOpcode::kBindWindow;
    a.post(bind);
    a.run();
    EXPECT_EQ(a.binds.size(), 1U);
    ASSERT_EQ(a.out.size(), 3U);
    EXPECT_EQ(a.out[2].psn(), kPsn + 1);
    EXPECT_TRUE(a.out[2].packet.bth.ack_req);
    ack(1);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.binds.size(), 1U);
    EXPECT_EQ(a.qp->send_consumed(), 2U);
    EXPECT_FALSE(a.qp->wants_run());
}

TEST_F(RcRequesterScript, local_invalidate_waits_for_what_may_be_sent_again) {
    connect();
    memory::RegionInit init = a.region->init();
    init.may_be_invalidated = true;
    const std::uint32_t key = a.keys().add_region(std::move(init))->key();
    const auto usable = [&] { return a.keys().check_local(1, key, Station::kBase, 8, false).ok(); };
    post(WorkOpcode::kRdmaWrite, 10);
    a.send_queue.works.back().entries[0].lkey = key;
    Work invalidate;
    invalidate.opcode = WorkOpcode::kLocalInvalidate;
    invalidate.immediate = key;
    a.post(invalidate);
    psns();
    EXPECT_TRUE(usable());
    ack(0, kNakSequence);
    EXPECT_EQ(psns(), Psns{0});
    EXPECT_TRUE(usable());
    ack(0);
    a.run();
    EXPECT_FALSE(usable());
    ASSERT_EQ(a.sends.size(), 2U);
    EXPECT_EQ(a.sends[1].status, Status::kSuccess);
}

TEST_F(RcRequesterScript, full_completion_queue_is_fatal) {
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    psns();
    a.queue_full = true;
    ack(0);
    EXPECT_EQ(a.qp->state(), QpState::kError);
    EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kFatal});
    a.run();
    EXPECT_EQ(a.events.size(), 1U);
}

}  // namespace
}  // namespace uib::transport::testing
