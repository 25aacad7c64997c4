// The error state of shared receive queues (IBA 9.9.3.1.1): who hears of it, and what becomes of the queue
// pairs that draw from it.
#include <vector>

#include "tests/unit/verbs/pair_fixture.h"

namespace uib::verbs {
namespace {

constexpr std::uint64_t kSrqHandle = 0x5A;

class SrqErrorTest : public PairTest {
  protected:
    void SetUp() override {
        PairTest::SetUp();
        ipc::CreateSrqRequest request{};
        request.user_handle = kSrqHandle;
        request.pd = pd_;
        request.max_wr = 16;
        request.max_sge = 1;
        ASSERT_EQ(context_->create_srq(*client_, request, srq_), 0);
        control_ = reinterpret_cast<ipc::QueueControl*>(chunks_->at(srq_.queue.control));
        list_ = reinterpret_cast<std::uint32_t*>(chunks_->at(srq_.available));
        target_ = make_qp(cq_, ipc::Service::kRc, srq_.handle + 1);
        other_ = make_qp(cq_, ipc::Service::kRc, srq_.handle + 1);
        sender_ = make_qp(cq_);
        connect(target_, sender_);
        connect(sender_, target_);
        connect(other_, b_);
    }
    void send() { post_send(sender_, wqe(ipc::WorkOpcode::kSend, 1), memory_.data(), 10, region_.lkey); }
    std::uint8_t state_of(const TestQp& qp) {
        ipc::QueryQpReply reply{};
        EXPECT_EQ(context_->query_qp(qp.reply.handle, reply), 0);
        return reply.attributes.state;
    }
    /// After one SEND to `target_`.
    void expect_failed() {
        EXPECT_EQ(wait(cq_).status, IBV_WC_REM_OP_ERR);
        turn();
        EXPECT_EQ(state_of(target_), IBV_QPS_ERR);
        EXPECT_EQ(state_of(other_), IBV_QPS_RTS) << "until it needs a receive";
        const std::vector<ipc::AsyncEvent> events = take_events();
        ASSERT_EQ(events.size(), 3U);
        EXPECT_EQ(events[0].type, IBV_EVENT_SRQ_ERR);
        EXPECT_EQ(events[0].element, kSrqHandle);
        EXPECT_EQ(events[1].type, IBV_EVENT_QP_FATAL);
        EXPECT_EQ(events[2].type, IBV_EVENT_QP_LAST_WQE_REACHED);
        EXPECT_EQ(client_->condemned(), nullptr);
    }

    ipc::SrqReply srq_{};
    ipc::QueueControl* control_ = nullptr;
    std::uint32_t* list_ = nullptr;
    TestQp sender_, target_, other_;  ///< the first is connected to the second
};

TEST_F(SrqErrorTest, a_list_that_names_no_slot) {
    list_[0] = srq_.queue.entries;
    ipc::publish(*control_, 1);
    send();
    expect_failed();
    ipc::EventsReply owed{};
    ASSERT_EQ(context_->destroy_qp(target_.reply.handle, owed), 0);
    ASSERT_EQ(context_->destroy_qp(other_.reply.handle, owed), 0);
    ASSERT_EQ(context_->destroy_srq(srq_.handle, owed), 0);
    EXPECT_EQ(owed.async_events, 1U);
}

TEST_F(SrqErrorTest, a_producer_index_beyond_the_ring) {
    ipc::publish(*control_, srq_.queue.entries + 1);
    send();
    expect_failed();
}

TEST_F(SrqErrorTest, the_state_is_for_good_and_its_event_comes_once) {
    ipc::publish(*control_, srq_.queue.entries + 1);
    send();
    expect_failed();
    // A ring that looks well again.
    list_[0] = 0;
    ipc::publish(*control_, 1);
    TestQp late = make_qp(cq_, ipc::Service::kRc, srq_.handle + 1), late_sender = make_qp(cq_);
    connect(late, late_sender);
    connect(late_sender, late);
    post_send(late_sender, wqe(ipc::WorkOpcode::kSend, 2), memory_.data(), 10, region_.lkey);
    EXPECT_EQ(wait(cq_).status, IBV_WC_REM_OP_ERR);
    turn();
    EXPECT_EQ(state_of(late), IBV_QPS_ERR);
    for (const ipc::AsyncEvent& event : take_events()) EXPECT_NE(event.type, IBV_EVENT_SRQ_ERR);
}

TEST_F(SrqErrorTest, rdma_writes_need_no_receive) {
    ipc::publish(*control_, srq_.queue.entries + 1);
    post_send(sender_, wqe(ipc::WorkOpcode::kRdmaWrite, 3, 4096), memory_.data(), 10, region_.lkey);
    EXPECT_EQ(wait(cq_).status, IBV_WC_SUCCESS);
    EXPECT_EQ(state_of(target_), IBV_QPS_RTS);
}

}  // namespace
}  // namespace uib::verbs
