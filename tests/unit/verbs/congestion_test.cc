// Congestion notification at a port with a way out (Annex A17.9): what is marked is answered, what answers is
// counted; and a port whose link is not active receives nothing, which is counted, too.
#include <chrono>
#include <deque>

#include "net/encap/roce_frame.h"
#include "tests/unit/verbs/ethernet_fixture.h"

namespace uib::verbs {
namespace {

constexpr net::Gid kOwnGid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 9};
constexpr net::Gid kPeerGid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 8};
constexpr std::uint32_t kPeerQp = 0x77;

/// The test is the world outside.
class ScriptedUplink final : public net::Uplink {
  public:
    bool receive(net::Time, net::PacketSink& sink) override {
        const bool any = !arriving.empty();
        for (; !arriving.empty(); arriving.pop_front()) sink.on_packet(arriving.front());
        return any;
    }
    [[nodiscard]] std::uint32_t room() const override { return 64; }
    void send(const net::Packet& packet) override { sent.push_back(packet); }
    void end_turn() override {}
    [[nodiscard]] net::Time next_deadline() const override { return net::kNoDeadline; }
    [[nodiscard]] std::vector<int> wake_descriptors() const override { return {}; }
    [[nodiscard]] bool sleepable() const override { return true; }
    void watch(bool) override {}
    [[nodiscard]] bool active() const override { return true; }
    [[nodiscard]] std::uint32_t mtu() const override { return 4096; }
    [[nodiscard]] net::MacAddress mac() const override { return {2, 0, 0, 0, 0, 1}; }
    [[nodiscard]] std::vector<net::Gid> gids() const override { return {kOwnGid}; }
    std::uint8_t take_changes() override { return 0; }
    std::vector<Counter> counters() override { return {}; }
    void listen(net::FrameListener*) override {}

    std::deque<net::Packet> arriving;
    std::deque<net::Packet> sent;
};

class CongestionTest : public EthernetTest {
  protected:
    CongestionTest() {
        auto owned = std::make_unique<ScriptedUplink>();
        uplink_ = owned.get();
        adapter_.attach_uplink(*adapter_.devices()[0], std::move(owned));
        cq_ = make_cq(16);
        qp_ = make_qp(cq_, ipc::Service::kUc);
        ipc::QpAttributes a{};
        a.port = a.path.port = 1;
        EXPECT_EQ(modify(qp_, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
        a.path.is_global = 1;
        std::memcpy(a.path.dgid, kPeerGid.data(), kPeerGid.size());
        a.path_mtu = IBV_MTU_1024;
        a.dest_qp_number = kPeerQp;
        EXPECT_EQ(modify(qp_, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, a),
                  0);
    }
    net::Packet packet(net::Ecn ecn) const {
        net::Packet out;
        out.has_grh = true;
        out.grh.sgid = kPeerGid;
        out.grh.dgid = kOwnGid;
        out.grh.traffic_class = static_cast<std::uint8_t>(0x68 | static_cast<unsigned>(ecn));
        out.bth.opcode = net::opcode(net::Service::kUc, net::Operation::kSendOnly);
        out.bth.dest_qp = qp_.reply.qp_number;
        return out;
    }
    void arrive(const net::Packet& packet) {
        uplink_->arriving.push_back(packet);
        adapter_.turn();
    }
    const Device& device() { return *adapter_.devices()[0]; }
    const Device::Congestion& congestion() { return device().congestion; }

    ScriptedUplink* uplink_ = nullptr;
    TestCq cq_;
    TestQp qp_;
};

TEST_F(CongestionTest, a_marked_packet_is_answered_to_the_queue_pair_that_sent_it) {
    arrive(packet(net::Ecn::kCapable0));
    arrive(packet(net::Ecn::kNotCapable));
    EXPECT_EQ(congestion().marked, 0U);
    arrive(packet(net::Ecn::kCongested));
    EXPECT_EQ(congestion().marked, 1U);
    EXPECT_EQ(congestion().sent, 1U);
    ASSERT_EQ(uplink_->sent.size(), 1U);
    const net::Packet& answer = uplink_->sent.front();
    EXPECT_EQ(answer.bth.opcode, 0x81);
    EXPECT_TRUE(answer.bth.becn);
    EXPECT_FALSE(answer.bth.fecn);
    EXPECT_EQ(answer.bth.dest_qp, kPeerQp);
    EXPECT_EQ(answer.bth.pkey, packet(net::Ecn::kCongested).bth.pkey);
    EXPECT_EQ(answer.grh.dgid, kPeerGid);
    EXPECT_EQ(answer.grh.sgid, kOwnGid);
    EXPECT_EQ(answer.payload.size(), 16U);
    // The packet itself is received like any other.
    EXPECT_EQ(device().counters().rcv_packets, 3U);
}

TEST_F(CongestionTest, a_burst_of_marked_packets_is_answered_once_in_50_us) {
    for (int i = 0; i < 5; ++i) uplink_->arriving.push_back(packet(net::Ecn::kCongested));
    adapter_.turn();
    EXPECT_EQ(congestion().marked, 5U);
    EXPECT_EQ(congestion().sent, 1U);
    const auto later = std::chrono::steady_clock::now() + std::chrono::microseconds(60);
    while (std::chrono::steady_clock::now() < later) {
    }
    arrive(packet(net::Ecn::kCongested));
    EXPECT_EQ(congestion().sent, 2U);
    EXPECT_EQ(uplink_->sent.size(), 2U);
}

TEST_F(CongestionTest, a_datagram_is_answered_to_its_source) {
    const TestQp datagrams = make_qp(cq_, ipc::Service::kUd);
    net::Packet marked = packet(net::Ecn::kCongested);
    marked.bth.opcode = net::opcode(net::Service::kUd, net::Operation::kSendOnly);
    marked.bth.dest_qp = datagrams.reply.qp_number;
    marked.deth.source_qp = 0x1234;
    arrive(marked);
    ASSERT_EQ(uplink_->sent.size(), 1U);
    EXPECT_EQ(uplink_->sent.front().bth.dest_qp, 0x1234U);
}

TEST_F(CongestionTest, nobody_is_answered_for_groups_and_strangers) {
    net::Packet marked = packet(net::Ecn::kCongested);
    marked.bth.dest_qp = 0xABCDE;
    arrive(marked);
    EXPECT_EQ(congestion().marked, 1U);
    marked.grh.dgid = {0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    marked.bth.dest_qp = net::kMulticastQp;
    arrive(marked);
    EXPECT_EQ(congestion().marked, 1U);
    EXPECT_TRUE(uplink_->sent.empty());
}

TEST_F(CongestionTest, a_notification_is_counted_and_goes_no_further) {
    net::Packet notification = packet(net::Ecn::kCongested);
    notification.bth.opcode = net::kCnpOpcode;
    notification.bth.becn = true;
    arrive(notification);
    EXPECT_EQ(congestion().received, 1U);
    EXPECT_EQ(congestion().marked, 0U);
    EXPECT_EQ(device().counters().rcv_packets, 0U);
    EXPECT_TRUE(uplink_->sent.empty());
}

TEST_F(CongestionTest, what_comes_to_a_port_whose_link_is_down_is_counted) {
    net::FaultRule rule;
    rule.action = net::FaultAction::kLinkDown;
    rule.port = device().port();
    adapter_.add_fault(rule);
    arrive(packet(net::Ecn::kCongested));
    EXPECT_EQ(device().counters().inactive_drops, 1U);
    EXPECT_EQ(device().counters().rcv_packets, 0U);
    EXPECT_EQ(congestion().marked, 0U);
}

}  // namespace
}  // namespace uib::verbs
