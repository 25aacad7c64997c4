// Modify QP and Query QP together (IBA 11.2.5.2, 11.2.5.3): what was set is what is shown, what was refused
// has changed nothing, and the limits that the device tells are those that hold.
#include <cerrno>

#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {
namespace {

constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kConnect = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kResponder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRequester =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN;

class QpQueryTest : public AdapterTest {
  protected:
    void SetUp() override { cq_ = make_cq(64); }

    /// Every attribute with a value of its own.
    ipc::QpAttributes wanted() const {
        ipc::QpAttributes a{};
        a.port = a.path.port = a.alternate_path.port = a.alternate_port = 1;
        a.access = IBV_ACCESS_REMOTE_READ;
        a.qkey = 0x12345678;
        a.path.dlid = 0x1234;
        a.path.sl = 5;
        a.path.static_rate = IBV_RATE_20_GBPS;
        a.path.source_path_bits = 3;
        a.path.is_global = 1;
        a.path.dgid[0] = 0xFD;
        a.path.dgid[15] = 0x77;
        a.path.flow_label = 0xABCDE;
        a.path.hop_limit = 61;
        a.path.traffic_class = 0x2C;
        a.alternate_path.dlid = 0x4321;
        a.alternate_path.sl = 9;
        a.alternate_timeout = 17;
        a.path_mtu = IBV_MTU_2048;
        a.dest_qp_number = 0xABCDEF;
        a.rq_psn = 0x123456;
        a.sq_psn = 0x654321;
        a.max_rd_atomic = 7;
        a.max_dest_rd_atomic = 11;
        a.min_rnr_timer = 13;
        a.timeout = 19;
        a.retry_count = 6;
        a.rnr_retry = 5;
        a.path_migration_state = IBV_MIG_MIGRATED;
        return a;
    }
    ipc::QpAttributes query(const TestQp& qp) {
        ipc::QueryQpReply reply{};
        EXPECT_EQ(context_->query_qp(qp.reply.handle, reply), 0);
        return reply.attributes;
    }
    int modify_only(const TestQp& qp, std::uint32_t mask, const ipc::QpAttributes& attributes) {
        ipc::ModifyQpRequest request{};
        request.handle = qp.reply.handle;
        request.mask = mask;
        request.attributes = attributes;
        return context_->modify_qp(request);
    }
    /// The attributes of `mask` are shown as they were set.
    static void expect_shown(const ipc::QpAttributes& now, const ipc::QpAttributes& set, int mask) {
        const auto same = [&](int bit, std::uint64_t shown, std::uint64_t value) {
            if ((mask & bit) != 0) {
                EXPECT_EQ(shown, value) << "attribute " << bit;
            }
        };
        same(IBV_QP_ACCESS_FLAGS, now.access, set.access);
        same(IBV_QP_PKEY_INDEX, now.pkey_index, set.pkey_index);
        same(IBV_QP_PORT, now.port, set.port);
        same(IBV_QP_QKEY, now.qkey, set.qkey);
        same(IBV_QP_PATH_MTU, now.path_mtu, set.path_mtu);
        same(IBV_QP_TIMEOUT, now.timeout, set.timeout);
        same(IBV_QP_RETRY_CNT, now.retry_count, set.retry_count);
        same(IBV_QP_RNR_RETRY, now.rnr_retry, set.rnr_retry);
        same(IBV_QP_RQ_PSN, now.rq_psn, set.rq_psn);
        same(IBV_QP_SQ_PSN, now.sq_psn, set.sq_psn);
        same(IBV_QP_MAX_QP_RD_ATOMIC, now.max_rd_atomic, set.max_rd_atomic);
        same(IBV_QP_MAX_DEST_RD_ATOMIC, now.max_dest_rd_atomic, set.max_dest_rd_atomic);
        same(IBV_QP_MIN_RNR_TIMER, now.min_rnr_timer, set.min_rnr_timer);
        same(IBV_QP_DEST_QPN, now.dest_qp_number, set.dest_qp_number);
        if ((mask & IBV_QP_AV) != 0) {
            EXPECT_EQ(std::memcmp(&now.path, &set.path, sizeof set.path), 0);
        }
        if ((mask & IBV_QP_ALT_PATH) != 0) {
            EXPECT_EQ(std::memcmp(&now.alternate_path, &set.alternate_path, sizeof set.alternate_path), 0);
            EXPECT_EQ(now.alternate_timeout, set.alternate_timeout);
            EXPECT_EQ(now.alternate_port, set.alternate_port);
        }
    }
    static constexpr ipc::Service kConnected[] = {ipc::Service::kRc, ipc::Service::kUc,
                                                  ipc::Service::kXrcSend};
    static int to_rtr(ipc::Service service) {
        return kConnect | (service == ipc::Service::kRc ? kResponder : 0);
    }
    static int to_rts(ipc::Service service) {
        return service == ipc::Service::kUc ? int{IBV_QP_SQ_PSN} : kRequester;
    }
    /// Moves a connected QP to RTS with wanted().
    TestQp running(ipc::Service service) {
        TestQp qp = make_qp(cq_, service);
        EXPECT_EQ(modify(qp, IBV_QPS_INIT, kInit, wanted()), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTR, to_rtr(service), wanted()), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTS, to_rts(service), wanted()), 0);
        return qp;
    }

    TestCq cq_;
};

