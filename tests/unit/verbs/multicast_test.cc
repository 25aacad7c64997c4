// Multicast groups: who receives, who does not, and what a group without members costs.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/conformance/rows.h"
#include "tests/unit/verbs/pair_fixture.h"

namespace uib::verbs {
namespace {

class MulticastTest : public PairTest {
  protected:
    static constexpr std::uint32_t kQkey = 0x1234;
    static constexpr std::uint16_t kMlid = 0xC001;

    TestQp make_datagram_qp() {
        TestQp qp = make_qp(cq_, ipc::Service::kUd);
        ipc::QpAttributes a{};
        a.port = 1;
        a.qkey = kQkey;
        EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, a), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTR, 0, a), 0);
        EXPECT_EQ(modify(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, a), 0);
        return qp;
    }
    ipc::MulticastRequest group(const TestQp& qp) {
        ipc::MulticastRequest request{};
        request.qp = qp.reply.handle;
        request.lid = kMlid;
        request.gid[0] = 0xFF;
        request.gid[15] = 7;
        return request;
    }
    void send_to_group(TestQp& qp, std::uint32_t length) {
        ipc::AddressVector vector{};
        vector.dlid = kMlid;
        vector.is_global = 1;
        vector.port = 1;
        vector.dgid[0] = 0xFF;
        vector.dgid[15] = 7;
        ipc::SendWqe w = wqe(ipc::WorkOpcode::kSend, 1);
        w.flags = ipc::kWorkSignaled;
        w.sge_count = 1;
        w.remote_qpn = net::kMulticastQp;
        w.remote_qkey = kQkey;
        const ipc::ScatterGatherEntry entry{reinterpret_cast<std::uint64_t>(memory_.data()), length,
                                            region_.lkey};
        std::memcpy(qp.send_slots, &w, sizeof w);
        std::memcpy(qp.send_slots + ipc::kDatagramAddressOffset, &vector, sizeof vector);
        std::memcpy(qp.send_slots + ipc::kDatagramPayloadOffset, &entry, sizeof entry);
        publish_send(qp, 1);
    }
};

TEST_F(MulticastTest, AllAttachedReceiveAlsoTheSenderAndNobodyElse) {
    ROWS("o7-13.1.1/3", "o7-13.1.1/7", "o7-13.1.1/13");
    TestQp sender = make_datagram_qp(), member = make_datagram_qp(), stranger = make_datagram_qp();
    ASSERT_EQ(context_->attach_multicast(group(sender)), 0);
    ASSERT_EQ(context_->attach_multicast(group(member)), 0);
    post_receive(sender, 1001, memory_.data() + 10000, 1000, region_.lkey);
    post_receive(member, 1002, memory_.data() + 20000, 1000, region_.lkey);
    post_receive(stranger, 1003, memory_.data() + 30000, 1000, region_.lkey);
    send_to_group(sender, 500);
    std::vector<std::uint64_t> receivers;
    for (int i = 0; i < 3; ++i) {
        const Entry entry = wait(cq_);
        EXPECT_EQ(entry.status, 0);
        if ((entry.flags & ipc::kCqeReceive) == 0) continue;
        EXPECT_EQ(entry.byte_len, 540U) << "the GRH's 40 bytes count";
        receivers.push_back(entry.wr_id);
    }
    std::sort(receivers.begin(), receivers.end());
    EXPECT_EQ(receivers, (std::vector<std::uint64_t>{1001, 1002}));
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 10040, 500), 0);
    EXPECT_EQ(std::memcmp(memory_.data(), memory_.data() + 20040, 500), 0);
    turn();
    EXPECT_FALSE(poll(cq_)) << "a QP that is not attached received";
    ipc::EventsReply events{};
    EXPECT_EQ(context_->destroy_qp(member.reply.handle, events), EBUSY) << "still attached";
    EXPECT_EQ(context_->detach_multicast(group(member)), 0);
    EXPECT_EQ(context_->detach_multicast(group(member)), EINVAL);
    EXPECT_EQ(context_->destroy_qp(member.reply.handle, events), 0);
}

// 7.2: of a port whose link is not active nothing but management is received; one that is Armed becomes
// Active.
TEST_F(MulticastTest, APortReceivesOnlyOnceItsLinkIsArmed) {
    TestQp first = make_datagram_qp(), second = make_datagram_qp();
    std::unique_ptr<Context> own =
        std::exchange(context_, std::make_unique<Context>(adapter_, *adapter_.devices()[1], 2));
    const TestCq own_cq = std::exchange(cq_, {});
    const std::uint32_t own_pd = pd_;
    ASSERT_EQ(context_->alloc_pd(*client_, pd_), 0);
    cq_ = make_cq(16);
    TestQp member = make_datagram_qp();
    ASSERT_EQ(context_->attach_multicast(group(member)), 0);
    const ipc::RegMrReply region = register_memory(memory_.data(), memory_.size(), ipc::kAccessLocalWrite);
    post_receive(member, 1001, memory_.data() + 10000, 1000, region.lkey);

    const Device& device = *adapter_.devices()[1];
    management::Node& node = adapter_.subnet()->adapter(1).node();
    const auto set_state = [&](management::Number state) {
        node.port(1).info.port_state = state;
        node.changed(1);
    };
    set_state(management::kStateInitialize);
    send_to_group(first, 10);
    turn();
    EXPECT_FALSE(poll(cq_));
    EXPECT_EQ(device.counters().inactive_drops, 1U);
    EXPECT_EQ(device.counters().rcv_packets, 0U);
    set_state(management::kStateArmed);
    send_to_group(second, 10);
    EXPECT_EQ(wait(cq_).wr_id, 1001U);
    EXPECT_TRUE(device.active());

    context_->remove_client(*client_);
    context_ = std::move(own);
    cq_ = own_cq;
    pd_ = own_pd;
}

TEST_F(MulticastTest, GroupWithoutMembersDropsAndCounts) {
    TestQp sender = make_datagram_qp();
    send_to_group(sender, 10);
    EXPECT_EQ(wait(cq_).status, 0) << "a datagram's sender does not learn who listens";
    EXPECT_EQ(adapter_.devices()[0]->counters().multicast_drops, 1U);
}

}  // namespace
}  // namespace uib::verbs
