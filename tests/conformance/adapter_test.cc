// Rows about which queue pair a packet reaches, shown on the whole adapter: unknown queue pairs, unreliable
// multicast (IBA 9.6.1.1.2, 9.6.1.2, 9.6.1.6.2), responses for another queue pair.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/conformance/rows.h"
#include "tests/unit/verbs/pair_fixture.h"

namespace uib::conformance {
namespace {

using verbs::Entry;
using verbs::TestQp;

constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint16_t kLid = 1;  // of the first device, where all queue pairs are
constexpr std::uint16_t kMlid = 0xC001;
constexpr std::uint32_t kNoQp = 0xABCDEF;

/// Where a datagram goes.
struct To {
    std::uint16_t dlid = kLid;
    std::uint32_t qp = net::kMulticastQp;
    bool grh = false;
    std::uint8_t gid_first = 0xFF;
    std::uint8_t gid_last = 7;
};

class AdapterRows : public verbs::PairTest {
  protected:
    TestQp datagram_qp() {
        TestQp qp = make_qp(cq_, ipc::Service::kUd);
        ipc::QpAttributes a{};
        a.port = 1;
        a.qkey = kQkey;
        EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, a), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTR, 0, a), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, a), 0);
        return qp;
    }
    int attach(const TestQp& qp, std::uint8_t gid_last = 7, std::uint16_t mlid = kMlid) {
        ipc::MulticastRequest request{};
        request.qp = qp.reply.handle;
        request.lid = mlid;
        request.gid[0] = 0xFF;
        request.gid[15] = gid_last;
        return context_->attach_multicast(request);
    }
    void post(TestQp& qp, std::uint64_t wr_id) {
        post_receive(qp, wr_id, memory_.data() + 1000 * (wr_id % 60), 1000, region_.lkey);
    }
    /// Sends one datagram; the wr_ids of the receives that it ends, sorted.
    std::vector<std::uint64_t> send(TestQp& qp, const To& to) {
        ipc::AddressVector vector{};
        vector.dlid = to.dlid;
        vector.is_global = to.grh ? 1 : 0;
        vector.port = 1;
        vector.dgid[0] = to.gid_first;
        vector.dgid[15] = to.gid_last;
        ipc::SendWqe request = wqe(ipc::WorkOpcode::kSend, 1);
        request.flags = ipc::kWorkSignaled;
        request.sge_count = 1;
        request.remote_qpn = to.qp;
        request.remote_qkey = kQkey;
        const ipc::ScatterGatherEntry entry{reinterpret_cast<std::uint64_t>(memory_.data()), 100,
                                            region_.lkey};
        std::byte* slot = qp.send_slots + qp.sends % qp.reply.send.entries * qp.reply.send.stride;
        std::memcpy(slot, &request, sizeof request);
        std::memcpy(slot + ipc::kDatagramAddressOffset, &vector, sizeof vector);
        std::memcpy(slot + ipc::kDatagramPayloadOffset, &entry, sizeof entry);
        publish_send(qp, ++qp.sends);
        turn();
        std::vector<std::uint64_t> receives;
        while (const std::optional<Entry> done = poll(cq_)) {
            EXPECT_EQ(done->status, 0);
            if ((done->flags & ipc::kCqeReceive) != 0) receives.push_back(done->wr_id);
        }
        std::sort(receives.begin(), receives.end());
        return receives;
    }
    /// An initiator to RTS, or a target to RTR.
    void connect_xrc(const TestQp& qp, const TestQp& peer, bool initiator) {
        ipc::QpAttributes a{};
        a.port = a.path.port = 1;
        a.access = IBV_ACCESS_REMOTE_WRITE;
        a.path.dlid = kLid;
        a.path_mtu = IBV_MTU_1024;
        a.rq_psn = a.sq_psn = 0xFFFFF0;
        a.max_rd_atomic = a.max_dest_rd_atomic = 4;
        a.min_rnr_timer = 1;
        a.dest_qp_number = peer.reply.qp_number;
        ASSERT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
        const std::uint32_t responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        ASSERT_EQ(modify(qp, IBV_QPS_RTR,
                         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             (initiator ? 0 : responder),
                         a),
                  0);
        if (!initiator) return;
        ASSERT_EQ(modify(qp, IBV_QPS_RTS,
                         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC,
                         a),
                  0);
    }
};
using Receives = std::vector<std::uint64_t>;

TEST_F(AdapterRows, C9_37_a_packet_reaches_the_queue_pair_that_it_names_and_no_other) {
    ROWS("C9-37", "C9-39");
    TestQp sender = datagram_qp(), one = datagram_qp(), other = datagram_qp();
    post(one, 11);
    post(other, 12);
    EXPECT_EQ(send(sender, {.qp = kNoQp}), Receives{});
    EXPECT_EQ(send(sender, {.qp = other.reply.qp_number}), Receives{12});
    EXPECT_EQ(send(sender, {.qp = one.reply.qp_number}), Receives{11});
}

