// The adapter over real shared rings: messages move, bytes arrive, and what a hostile client writes hurts
// itself only.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "tests/unit/verbs/pair_fixture.h"

namespace uib::verbs {
namespace {

TEST_F(PairTest, SendArrivesWithItsBytesAndBothSidesComplete) {
    post_receive(b_, 11, memory_.data() + 40000, 5000, region_.lkey);
    post_send(a_, wqe(ipc::WorkOpcode::kSend, 22), memory_.data(), 5000, region_.lkey);
    const Entry first = wait(cq_), second = wait(cq_);
    const Entry& receive = (first.flags & ipc::kCqeReceive) != 0 ? first : second;
    const Entry& send = &receive == &first ? second : first;
    EXPECT_EQ(receive.wr_id, 11U);
    EXPECT_EQ(receive.status, 0);
    EXPECT_EQ(receive.byte_len, 5000U);
    EXPECT_EQ(send.wr_id, 22U);
    EXPECT_EQ(send.status, 0);
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 40000, 5000), 0);
    EXPECT_LE(first.timestamp_ns, second.timestamp_ns);
}

TEST_F(PairTest, ShortSendTravelsInTheReceiveSlot) {
    post_receive(b_, 11, memory_.data() + 40000, 100, region_.lkey);
    post_send(a_, wqe(ipc::WorkOpcode::kSend, 22), memory_.data() + 3, 100, region_.lkey);
    const Entry first = wait(cq_), second = wait(cq_);
    const Entry& receive = (first.flags & ipc::kCqeReceive) != 0 ? first : second;
    ASSERT_NE(receive.flags & ipc::kCqeInline, 0);
    const std::byte* slot = b_.receive_slots + receive.wqe_index * b_.reply.receive.stride;
    EXPECT_EQ(
        std::memcmp(slot + ipc::receive_inline_offset(b_.reply.receive.max_sge), memory_.data() + 3, 100), 0);
}

TEST_F(PairTest, ShortSendIsWrittenByTheEngineWhereTheProviderCannot) {
    memory::RegionInit init;
    init.pd = 1;  // the context's only PD is the adapter's first
    init.access = ipc::kAccessLocalWrite;
    init.iova = init.space_address = reinterpret_cast<std::uint64_t>(memory_.data() + 40000);
    init.length = 4096;
    init.space = client_->space();
    init.placing_client = 99;  // of another session: imported
    const memory::Region* foreign = adapter_.keys().add_region(init);
    post_receive(b_, 11, memory_.data() + 40000, 100, foreign->key());
    post_send(a_, wqe(ipc::WorkOpcode::kSend, 22), memory_.data() + 3, 100, region_.lkey);
    const Entry first = wait(cq_), second = wait(cq_);
    const Entry& receive = (first.flags & ipc::kCqeReceive) != 0 ? first : second;
    EXPECT_EQ(receive.status, 0);
    EXPECT_EQ(receive.flags & ipc::kCqeInline, 0);
    EXPECT_EQ(std::memcmp(memory_.data() + 40000, memory_.data() + 3, 100), 0);
}

TEST_F(PairTest, ReregisteringRightsKeepsTheKeyAndAMoveChangesIt) {
    ipc::ReregMrRequest request{};
    request.handle = region_.handle;
    request.flags = ipc::kReregAccess;
    request.to.access = ipc::kAccessLocalWrite;
    ipc::RegMrReply reply{};
    ASSERT_EQ(context_->rereg_mr(request, -1, reply), 0);
    EXPECT_EQ(reply.rkey, region_.rkey);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 1), memory_.data() + 64, 8, region_.lkey);
    EXPECT_EQ(wait(cq_).status, IBV_WC_REM_ACCESS_ERR) << "the right to write was taken away";
    request.flags = ipc::kReregTranslation;
    request.to.address = request.to.iova = reinterpret_cast<std::uint64_t>(memory_.data());
    request.to.length = 100;
    ASSERT_EQ(context_->rereg_mr(request, -1, reply), 0);
    EXPECT_NE(reply.rkey, region_.rkey);
}

