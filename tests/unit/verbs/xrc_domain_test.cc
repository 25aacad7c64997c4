// XRC domains, their SRQs and target QPs: who shares what, and who keeps what alive.
#include "tests/unit/verbs/xrc_fixture.h"

namespace uib::verbs {
namespace {

TEST_F(XrcTest, FlagsDecideWhetherADomainIsMadeOrFound) {
    const ipc::UniqueFd file = temporary_file(), other = temporary_file();
    std::uint32_t a = 0, b = 0;
    EXPECT_EQ(open_here(file.get(), 0, a), ENOENT);
    ASSERT_EQ(open_here(file.get(), O_CREAT | O_EXCL, a), 0);
    EXPECT_EQ(open_here(file.get(), O_CREAT | O_EXCL, b), EEXIST);
    EXPECT_EQ(open_here(file.get(), 0, b), 0);
    EXPECT_EQ(open_here(other.get(), 0, b), ENOENT);
    EXPECT_EQ(open_here(-1, 0, b), ENOENT);
    EXPECT_EQ(open_here(-1, O_CREAT, b), 0);
    EXPECT_EQ(open_here(file.get(), O_CREAT | O_APPEND, b), EINVAL);
    const ipc::OpenXrcdRequest lost{O_CREAT, 1};
    EXPECT_EQ(context_->open_xrcd(*client_, lost, ipc::UniqueFd(), b), EBADF);
}

TEST_F(XrcTest, ADomainGoesWithItsLastOpener) {
    const ipc::UniqueFd file = temporary_file();
    std::uint32_t a = 0, b = 0, c = 0;
    ASSERT_EQ(open_here(file.get(), O_CREAT, a), 0);
    ASSERT_EQ(open_here(file.get(), 0, b), 0);
    ASSERT_EQ(context_->close_xrcd(a), 0);
    EXPECT_EQ(context_->close_xrcd(a), ENOENT);
    ASSERT_EQ(open_here(file.get(), 0, c), 0) << "the other handle keeps it";
    ASSERT_EQ(context_->close_xrcd(b), 0);
    ASSERT_EQ(context_->close_xrcd(c), 0);
    EXPECT_EQ(open_here(file.get(), 0, c), ENOENT);
}

TEST_F(XrcTest, DevicesDoNotShareADomain) {
    const ipc::UniqueFd file = temporary_file();
    Neighbour elsewhere(adapter_, *adapter_.devices()[1], 2);
    std::uint32_t a = 0, b = 0;
    ASSERT_EQ(open_here(file.get(), O_CREAT, a), 0);
    EXPECT_EQ(open_domain(elsewhere.context, *elsewhere.client, file.get(), 0, b), ENOENT);
}

TEST_F(XrcTest, SrqHoldsItsDomainAndItsCq) {
    std::uint32_t xrcd = 0;
    ASSERT_EQ(open_here(-1, O_CREAT, xrcd), 0);
    const TestCq cq = make_cq(8);
    ipc::SrqReply srq{};
    ASSERT_EQ(make_srq(*context_, *client_, pd_, xrcd, cq.reply.handle, srq), 0);
    ipc::EventsReply events{};
    EXPECT_EQ(context_->close_xrcd(xrcd), EBUSY);
    EXPECT_EQ(context_->destroy_cq(cq.reply.handle, events), EBUSY);
    EXPECT_EQ(context_->dealloc_pd(pd_), EBUSY);
    ASSERT_EQ(context_->destroy_srq(srq.handle, events), 0);
    EXPECT_EQ(context_->close_xrcd(xrcd), 0);
    EXPECT_EQ(context_->destroy_cq(cq.reply.handle, events), 0);
}

TEST_F(XrcTest, SrqNumbersAreTheAdaptersAndFoundInTheirDomainOnly) {
    std::uint32_t xrcd = 0, other = 0;
    ASSERT_EQ(open_here(-1, O_CREAT, xrcd), 0);
    ASSERT_EQ(open_here(-1, O_CREAT, other), 0);
    const TestCq cq = make_cq(8);
    ipc::SrqReply a{}, b{};
    ASSERT_EQ(make_srq(*context_, *client_, pd_, xrcd, cq.reply.handle, a), 0);
    ASSERT_EQ(make_srq(*context_, *client_, pd_, other, cq.reply.handle, b), 0);
    EXPECT_NE(a.srq_number, b.srq_number);
    unsigned domains = 0;
    for (std::uint32_t domain = 1; domain <= 2; ++domain) {
        const transport::XrcReceiveQueue* found = adapter_.xrc_receive_queue(a.srq_number, domain);
        if (found == nullptr) continue;
        ++domains;
        EXPECT_EQ(found->number, a.srq_number);
        EXPECT_EQ(found->client, client_->id());
    }
    EXPECT_EQ(domains, 1U);
    ipc::EventsReply events{};
    ASSERT_EQ(context_->destroy_srq(a.handle, events), 0);
    EXPECT_EQ(adapter_.xrc_receive_queue(a.srq_number, 1), nullptr);
}

TEST_F(XrcTest, AnXrcSrqIsNoRcQpsSrq) {
    std::uint32_t xrcd = 0;
    ASSERT_EQ(open_here(-1, O_CREAT, xrcd), 0);
    const TestCq cq = make_cq(8);
    ipc::SrqReply srq{};
    ASSERT_EQ(make_srq(*context_, *client_, pd_, xrcd, cq.reply.handle, srq), 0);
    ipc::CreateQpRequest request{};
    request.pd = pd_;
    request.send_cq = request.recv_cq = cq.reply.handle;
    request.service = static_cast<std::uint32_t>(ipc::Service::kRc);
    request.srq = srq.handle + 1;
    ipc::QpReply qp{};
    EXPECT_EQ(context_->create_qp(*client_, request, qp), EINVAL);
}

TEST_F(XrcTest, ATargetOutlivesItsMakerWhileSomebodyHoldsIt) {
    const ipc::UniqueFd file = temporary_file();
    Neighbour maker(adapter_, *adapter_.devices()[0], 2);
    std::uint32_t theirs = 0, ours = 0, strange = 0;
    ASSERT_EQ(open_domain(maker.context, *maker.client, file.get(), O_CREAT, theirs), 0);
    ASSERT_EQ(open_here(file.get(), 0, ours), 0);
    ASSERT_EQ(open_here(-1, O_CREAT, strange), 0);
    ipc::QpReply made{}, opened{};
    ASSERT_EQ(make_target(maker.context, *maker.client, theirs, 0x11, made), 0);
    EXPECT_EQ(context_->open_qp(*client_, {0x22, strange, made.qp_number}, opened), EINVAL);
    EXPECT_EQ(context_->open_qp(*client_, {0x22, ours, made.qp_number + 1}, opened), EINVAL);
    ASSERT_EQ(context_->open_qp(*client_, {0x22, ours, made.qp_number}, opened), 0);
    EXPECT_EQ(opened.qp_number, made.qp_number);
    EXPECT_EQ(context_->close_xrcd(ours), EBUSY);
    ASSERT_EQ(to_init(*context_, opened.handle), 0);
    ipc::QueryQpReply seen{};
    ASSERT_EQ(maker.context.query_qp(made.handle, seen), 0);
    EXPECT_EQ(seen.attributes.state, IBV_QPS_INIT) << "all holders see one QP";

    maker.leave();
    ASSERT_EQ(context_->query_qp(opened.handle, seen), 0);
    EXPECT_EQ(seen.attributes.state, IBV_QPS_INIT);
    ipc::EventsReply events{};
    ASSERT_EQ(context_->destroy_qp(opened.handle, events), 0);
    EXPECT_EQ(context_->open_qp(*client_, {0x22, ours, made.qp_number}, opened), EINVAL) << "gone";
    EXPECT_EQ(context_->close_xrcd(ours), 0);
}

TEST_F(XrcTest, ATargetGoesWithItsMakerWhenNobodyElseHoldsIt) {
    const ipc::UniqueFd file = temporary_file();
    Neighbour maker(adapter_, *adapter_.devices()[0], 2);
    std::uint32_t theirs = 0, ours = 0;
    ASSERT_EQ(open_domain(maker.context, *maker.client, file.get(), O_CREAT, theirs), 0);
    ASSERT_EQ(open_here(file.get(), 0, ours), 0);
    ipc::QpReply made{}, opened{};
    ASSERT_EQ(make_target(maker.context, *maker.client, theirs, 0x11, made), 0);
    maker.leave();
    EXPECT_EQ(context_->open_qp(*client_, {0x22, ours, made.qp_number}, opened), EINVAL);
}

}  // namespace
}  // namespace uib::verbs
