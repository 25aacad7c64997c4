// Messages through a target QP that another process made: where completions and events go.
#include <array>
#include <utility>

#include "tests/unit/verbs/xrc_fixture.h"

namespace uib::verbs {
namespace {

/// An initiator in this process, a target that the neighbour made, an SRQ of this process in the domain.
class XrcPathTest : public XrcTest {
  protected:
    void SetUp() override {
        const ipc::UniqueFd file = temporary_file();
        ASSERT_EQ(open_domain(maker_.context, *maker_.client, file.get(), O_CREAT, their_xrcd_), 0);
        ASSERT_EQ(open_here(file.get(), 0, xrcd_), 0);
        ASSERT_EQ(make_target(maker_.context, *maker_.client, their_xrcd_, 0x11, target_), 0);
        send_cq_ = make_cq(64);
        receive_cq_ = make_cq(64);
        ASSERT_EQ(make_srq(*context_, *client_, pd_, xrcd_, receive_cq_.reply.handle, srq_), 0);
        srq_control_ = reinterpret_cast<ipc::QueueControl*>(chunks_->at(srq_.queue.control));
        srq_slots_ = chunks_->at(srq_.queue.slots);
        srq_list_ = reinterpret_cast<std::uint32_t*>(chunks_->at(srq_.available));
        initiator_ = make_qp(send_cq_, ipc::Service::kXrcSend);
        ASSERT_EQ(initiator_.reply.receive.entries, 0U);
        region_ = register_memory(memory_.data(), memory_.size(),
                                  ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead |
                                      ipc::kAccessRemoteAtomic);
        for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = static_cast<std::uint8_t>(i * 7);
        connect_both();
    }
    void connect_both() {
        constexpr std::uint32_t kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        constexpr std::uint32_t kRtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        ipc::QpAttributes a{};
        a.port = a.path.port = 1;
        a.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        a.path.dlid = 1;
        a.path_mtu = IBV_MTU_1024;
        a.rq_psn = a.sq_psn = 0xFFFFF0;
        a.max_rd_atomic = a.max_dest_rd_atomic = 4;
        a.min_rnr_timer = 1;
        a.timeout = 14;
        a.retry_count = a.rnr_retry = 7;
        a.dest_qp_number = target_.qp_number;
        ASSERT_EQ(modify(initiator_, IBV_QPS_INIT, kInit, a), 0);
        ASSERT_EQ(modify(initiator_, IBV_QPS_RTR, kRtr, a), 0);
        ASSERT_EQ(modify(initiator_, IBV_QPS_RTS,
                         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC,
                         a),
                  0);
        a.dest_qp_number = initiator_.reply.qp_number;
        ASSERT_EQ(modify_target(IBV_QPS_INIT, kInit, a), 0);
        ASSERT_EQ(modify_target(IBV_QPS_RTR, kRtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, a), 0);
    }
    int modify_target(std::uint8_t state, std::uint32_t mask, ipc::QpAttributes attributes) {
        ipc::ModifyQpRequest request{};
        request.handle = target_.handle;
        request.mask = mask | IBV_QP_STATE;
        request.attributes = attributes;
        request.attributes.state = state;
        return maker_.context.modify_qp(request);
    }
    void post_srq(std::uint64_t wr_id, void* address, std::uint32_t length) {
        const std::uint32_t slot = srq_posted_ % srq_.queue.entries;
        std::byte* to = srq_slots_ + slot * srq_.queue.stride;
        const ipc::ReceiveWqe wqe{wr_id, 1, 0};
        const ipc::ScatterGatherEntry entry{reinterpret_cast<std::uint64_t>(address), length, region_.lkey};
        std::memcpy(to, &wqe, sizeof wqe);
        std::memcpy(to + ipc::kReceiveSgeOffset, &entry, sizeof entry);
        srq_list_[slot] = slot;
        ipc::publish(*srq_control_, ++srq_posted_);
    }
    ipc::SendWqe request(ipc::WorkOpcode opcode, std::uint64_t wr_id, std::size_t remote = 0) {
        ipc::SendWqe wqe{};
        wqe.opcode = static_cast<std::uint8_t>(opcode);
        wqe.wr_id = wr_id;
        wqe.rkey = region_.rkey;
        wqe.remote_address = reinterpret_cast<std::uint64_t>(memory_.data() + remote);
        wqe.remote_qpn = srq_.srq_number;
        return wqe;
    }