TEST_F(PairTest, WriteAndReadMoveBytesAcrossTheRegion) {
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 1, 30000), memory_.data(), 9001, region_.lkey);
    EXPECT_EQ(wait(cq_).status, 0);
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 30000, 9001), 0);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaRead, 2, 100), memory_.data() + 50000, 7777, region_.lkey);
    EXPECT_EQ(wait(cq_).status, 0);
    EXPECT_EQ(std::memcmp(memory_.data() + 100, memory_.data() + 50000, 7777), 0);
}

TEST_F(PairTest, FetchAddReturnsWhatWasThere) {
    std::uint64_t value = 40;
    std::memcpy(memory_.data() + 8, &value, sizeof value);
    ipc::SendWqe w = wqe(ipc::WorkOpcode::kFetchAdd, 1, 8);
    w.compare_add = 2;
    post_send(a_, w, memory_.data() + 1024, 8, region_.lkey);
    EXPECT_EQ(wait(cq_).status, 0);
    std::memcpy(&value, memory_.data() + 1024, sizeof value);
    EXPECT_EQ(value, 40U);
    std::memcpy(&value, memory_.data() + 8, sizeof value);
    EXPECT_EQ(value, 42U);
}

TEST_F(PairTest, WrongKeyIsARemoteAccessErrorAndFlushesTheRest) {
    ipc::SendWqe bad = wqe(ipc::WorkOpcode::kRdmaWrite, 1, 0);
    bad.rkey ^= 0x100;
    post_send(a_, bad, memory_.data(), 64, region_.lkey);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 2), memory_.data(), 64, region_.lkey);
    EXPECT_EQ(wait(cq_).status, IBV_WC_REM_ACCESS_ERR);
    const Entry flushed = wait(cq_);
    EXPECT_EQ(flushed.wr_id, 2U);
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(PairTest, ReceivesPostedInTheErrorStateAreFlushed) {
    ASSERT_EQ(modify(b_, IBV_QPS_ERR, 0, {}), 0);
    turn();
    post_receive(b_, 77, memory_.data(), 10, region_.lkey);
    const Entry entry = wait(cq_);
    EXPECT_EQ(entry.wr_id, 77U);
    EXPECT_EQ(entry.status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(PairTest, UnmappedMemoryCompletesWithAProtectionError) {
    // The region was good when it was registered; then its pages went.
    const std::size_t page = 4096;
    void* gone = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    std::memset(gone, 1, page);
    const auto region = register_memory(gone, page, ipc::kAccessLocalWrite);
    ::munmap(gone, page);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 5), gone, 1000, region.lkey);
    const Entry entry = wait(cq_);
    EXPECT_EQ(entry.wr_id, 5U);
    EXPECT_EQ(entry.status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(PairTest, IdleQueuesLeaveTheLaneQuietAndAreFoundAgain) {
    turn(1000);
    EXPECT_TRUE(adapter_.quiet());
    EXPECT_EQ(a_.send_control->need_doorbell.load(), 1U);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 3, 1000), memory_.data(), 10, region_.lkey);
    EXPECT_FALSE(adapter_.quiet());
    EXPECT_EQ(wait(cq_).wr_id, 3U);
}

TEST_F(PairTest, ProducerFarAheadCondemnsTheClient) {
    publish_send(a_, 1000);
    turn();
    ASSERT_NE(client_->condemned(), nullptr);
    EXPECT_TRUE(adapter_.take_attention());
}

TEST_F(PairTest, GarbageWorkRequestsFailTheirQueuePairOnly) {
    std::mt19937 random(4711);
    for (int round = 0; round < 200; ++round) {
        TestQp bad = make_qp(cq_), peer = make_qp(cq_);
        connect(bad, peer);
        connect(peer, bad);
        for (std::size_t i = 0; i < std::size_t{16} * bad.reply.send.stride; ++i)
            bad.send_slots[i] = static_cast<std::byte>(random());
        publish_send(bad, 16);
        turn(50);
        while (poll(cq_)) {
        }
        ipc::EventsReply events{};
        ASSERT_EQ(context_->destroy_qp(bad.reply.handle, events), 0);
        ASSERT_EQ(context_->destroy_qp(peer.reply.handle, events), 0);
    }
    ASSERT_EQ(client_->condemned(), nullptr);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 9, 20000), memory_.data(), 4000, region_.lkey);
    EXPECT_EQ(wait(cq_).status, 0);
}

