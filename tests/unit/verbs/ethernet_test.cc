// Ethernet devices: what their port shows, paths by GID, raw packet queue pairs and their rules.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/unit/verbs/ethernet_fixture.h"

namespace uib::verbs {
namespace {

TEST_F(EthernetTest, port_has_a_gid_of_its_mac_and_no_lid) {
    const ipc::PortAttributes port = adapter_.devices()[0]->port_attributes();
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    EXPECT_EQ(port.lid, 0);
    EXPECT_EQ(port.sm_lid, 0);
    const net::MacAddress& own = mac(0);
    const std::uint8_t expected[16] = {
        0xFE,   0x80,   0,    0,    0,      0,      0,     0, static_cast<std::uint8_t>(own[0] ^ 2),
        own[1], own[2], 0xFF, 0xFE, own[3], own[4], own[5]};
    EXPECT_EQ(std::memcmp(port.gids[0], expected, 16), 0);
    EXPECT_NE(mac(0), mac(1));
    EXPECT_EQ(adapter_.devices()[2]->port_attributes().link_layer, IBV_LINK_LAYER_INFINIBAND);
    EXPECT_EQ(adapter_.devices()[2]->port_attributes().lid, 1);
}

class EthernetPathTest : public EthernetTest {
  protected:
    /// To RTR over the GID of `device`; what modify said.
    int connect_to(const TestQp& qp, const TestQp& peer, const net::Gid& dgid, bool global = true) {
        ipc::QpAttributes a{};
        a.port = a.path.port = 1;
        EXPECT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
        a.path.is_global = global ? 1 : 0;
        a.path.dlid = global ? 0 : 1;
        std::memcpy(a.path.dgid, dgid.data(), dgid.size());
        a.path_mtu = IBV_MTU_4096;
        a.dest_qp_number = peer.reply.qp_number;
        const int error =
            modify(qp, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, a);
        if (error == 0) {
            EXPECT_EQ(modify(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, a), 0);
        }
        return error;
    }
};

TEST_F(EthernetPathTest, connections_go_by_gid) {
    TestCq cq = make_cq(16);
    TestQp a = make_qp(cq, ipc::Service::kUc), b = make_qp(cq, ipc::Service::kUc);
    const net::Gid own = adapter_.devices()[0]->gids()[0];
    ASSERT_EQ(connect_to(a, b, own), 0);
    ASSERT_EQ(connect_to(b, a, own), 0);
    post_receive(b, 7, buffer_ + 1024, 100, key_);
    ipc::SendWqe wqe{};
    post_send(a, wqe, buffer_, 64, key_);
    const Entry first = wait(cq), second = wait(cq);
    EXPECT_EQ(first.status, 0);
    EXPECT_EQ(second.status, 0);
    EXPECT_EQ(first.qp_number == b.reply.qp_number ? first.byte_len : second.byte_len, 64U);
}

/// A port to the outside that takes as many packets as the test says.
class NarrowUplink final : public net::Uplink {
  public:
    bool receive(net::Time, net::PacketSink&) override { return false; }
    [[nodiscard]] std::uint32_t room() const override { return room_now; }
    void send(const net::Packet&) override {}
    void end_turn() override {}
    [[nodiscard]] net::Time next_deadline() const override { return net::kNoDeadline; }
    [[nodiscard]] std::vector<int> wake_descriptors() const override { return {}; }
    [[nodiscard]] bool sleepable() const override { return true; }
    void watch(bool) override {}
    [[nodiscard]] bool active() const override { return true; }
    [[nodiscard]] std::uint32_t mtu() const override { return 4096; }
    [[nodiscard]] net::MacAddress mac() const override { return {2, 0, 0, 0, 0, 1}; }
    [[nodiscard]] std::vector<net::Gid> gids() const override {
        return {net::Gid{0xFE, 0x80, 0, 0, 0, 0, 0, 0, 9}};
    }
    std::uint8_t take_changes() override { return 0; }
    std::vector<Counter> counters() override { return {}; }
    void listen(net::FrameListener*) override {}

