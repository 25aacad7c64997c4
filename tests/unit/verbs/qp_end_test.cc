// What is owed to a peer when a queue pair goes.
#include "tests/unit/verbs/pair_fixture.h"

namespace uib::verbs {
namespace {

// The receiver's program may be done, and gone, as soon as it has its last completion.
class LastMessage : public PairTest {
  protected:
    static constexpr std::uint64_t kReceive = 7, kSend = 8;

    /// One message, until its receiver knows of it and its sender does not.
    void SetUp() override {
        PairTest::SetUp();
        post_receive(b_, kReceive, memory_.data() + 4096, 4096, region_.lkey);
        ipc::SendWqe send = wqe(ipc::WorkOpcode::kSend, kSend);
        send.flags = ipc::kWorkSignaled;
        post_send(a_, send, memory_.data(), 4096, region_.lkey);
        std::optional<Entry> first;
        for (int turns = 0; !first && turns < 100; ++turns) {
            adapter_.turn();
            first = poll(cq_);
        }
        ASSERT_TRUE(first.has_value());
        ASSERT_EQ(first->wr_id, kReceive) << "the receiver knows before the sender";
    }

    void expect_acknowledged() {
        const Entry second = wait(cq_);
        EXPECT_EQ(second.wr_id, kSend);
        EXPECT_EQ(second.status, IBV_WC_SUCCESS);
    }
};

TEST_F(LastMessage, IsAcknowledgedBeforeItsReceiverIsDestroyed) {
    ipc::EventsReply events{};
    ASSERT_EQ(context_->destroy_qp(b_.reply.handle, events), 0);
    expect_acknowledged();
}

TEST_F(LastMessage, IsAcknowledgedBeforeItsReceiverIsMovedToError) {
    ASSERT_EQ(modify(b_, IBV_QPS_ERR, 0, {}), 0);
    expect_acknowledged();
}

TEST_F(LastMessage, IsAcknowledgedBeforeItsReceiverIsReset) {
    ASSERT_EQ(modify(b_, IBV_QPS_RESET, 0, {}), 0);
    expect_acknowledged();
}

}  // namespace
}  // namespace uib::verbs