TEST_F(PairTest, FullCompletionQueueRaisesItsEventAndFailsTheQueuePair) {
    TestCq tiny = make_cq(2);
    TestQp c = make_qp(tiny), d = make_qp(cq_);
    connect(c, d);
    connect(d, c);
    for (int i = 0; i < 4; ++i)
        post_send(c, wqe(ipc::WorkOpcode::kRdmaWrite, 100 + i), memory_.data(), 8, region_.lkey);
    turn();
    ipc::AsyncEvent event{};
    ASSERT_EQ(::read(async_pipe_[0], &event, sizeof event), static_cast<ssize_t>(sizeof event));
    EXPECT_EQ(event.type, static_cast<std::uint32_t>(IBV_EVENT_CQ_ERR));
    EXPECT_EQ(event.element, 0xC0U);
    ipc::QueryQpReply query{};
    ASSERT_EQ(context_->query_qp(c.reply.handle, query), 0);
    EXPECT_EQ(query.attributes.state, IBV_QPS_ERR);
    EXPECT_EQ(tiny.control->overrun.load(), 1U);
}

TEST_F(PairTest, ResizeKeepsWhatIsUnpolled) {
    for (int i = 0; i < 3; ++i)
        post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 200 + i), memory_.data(), 8, region_.lkey);
    turn();
    ipc::CqReply reply{};
    EXPECT_EQ(context_->resize_cq({cq_.reply.handle, 2}, reply), EINVAL);
    ASSERT_EQ(context_->resize_cq({cq_.reply.handle, 1000}, reply), 0);
    EXPECT_EQ(reply.entries, 1024U);
    cq_.reply = reply;
    cq_.control = reinterpret_cast<ipc::CqControl*>(chunks_->at(reply.control));
    cq_.ring = reinterpret_cast<ipc::Cqe*>(chunks_->at(reply.ring));
    for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(wait(cq_).wr_id, 200 + i);
    post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 300), memory_.data(), 8, region_.lkey);
    EXPECT_EQ(wait(cq_).wr_id, 300U);
}

TEST_F(PairTest, ResizeDoesNotOvertakeWorkPostedBefore) {
    for (int i = 0; i < 3; ++i)
        post_send(a_, wqe(ipc::WorkOpcode::kRdmaWrite, 200 + i), memory_.data(), 8, region_.lkey);
    ipc::CqReply reply{};
    EXPECT_EQ(context_->resize_cq({cq_.reply.handle, 2}, reply), EINVAL) << "three completions do not fit";
}

class ChannelTest : public PairTest {
  protected:
    void SetUp() override {
        ASSERT_EQ(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK), 0);
        std::uint32_t channel = 0;
        ASSERT_EQ(context_->create_channel(*client_, ipc::UniqueFd(::dup(pipe_[1])), channel), 0);
        PairTest::SetUp();
        with_events_ = make_cq(64, channel + 1);
        c_ = make_qp(with_events_);
        d_ = make_qp(cq_);
        connect(c_, d_);
        connect(d_, c_);
    }
    void TearDown() override {
        ::close(pipe_[0]);
        ::close(pipe_[1]);
    }
    int events() {
        std::uint64_t element = 0;
        int count = 0;
        while (::read(pipe_[0], &element, sizeof element) == static_cast<ssize_t>(sizeof element)) {
            EXPECT_EQ(element, 0xC0U);
            ++count;
        }
        return count;
    }
    void one_message() {
        post_send(c_, wqe(ipc::WorkOpcode::kRdmaWrite, 1), memory_.data(), 8, region_.lkey);
        turn();
    }

    int pipe_[2] = {-1, -1};
    TestCq with_events_;
    TestQp c_, d_;
};

