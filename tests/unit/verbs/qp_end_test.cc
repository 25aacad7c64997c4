// What is owed to a peer when a queue pair goes.
#include "tests/unit/verbs/pair_fixture.h"

namespace uib::verbs {
namespace {

// The receiver's program may be done, and gone, as soon as it has its last completion.
TEST_F(PairTest, TheAcknowledgeOfTheLastMessageIsSentBeforeItsReceiverGoes) {
    constexpr std::uint64_t kReceive = 7, kSend = 8;
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
    ipc::EventsReply events{};
    ASSERT_EQ(context_->destroy_qp(b_.reply.handle, events), 0);
    const Entry second = wait(cq_);
    EXPECT_EQ(second.wr_id, kSend);
    EXPECT_EQ(second.status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace uib::verbs