    Neighbour maker_{adapter_, *adapter_.devices()[0], 2};
    std::uint32_t xrcd_ = 0, their_xrcd_ = 0;
    ipc::QpReply target_{};
    ipc::SrqReply srq_{};
    ipc::QueueControl* srq_control_ = nullptr;
    std::byte* srq_slots_ = nullptr;
    std::uint32_t* srq_list_ = nullptr;
    std::uint32_t srq_posted_ = 0;
    TestCq send_cq_, receive_cq_;
    TestQp initiator_;
    ipc::RegMrReply region_{};
    std::array<std::uint8_t, 65536> memory_{};
};

TEST_F(XrcPathTest, ASendCompletesOnTheSrqsCqInTheProcessThatMadeTheSrq) {
    post_srq(11, memory_.data() + 40000, 5000);
    post_send(initiator_, request(ipc::WorkOpcode::kSend, 22), memory_.data(), 5000, region_.lkey);
    const Entry receive = wait(receive_cq_), send = wait(send_cq_);
    EXPECT_EQ(receive.wr_id, 11U);
    EXPECT_EQ(receive.status, 0);
    EXPECT_EQ(receive.byte_len, 5000U);
    EXPECT_EQ(receive.qp_number, target_.qp_number);
    EXPECT_EQ(receive.qp_slot, srq_.srq_number);
    EXPECT_EQ(receive.flags & (ipc::kCqeXrcSrq | ipc::kCqeSrq | ipc::kCqeReceive),
              ipc::kCqeXrcSrq | ipc::kCqeReceive);
    EXPECT_EQ(send.wr_id, 22U);
    EXPECT_EQ(send.status, 0);
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 40000, 5000), 0);
}

TEST_F(XrcPathTest, AShortSendTravelsInTheSrqsSlot) {
    post_srq(11, memory_.data() + 40000, 100);
    post_send(initiator_, request(ipc::WorkOpcode::kSend, 22), memory_.data() + 3, 100, region_.lkey);
    const Entry receive = wait(receive_cq_);
    ASSERT_NE(receive.flags & ipc::kCqeInline, 0) << "the SRQ's client places its own payloads";
    const std::byte* slot = srq_slots_ + receive.wqe_index * srq_.queue.stride;
    EXPECT_EQ(std::memcmp(slot + ipc::receive_inline_offset(srq_.queue.max_sge), memory_.data() + 3, 100), 0);
}

TEST_F(XrcPathTest, OneSidedRequestsUseTheSrqsPd) {
    post_send(initiator_, request(ipc::WorkOpcode::kRdmaWrite, 1, 30000), memory_.data(), 9001, region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, 0);
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 30000, 9001), 0);
    post_send(initiator_, request(ipc::WorkOpcode::kRdmaRead, 2, 100), memory_.data() + 50000, 7777,
              region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, 0);
    EXPECT_EQ(std::memcmp(memory_.data() + 100, memory_.data() + 50000, 7777), 0);
    ipc::SendWqe add = request(ipc::WorkOpcode::kFetchAdd, 3, 8);
    add.compare_add = 2;
    std::uint64_t before = 0, after = 0;
    std::memcpy(&before, memory_.data() + 8, sizeof before);
    post_send(initiator_, add, memory_.data() + 1024, 8, region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, 0);
    std::memcpy(&after, memory_.data() + 8, sizeof after);
    EXPECT_EQ(after, before + 2);
}

TEST_F(XrcPathTest, TheSrqsLimitIsReported) {
    ASSERT_EQ(context_->modify_srq({srq_.handle, ipc::kSrqLimit, 0, 2}), 0);
    post_srq(11, memory_.data() + 40000, 100);
    post_srq(12, memory_.data() + 40000, 100);
    post_send(initiator_, request(ipc::WorkOpcode::kSend, 22), memory_.data(), 100, region_.lkey);
    EXPECT_EQ(wait(receive_cq_).wr_id, 11U);
    ipc::AsyncEvent event{};
    ASSERT_EQ(::read(async_pipe_[0], &event, sizeof event), static_cast<ssize_t>(sizeof event));
    EXPECT_EQ(event.type, static_cast<std::uint32_t>(IBV_EVENT_SRQ_LIMIT_REACHED));
    EXPECT_EQ(event.element, 0x5AU);
}