TEST_F(QpQueryTest, EachAttributeIsShownAsItWasSet) {
    for (const ipc::Service service : kConnected) {
        SCOPED_TRACE(static_cast<int>(service));
        TestQp qp = make_qp(cq_, service);
        EXPECT_EQ(query(qp).state, IBV_QPS_RESET);
        ASSERT_EQ(modify(qp, IBV_QPS_INIT, kInit, wanted()), 0);
        EXPECT_EQ(query(qp).state, IBV_QPS_INIT);
        expect_shown(query(qp), wanted(), kInit);
        ASSERT_EQ(modify(qp, IBV_QPS_RTR, to_rtr(service) | IBV_QP_ALT_PATH, wanted()), 0);
        EXPECT_EQ(query(qp).state, IBV_QPS_RTR);
        expect_shown(query(qp), wanted(), kInit | to_rtr(service) | IBV_QP_ALT_PATH);
        ASSERT_EQ(modify(qp, IBV_QPS_RTS, to_rts(service), wanted()), 0);
        EXPECT_EQ(query(qp).state, IBV_QPS_RTS);
        EXPECT_EQ(query(qp).current_state, IBV_QPS_RTS);
        expect_shown(query(qp), wanted(), kInit | to_rtr(service) | to_rts(service) | IBV_QP_ALT_PATH);
    }
}

TEST_F(QpQueryTest, ADatagramQpShowsItsQkeyAndPsn) {
    TestQp qp = make_qp(cq_, ipc::Service::kUd);
    constexpr int kUdInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    ASSERT_EQ(modify(qp, IBV_QPS_INIT, kUdInit, wanted()), 0);
    ASSERT_EQ(modify(qp, IBV_QPS_RTR, 0, wanted()), 0);
    ASSERT_EQ(modify(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, wanted()), 0);
    expect_shown(query(qp), wanted(), kUdInit | IBV_QP_SQ_PSN);
    ipc::QpAttributes other = wanted();
    other.qkey = 0x77;
    ASSERT_EQ(modify_only(qp, IBV_QP_QKEY, other), 0);
    expect_shown(query(qp), other, kUdInit | IBV_QP_SQ_PSN);
}

