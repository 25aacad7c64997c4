// Rings of shared receive queues that break the rules: their client is condemned, and nobody else. (The error
// state of an XRC SRQ is in xrc_path_test.cc.)
#include "tests/unit/verbs/pair_fixture.h"

namespace uib::verbs {
namespace {

class SrqRingTest : public PairTest {
  protected:
    void SetUp() override {
        PairTest::SetUp();
        ipc::CreateSrqRequest request{};
        request.pd = pd_;
        request.max_wr = 16;
        request.max_sge = 1;
        ASSERT_EQ(context_->create_srq(*client_, request, srq_), 0);
        control_ = reinterpret_cast<ipc::QueueControl*>(chunks_->at(srq_.queue.control));
        list_ = reinterpret_cast<std::uint32_t*>(chunks_->at(srq_.available));
        target_ = make_qp(cq_, ipc::Service::kRc, srq_.handle + 1);
        sender_ = make_qp(cq_);
        connect(target_, sender_);
        connect(sender_, target_);
    }
    void send(ipc::WorkOpcode opcode) {
        post_send(sender_, wqe(opcode, 1, 4096), memory_.data(), 10, region_.lkey);
    }

    ipc::SrqReply srq_{};
    ipc::QueueControl* control_ = nullptr;
    std::uint32_t* list_ = nullptr;
    TestQp sender_, target_;
};

TEST_F(SrqRingTest, AListThatNamesNoSlotCondemnsTheClient) {
    list_[0] = srq_.queue.entries;
    ipc::publish(*control_, 1);
    send(ipc::WorkOpcode::kSend);
    turn(50);
    EXPECT_NE(client_->condemned(), nullptr);
    EXPECT_TRUE(adapter_.take_attention());
    EXPECT_TRUE(take_events().empty());
}

TEST_F(SrqRingTest, AProducerIndexBeyondTheRingCondemnsTheClient) {
    ipc::publish(*control_, srq_.queue.entries + 1);
    send(ipc::WorkOpcode::kRdmaWrite);
    EXPECT_EQ(wait(cq_).status, IBV_WC_SUCCESS) << "which needs no receive";
    EXPECT_EQ(client_->condemned(), nullptr);
    send(ipc::WorkOpcode::kSend);
    turn(50);
    EXPECT_NE(client_->condemned(), nullptr);
    EXPECT_TRUE(adapter_.take_attention());
}

}  // namespace
}  // namespace uib::verbs