TEST_F(XrcPathTest, AnSrqWhoseCqOverrunsGoesToTheErrorState) {
    TestCq tiny = make_cq(2);
    ipc::SrqReply srq{};
    ASSERT_EQ(make_srq(*context_, *client_, pd_, xrcd_, tiny.reply.handle, srq), 0);
    std::swap(srq, srq_);
    srq_control_ = reinterpret_cast<ipc::QueueControl*>(chunks_->at(srq_.queue.control));
    srq_slots_ = chunks_->at(srq_.queue.slots);
    srq_list_ = reinterpret_cast<std::uint32_t*>(chunks_->at(srq_.available));
    for (std::uint32_t i = 0; i <= tiny.reply.entries; ++i) {
        post_srq(i, memory_.data() + 40000, 100);
        post_send(initiator_, request(ipc::WorkOpcode::kSend, i), memory_.data(), 100, region_.lkey);
        turn();
    }
    const std::vector<ipc::AsyncEvent> events = take_events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].type, static_cast<std::uint32_t>(IBV_EVENT_CQ_ERR));
    EXPECT_EQ(events[1].type, static_cast<std::uint32_t>(IBV_EVENT_SRQ_ERR));
    EXPECT_EQ(events[1].element, 0x5AU);
    ipc::AsyncEvent theirs{};
    do {
        ASSERT_EQ(::read(maker_.pipe[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
    } while (theirs.type == static_cast<std::uint32_t>(IBV_EVENT_COMM_EST));
    EXPECT_EQ(theirs.type, static_cast<std::uint32_t>(IBV_EVENT_QP_FATAL));
    EXPECT_EQ(theirs.element, 0x11U);
    // For good, and its event comes once: the next target QP that asks it for a receive ends, too
    // (o9-157.2.3).
    ASSERT_EQ(make_target(maker_.context, *maker_.client, their_xrcd_, 0x12, target_), 0);
    send_cq_ = make_cq(64);
    initiator_ = make_qp(send_cq_, ipc::Service::kXrcSend);
    connect_both();
    post_send(initiator_, request(ipc::WorkOpcode::kRdmaWrite, 30, 4096), memory_.data(), 10, region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, IBV_WC_SUCCESS) << "which needs no receive";
    post_send(initiator_, request(ipc::WorkOpcode::kSend, 31), memory_.data(), 10, region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, IBV_WC_REM_OP_ERR);
    for (const ipc::AsyncEvent& event : take_events()) EXPECT_NE(event.type, IBV_EVENT_SRQ_ERR);
    EXPECT_EQ(client_->condemned(), nullptr);
    ipc::EventsReply owed{};
    ASSERT_EQ(context_->destroy_srq(srq_.handle, owed), 0);
    EXPECT_EQ(owed.async_events, 1U);
}

TEST_F(XrcPathTest, AnSrqThatIsGoneOrOfAnotherDomainEndsTheInitiator) {
    ipc::EventsReply events{};
    ASSERT_EQ(context_->destroy_srq(srq_.handle, events), 0);
    post_send(initiator_, request(ipc::WorkOpcode::kSend, 22), memory_.data(), 100, region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, IBV_WC_REM_INV_RD_REQ_ERR);
}

TEST_F(XrcPathTest, TheMakersDeathDoesNotDisturbThoseWhoHoldItsTarget) {
    ipc::QpReply opened{};
    ASSERT_EQ(context_->open_qp(*client_, {0x22, xrcd_, target_.qp_number}, opened), 0);
    maker_.leave();
    post_srq(11, memory_.data() + 40000, 5000);
    post_send(initiator_, request(ipc::WorkOpcode::kSend, 22), memory_.data(), 5000, region_.lkey);
    EXPECT_EQ(wait(receive_cq_).status, 0);
    EXPECT_EQ(wait(send_cq_).status, 0);
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 40000, 5000), 0);
}

TEST_F(XrcPathTest, EventsOfATargetGoToEachHolder) {
    ipc::QpReply opened{};
    ASSERT_EQ(context_->open_qp(*client_, {0x22, xrcd_, target_.qp_number}, opened), 0);
    ipc::SendWqe bad = request(ipc::WorkOpcode::kRdmaWrite, 1);
    bad.rkey ^= 0x100;
    post_send(initiator_, bad, memory_.data(), 64, region_.lkey);
    EXPECT_EQ(wait(send_cq_).status, IBV_WC_REM_ACCESS_ERR);
    const auto wait_for = [](int pipe) {
        ipc::AsyncEvent event{};
        while (::read(pipe, &event, sizeof event) == static_cast<ssize_t>(sizeof event))
            if (event.type == IBV_EVENT_QP_ACCESS_ERR) return event.element;
        return std::uint64_t{0};
    };
    EXPECT_EQ(wait_for(maker_.pipe[0]), 0x11U);
    EXPECT_EQ(wait_for(async_pipe_[0]), 0x22U);
    ipc::EventsReply ours{}, theirs{};
    ASSERT_EQ(context_->destroy_qp(opened.handle, ours), 0);
    ASSERT_EQ(maker_.context.destroy_qp(target_.handle, theirs), 0);
    EXPECT_EQ(ours.async_events, theirs.async_events);
    EXPECT_GE(ours.async_events, 1U);
}

}  // namespace
}  // namespace uib::verbs