TEST_F(QpQueryTest, PsnsAreCutTo24Bits) {
    TestQp qp = make_qp(cq_);
    ipc::QpAttributes a = wanted();
    a.rq_psn = 0xFF123456;
    a.sq_psn = 0x01000005;
    ASSERT_EQ(modify(qp, IBV_QPS_INIT, kInit, a), 0);
    ASSERT_EQ(modify(qp, IBV_QPS_RTR, kConnect | kResponder, a), 0);
    ASSERT_EQ(modify(qp, IBV_QPS_RTS, kRequester, a), 0);
    EXPECT_EQ(query(qp).rq_psn, 0x123456U);
    EXPECT_EQ(query(qp).sq_psn, 5U);
}

TEST_F(QpQueryTest, WhatARunningQpChangesIsShownAndTheRestStays) {
    for (const ipc::Service service : kConnected) {
        SCOPED_TRACE(static_cast<int>(service));
        TestQp qp = running(service);
        ipc::QpAttributes other = wanted();
        other.access = IBV_ACCESS_REMOTE_WRITE;
        other.alternate_path.sl = 2;
        ASSERT_EQ(modify_only(qp, IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH, other), 0);
        expect_shown(query(qp), other, kInit | to_rtr(service) | to_rts(service) | IBV_QP_ALT_PATH);
        ASSERT_EQ(modify(qp, IBV_QPS_SQD, 0, {}), 0);
        EXPECT_EQ(query(qp).state, IBV_QPS_SQD);
        EXPECT_EQ(query(qp).sq_draining, 0);
        other.path.sl = 1;
        other.path.dlid = 0x222;
        ASSERT_EQ(modify_only(qp, IBV_QP_AV, other), 0);
        ASSERT_EQ(modify(qp, IBV_QPS_RTS, 0, {}), 0);
        expect_shown(query(qp), other, kInit | to_rtr(service) | to_rts(service) | IBV_QP_ALT_PATH);
    }
}

TEST_F(QpQueryTest, ARefusedModifyChangesNothing) {
    TestQp qp = running(ipc::Service::kRc);
    const ipc::QpAttributes before = query(qp);
    ipc::QpAttributes bad = wanted();
    bad.access = IBV_ACCESS_REMOTE_WRITE;
    bad.min_rnr_timer = 3;
    bad.current_state = IBV_QPS_SQD;
    EXPECT_EQ(modify_only(qp, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, bad), EINVAL) << "another state";
    EXPECT_EQ(modify_only(qp, IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY, bad), EINVAL) << "not RC's";
    EXPECT_EQ(modify_only(qp, IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT, bad), EINVAL) << "not in RTS";
    EXPECT_EQ(modify(qp, IBV_QPS_INIT, kInit, bad), EINVAL) << "no way back";
    bad.alternate_path.dlid = 0xC000;
    EXPECT_EQ(modify_only(qp, IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH, bad), EINVAL) << "a group's LID";
    bad = wanted();
    bad.path_migration_state = IBV_MIG_REARM;
    EXPECT_EQ(modify_only(qp, IBV_QP_PATH_MIG_STATE, bad), EINVAL) << "no alternate path";
    const ipc::QpAttributes after = query(qp);
    EXPECT_EQ(std::memcmp(&before, &after, sizeof after), 0);
    bad.current_state = IBV_QPS_RTS;
    EXPECT_EQ(modify_only(qp, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, bad), 0);
}

TEST_F(QpQueryTest, ResetForgetsEverything) {
    TestQp qp = running(ipc::Service::kRc), fresh = make_qp(cq_);
    ASSERT_EQ(modify(qp, IBV_QPS_RESET, 0, {}), 0);
    const ipc::QpAttributes now = query(qp), untouched = query(fresh);
    EXPECT_EQ(std::memcmp(&now, &untouched, sizeof now), 0);
    EXPECT_EQ(modify(qp, IBV_QPS_RTR, kConnect | kResponder, wanted()), EINVAL);
}