// What the port's counters of violations are there for (IBV_DEVICE_BAD_PKEY_CNTR, IBV_DEVICE_BAD_QKEY_CNTR).
TEST_F(AdapterRows, C9_43_the_port_counts_keys_that_do_not_fit) {
    ROWS("C9-43", "C9-50");
    const auto port = [&] { return adapter_.devices()[0]->port_attributes(); };
    TestQp sender = datagram_qp(), other = datagram_qp();
    post(other, 11);
    ipc::QpAttributes a{};
    a.qkey = kQkey + 1;
    ASSERT_EQ(modify(other, IBV_QPS_RTS, IBV_QP_QKEY, a), 0);
    EXPECT_EQ(send(sender, {.qp = other.reply.qp_number}), Receives{});
    EXPECT_EQ(port().qkey_violation_counter, 1U);
    EXPECT_EQ(port().bad_pkey_counter, 0U);
    a.qkey = kQkey;
    ASSERT_EQ(modify(other, IBV_QPS_RTS, IBV_QP_QKEY, a), 0);
    management::SmpNode& node = adapter_.subnet()->adapter(0);
    node.node().port(1).pkeys[0] = 0x8001;
    node.node().changed(1);
    TestQp stranger = datagram_qp();  // of the partition that the port is in now
    EXPECT_EQ(send(stranger, {.qp = other.reply.qp_number}), Receives{});
    EXPECT_EQ(port().bad_pkey_counter, 1U);
    EXPECT_EQ(port().qkey_violation_counter, 1U);
    EXPECT_EQ(send(sender, {.qp = other.reply.qp_number}), Receives{11});
}

TEST_F(AdapterRows, C9_58_a_multicast_packet_has_a_grh_a_multicast_gid_and_a_queue_pair_attached) {
    ROWS("C9-58", "C9-43.1.1", "o9-23");
    TestQp sender = datagram_qp(), member = datagram_qp();
    const To good{.dlid = kMlid, .grh = true};
    post(member, 11);
    EXPECT_EQ(send(sender, good), Receives{});  // nobody is attached
    ASSERT_EQ(attach(member), 0);
    To bad = good;
    bad.grh = false;
    EXPECT_EQ(send(sender, bad), Receives{});
    bad = good;
    bad.gid_first = 0xFE;
    EXPECT_EQ(send(sender, bad), Receives{});
    bad = good;
    bad.gid_last = 8;  // a group of nobody
    EXPECT_EQ(send(sender, bad), Receives{});
    EXPECT_EQ(adapter_.devices()[0]->counters().multicast_drops, 4U);
    EXPECT_EQ(send(sender, good), Receives{11});
}

TEST_F(AdapterRows, C9_59_the_gid_says_which_queue_pairs_get_a_multicast_packet) {
    ROWS("C9-59");
    TestQp sender = datagram_qp(), one = datagram_qp(), two = datagram_qp();
    ASSERT_EQ(attach(one, 7), 0);
    ASSERT_EQ(attach(two, 8), 0);  // the same LID: the GID decides
    ASSERT_EQ(attach(one, 9), 0);
    ASSERT_EQ(attach(two, 9), 0);
    for (const std::uint64_t wr_id : {11U, 12U}) post(one, wr_id);
    for (const std::uint64_t wr_id : {21U, 22U}) post(two, wr_id);
    EXPECT_EQ(send(sender, {.dlid = kMlid, .grh = true, .gid_last = 7}), Receives{11});
    EXPECT_EQ(send(sender, {.dlid = kMlid, .grh = true, .gid_last = 8}), Receives{21});
    EXPECT_EQ(send(sender, {.dlid = kMlid, .grh = true, .gid_last = 9}), (Receives{12, 22}));
}

// The responder of `first` answers to `second`, which has nothing outstanding: neither of them completes.
TEST_F(AdapterRows, o9_79_a1_a_response_for_another_queue_pair_completes_nothing) {
    ROWS("o9-79.a1");
    std::uint32_t domain = 0;
    const ipc::OpenXrcdRequest open{O_CREAT, false};
    ASSERT_EQ(context_->open_xrcd(*client_, open, ipc::UniqueFd(), domain), 0);
    ipc::CreateSrqRequest create_srq{};
    create_srq.pd = pd_;
    create_srq.max_wr = 16;
    create_srq.max_sge = 1;
    create_srq.kind = static_cast<std::uint32_t>(ipc::SrqKind::kXrc);
    create_srq.xrcd = domain + 1;
    create_srq.cq = cq_.reply.handle + 1;
    ipc::SrqReply srq{};
    ASSERT_EQ(context_->create_srq(*client_, create_srq, srq), 0);
    ipc::CreateQpRequest create_target{};
    create_target.service = static_cast<std::uint32_t>(ipc::Service::kXrcReceive);
    create_target.xrcd = domain + 1;
    TestQp target;
    ASSERT_EQ(context_->create_qp(*client_, create_target, target.reply), 0);
    TestQp first = make_qp(cq_, ipc::Service::kXrcSend), second = make_qp(cq_, ipc::Service::kXrcSend);
    connect_xrc(first, target, true);
    connect_xrc(second, target, true);
    connect_xrc(target, second, false);
    ipc::SendWqe request = wqe(ipc::WorkOpcode::kRdmaWrite, 5, 5000);
    request.flags = ipc::kWorkSignaled;
    request.remote_qpn = srq.srq_number;
    post_send(first, request, memory_.data(), 10, region_.lkey);
    turn();
    EXPECT_EQ(std::memcmp(memory_.data() + 5000, memory_.data(), 10), 0) << "it was executed";
    EXPECT_FALSE(poll(cq_));
}

}  // namespace
}  // namespace uib::conformance