TEST_F(ChannelTest, OneEventForEachArming) {
    one_message();
    EXPECT_EQ(events(), 0) << "not armed";
    with_events_.control->armed.store(ipc::kArmAll);
    one_message();
    one_message();
    EXPECT_EQ(events(), 1);
    with_events_.control->armed.store(ipc::kArmSolicited);
    one_message();
    EXPECT_EQ(events(), 0) << "an unsolicited success does not count";
    EXPECT_EQ(with_events_.control->armed.load(), static_cast<std::uint32_t>(ipc::kArmSolicited));
}

TEST_F(ChannelTest, ArmedForSolicitedASolicitedReceiveOrAnErrorOwesAnEvent) {
    for (const bool solicited : {false, true}) {
        with_events_.control->armed.store(ipc::kArmSolicited);
        post_receive(c_, 1, memory_.data() + 4096, 64, region_.lkey);
        ipc::SendWqe send = wqe(ipc::WorkOpcode::kSend, 2);
        send.flags = static_cast<std::uint8_t>(ipc::kWorkSignaled | (solicited ? ipc::kWorkSolicited : 0));
        post_send(d_, send, memory_.data(), 8, region_.lkey);
        turn();
        EXPECT_EQ(events(), solicited ? 1 : 0);
    }
    with_events_.control->armed.store(ipc::kArmSolicited);
    ipc::SendWqe bad = wqe(ipc::WorkOpcode::kRdmaWrite, 3);
    bad.rkey ^= 0x100;
    post_send(c_, bad, memory_.data(), 8, region_.lkey);
    turn();
    EXPECT_EQ(events(), 1) << "an error counts as solicited";
}

TEST_F(ChannelTest, EntryFromBeforeTheArmingOwesNoEvent) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    Channel channel{client_.get(), 0, EventPipe(ipc::UniqueFd(ends[1]), sizeof(std::uint64_t))};
    CompletionQueue cq(*client_, 0xC1, &channel, false);
    ASSERT_EQ(cq.resize(4), 0);
    auto* control = reinterpret_cast<ipc::CqControl*>(chunks_->at(cq.control_location()));
    ipc::Cqe entry{};
    std::uint64_t element = 0;
    ASSERT_TRUE(cq.push(entry, 1));
    control->armed.store(ipc::kArmAll);  // by a client that has polled the entry within the turn
    EXPECT_EQ(cq.settle(1), transport::kNever);
    EXPECT_EQ(::read(ends[0], &element, sizeof element), -1);
    ASSERT_TRUE(cq.push(entry, 2));
    EXPECT_EQ(cq.settle(2), transport::kNever);
    EXPECT_EQ(::read(ends[0], &element, sizeof element), static_cast<ssize_t>(sizeof element));
    EXPECT_EQ(element, 0xC1U);
    ::close(ends[0]);
}

TEST_F(ChannelTest, ModerationHoldsEventsBack) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    Channel channel{client_.get(), 0, EventPipe(ipc::UniqueFd(ends[1]), sizeof(std::uint64_t))};
    CompletionQueue cq(*client_, 0xC1, &channel, false);
    ASSERT_EQ(cq.resize(16), 0);
    cq.moderate(3, 10);
    auto* control = reinterpret_cast<ipc::CqControl*>(chunks_->at(cq.control_location()));
    control->armed.store(ipc::kArmAll);
    ipc::Cqe entry{};
    std::uint64_t element = 0;
    ASSERT_TRUE(cq.push(entry, 1000));
    EXPECT_EQ(cq.settle(1000), 11'000U) << "due 10 us after the first entry";
    EXPECT_EQ(::read(ends[0], &element, sizeof element), -1);
    EXPECT_EQ(cq.settle(11'000), transport::kNever);
    EXPECT_EQ(::read(ends[0], &element, sizeof element), static_cast<ssize_t>(sizeof element))
        << "its time is up";
    control->armed.store(ipc::kArmAll);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(cq.push(entry, 20'000));
    EXPECT_EQ(cq.settle(20'000), transport::kNever);
    EXPECT_EQ(::read(ends[0], &element, sizeof element), static_cast<ssize_t>(sizeof element))
        << "three are there";
    ::close(ends[0]);
}

}  // namespace
}  // namespace uib::verbs