    std::uint32_t room_now = 0;
};

// A turn that counts as work is followed by another at once, and whoever makes room may need the CPU.
TEST_F(EthernetPathTest, a_sender_without_room_is_no_work) {
    auto owned = std::make_unique<NarrowUplink>();
    NarrowUplink& uplink = *owned;
    adapter_.attach_uplink(*adapter_.devices()[0], std::move(owned));
    TestCq cq = make_cq(16);
    TestQp a = make_qp(cq, ipc::Service::kUc), b = make_qp(cq, ipc::Service::kUc);
    ASSERT_EQ(connect_to(a, b, adapter_.devices()[0]->gids()[0]), 0);
    ipc::SendWqe wqe{};
    post_send(a, wqe, buffer_, 64, key_);
    adapter_.turn();  // takes the doorbell
    EXPECT_FALSE(adapter_.turn());
    EXPECT_FALSE(adapter_.quiet()) << "it has not been forgotten";
    uplink.room_now = 1;
    EXPECT_TRUE(adapter_.turn());
    EXPECT_EQ(wait(cq).status, 0);
}

TEST_F(EthernetPathTest, a_path_needs_a_grh) {
    TestCq cq = make_cq(16);
    TestQp a = make_qp(cq, ipc::Service::kUc), b = make_qp(cq, ipc::Service::kUc);
    EXPECT_EQ(connect_to(a, b, {}, false), EINVAL);
}

TEST_F(EthernetPathTest, a_gid_that_nobody_has_leads_nowhere) {
    TestCq cq = make_cq(16);
    TestQp a = make_qp(cq, ipc::Service::kUc), b = make_qp(cq, ipc::Service::kUc);
    const net::Gid infiniband = adapter_.devices()[2]->gids()[0];
    ASSERT_EQ(connect_to(a, b, infiniband), 0);
    post_send(a, {}, buffer_, 64, key_);
    EXPECT_EQ(wait(cq).status, 0);
    turn();
    EXPECT_EQ(adapter_.devices()[0]->counters().xmit_discards, 1U);
    EXPECT_EQ(adapter_.devices()[2]->counters().rcv_packets, 0U);
}

TEST_F(EthernetTest, a_frame_goes_to_the_queue_pair_whose_rule_wants_it) {
    TestCq cq = make_cq(16), other_cq = make_cq(16);
    TestQp sender = make_raw(cq), receiver = make_raw(other_cq);
    std::uint32_t flow = 0;
    ASSERT_EQ(context_->create_flow(*client_, rule_for(receiver, mac(0)), flow), 0);
    post_receive(receiver, 7, buffer_ + 1024, 1000, key_);
    send_frame(sender, mac(0));
    const Entry received = wait(other_cq);
    EXPECT_EQ(received.wr_id, 7U);
    EXPECT_EQ(received.status, 0);
    EXPECT_EQ(received.byte_len, 64U);
    EXPECT_EQ(wait(cq).status, 0);

    // Not for us: eth1's own address is reached at eth1 alone, where no rule wants it.
    post_receive(receiver, 8, buffer_ + 1024, 1000, key_);
    send_frame(sender, mac(1));
    EXPECT_EQ(wait(cq).status, 0);
    turn();
    EXPECT_FALSE(poll(other_cq));
    EXPECT_EQ(adapter_.devices()[1]->counters().unsteered_frames, 1U);
    EXPECT_EQ(adapter_.devices()[2]->counters().rcv_packets, 0U);

    // An address that no port has is everybody's, if a rule asks for it.
    constexpr net::MacAddress kStranger{0x24, 0x8A, 7, 0xA5, 0x28, 0xC8};
    std::uint32_t second = 0;
    ASSERT_EQ(context_->create_flow(*client_, rule_for(receiver, kStranger), second), 0);
    send_frame(sender, kStranger);
    EXPECT_EQ(wait(other_cq).wr_id, 8U);
    EXPECT_EQ(context_->destroy_flow(second), 0);
    EXPECT_EQ(context_->destroy_flow(second), ENOENT);

    ipc::EventsReply events{};
    EXPECT_EQ(context_->destroy_qp(receiver.reply.handle, events), EBUSY);
    EXPECT_EQ(context_->destroy_flow(flow), 0);
    EXPECT_EQ(context_->destroy_qp(receiver.reply.handle, events), 0);
}

TEST_F(EthernetTest, rules_are_for_raw_queue_pairs_only) {
    TestCq cq = make_cq(16);
    const TestQp datagram = make_qp(cq, ipc::Service::kUd);
    std::uint32_t flow = 0;
    EXPECT_EQ(context_->create_flow(*client_, rule_for(datagram, mac(0)), flow), EINVAL);
    ipc::CreateFlowRequest nobody = rule_for(datagram, mac(0));
    nobody.qp = 1000;
    EXPECT_EQ(context_->create_flow(*client_, nobody, flow), ENOENT);
}

TEST_F(EthernetTest, a_client_that_goes_takes_its_rules_along) {
    TestCq cq = make_cq(16);
    const TestQp receiver = make_raw(cq);
    std::uint32_t flow = 0;
    ASSERT_EQ(context_->create_flow(*client_, rule_for(receiver, mac(0)), flow), 0);
    EXPECT_EQ(adapter_.devices()[0]->flows().size(), 1U);
    context_->remove_client(*client_);
    EXPECT_EQ(adapter_.devices()[0]->flows().size(), 0U);
    EXPECT_EQ(context_->alloc_pd(*client_, pd_), 0);
}

class NoRights : public AdapterTest {
  protected:
    explicit NoRights(LinkLayer layer = LinkLayer::kEthernet) : AdapterTest({{"eth0", layer}}) {}
    int create_raw() {
        const TestCq cq = make_cq(16);
        ipc::CreateQpRequest request{};
        request.pd = pd_;
        request.send_cq = request.recv_cq = cq.reply.handle;
        request.service = static_cast<std::uint32_t>(ipc::Service::kRawPacket);
        ipc::QpReply reply{};
        return context_->create_qp(*client_, request, reply);
    }
};

TEST_F(NoRights, raw_packets_need_the_right) {
    EXPECT_EQ(create_raw(), EPERM);
    ipc::CreateFlowRequest rule{};
    rule.port = 1;
    std::uint32_t flow = 0;
    EXPECT_EQ(context_->create_flow(*client_, rule, flow), EPERM);
}

class OnInfiniBand : public NoRights {
  protected:
    OnInfiniBand() : NoRights(LinkLayer::kInfiniBand) { client_->allow_raw_packets(); }
};

TEST_F(OnInfiniBand, there_are_no_raw_packet_queue_pairs) {
    EXPECT_EQ(create_raw(), EOPNOTSUPP);
}

}  // namespace
}  // namespace uib::verbs