TEST_F(QpQueryTest, TheLimitsThatAreToldAreThoseThatHold) {
    const ipc::DeviceLimits limits = adapter_.devices()[0]->limits();
    const ipc::PortAttributes port = adapter_.devices()[0]->port_attributes();
    const auto expect_limit = [&](auto member, std::uint32_t most, bool requester) {
        for (const std::uint32_t above : {0U, 1U}) {
            TestQp qp = make_qp(cq_);
            ipc::QpAttributes a = wanted();
            a.path_mtu = port.active_mtu;
            ASSERT_EQ(modify(qp, IBV_QPS_INIT, kInit, a), 0);
            using Field = std::remove_reference_t<decltype(a.*member)>;
            a.*member = static_cast<Field>(most + above);
            const int moved = modify(qp, IBV_QPS_RTR, kConnect | kResponder, a);
            const int last = requester && moved == 0 ? modify(qp, IBV_QPS_RTS, kRequester, a) : moved;
            EXPECT_EQ(last, above == 0 ? 0 : EINVAL) << most + above;
        }
    };
    expect_limit(&ipc::QpAttributes::max_dest_rd_atomic, limits.max_qp_rd_atom, false);
    expect_limit(&ipc::QpAttributes::max_rd_atomic, limits.max_qp_init_rd_atom, true);
    expect_limit(&ipc::QpAttributes::path_mtu, port.active_mtu, false);
    for (const std::uint32_t above : {0U, 1U}) {
        TestQp qp = make_qp(cq_);
        ipc::QpAttributes a = wanted();
        a.pkey_index = static_cast<std::uint16_t>(port.pkey_table_length - 1 + above);
        EXPECT_EQ(modify(qp, IBV_QPS_INIT, kInit, a), above == 0 ? 0 : EINVAL);
        ipc::CreateQpRequest request{};
        request.service = static_cast<std::uint32_t>(ipc::Service::kRc);
        request.pd = pd_;
        request.send_cq = request.recv_cq = cq_.reply.handle;
        request.max_send_wr = request.max_recv_wr = request.max_send_sge = request.max_recv_sge = 1;
        request.max_inline = limits.max_inline + above;
        ipc::QpReply reply{};
        EXPECT_EQ(context_->create_qp(*client_, request, reply), above == 0 ? 0 : EINVAL);
    }
    EXPECT_EQ(limits.max_pkeys, port.pkey_table_length);
}

TEST_F(QpQueryTest, AGroupTakesAsManyQpsAsToldAndAPortAsManyGroups) {
    const ipc::DeviceLimits limits = adapter_.devices()[0]->limits();
    ipc::MulticastRequest request{};
    request.lid = 0xC001;
    request.gid[0] = 0xFF;
    const auto attach = [&](const TestQp& qp) {
        request.qp = qp.reply.handle;
        return context_->attach_multicast(request);
    };
    TestQp qp{};
    for (std::uint32_t i = 0; i < limits.max_mcast_qp_attach; ++i) {
        qp = make_qp(cq_, ipc::Service::kUd);
        ASSERT_EQ(attach(qp), 0) << i;
    }
    EXPECT_EQ(attach(qp), 0) << "once more";
    EXPECT_EQ(attach(make_qp(cq_, ipc::Service::kUd)), ENOMEM);
    for (std::uint32_t i = 1; i < limits.max_mcast_grp; ++i) {
        request.gid[14] = static_cast<std::uint8_t>(i >> 8);
        request.gid[15] = static_cast<std::uint8_t>(i);
        ASSERT_EQ(attach(qp), 0) << i;
    }
    request.gid[1] = 1;
    EXPECT_EQ(attach(qp), ENOMEM);
    EXPECT_EQ(context_->detach_multicast(request), EINVAL);
    request.gid[1] = 0;
    EXPECT_EQ(context_->detach_multicast(request), 0);
    request.gid[1] = 1;
    EXPECT_EQ(attach(qp), 0);
}

}  // namespace
}  // namespace uib::verbs
