// The RoCE uplink between a port in memory and the kernel's view of a private network.
#include "net/encap/roce_uplink.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>

#include "net/encap/port_4791.h"
#include "net/port/memory_port.h"
#include "net/wire/gid.h"
#include "tests/unit/port/private_network.h"

namespace uib::net {
namespace {

using uib::testing::shell;
constexpr MacAddress kOwn = {2, 0, 0, 0, 0, 1};
constexpr MacAddress kPeer = {2, 0, 0, 0, 0, 0x22};
constexpr Time kSecond = 1'000'000'000;

struct Collector final : PacketSink {
    void on_packet(Packet& packet) override {
        opcodes.push_back(packet.bth.opcode);
        payload.assign(packet.payload.begin(), packet.payload.end());
    }
    std::vector<std::uint8_t> opcodes;
    std::vector<std::byte> payload;
};

struct Listener final : FrameListener {
    using Frame = std::vector<std::byte>;
    void on_sent(std::span<const std::byte> frame, const Packet& packet) override {
        sent.emplace_back(frame.begin(), frame.end());
        psns.push_back(packet.bth.psn);
    }
    void on_received(std::span<const std::byte> frame, const Packet& packet) override {
        received.emplace_back(frame.begin(), frame.end());
        psns.push_back(packet.bth.psn);
    }
    std::vector<Frame> sent, received;
    std::vector<std::uint32_t> psns;
};

class RoceUplinkTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = uib::testing::enter_private_network(4200); !why.empty())
            GTEST_SKIP() << why;
        ASSERT_TRUE(
            shell("ip addr add 10.9.0.1/24 dev va"
                  " && ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:22 dev va nud permanent"));
        make({});
    }
    void make(std::optional<std::uint16_t> vlan, std::uint32_t mtu = 4200) {
        auto port = std::make_unique<MemoryPort>(kOwn, mtu);
        port_ = port.get();
        uplink_.reset();
        uplink_ = std::make_unique<RoceUplink>(std::move(port), "va", vlan);
    }
    static Packet to(std::uint32_t address) {
        Packet packet;
        packet.has_grh = true;
        packet.grh.sgid = gid_of_ipv4(0x0A090001);
        packet.grh.dgid = gid_of_ipv4(address);
        packet.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
        packet.bth.dest_qp = 77;
        return packet;
    }
    std::uint64_t counter(const std::string& name) {
        for (const auto& [key, value] : uplink_->counters())
            if (key == name) return value;
        ADD_FAILURE() << "no counter " << name;
        return 0;
    }
    /// A frame as the peer would send it to us.
    std::vector<std::byte> from_peer(std::uint8_t traffic_class = 0, std::optional<std::uint16_t> vlan = {},
                                     std::uint32_t destination = 0x0A090001) {
        Packet packet = to(destination);
        packet.grh.sgid = gid_of_ipv4(0x0A090002);
        packet.grh.traffic_class = traffic_class;
        packet.grh.hop_limit = 64;
        RoceEnvelope envelope;
        envelope.source = kPeer;
        envelope.destination = kOwn;
        envelope.vlan = vlan;
        std::vector<std::byte> frame(roce_frame_bytes(packet, vlan.has_value()));
        encode_roce(packet, envelope, frame);
        return frame;
    }
    Packet sent_packet(std::size_t index, RoceEnvelope& envelope) {
        Packet packet;
        DecodeError detail{};
        EXPECT_EQ(decode_roce(port_->sent.at(index), packet, envelope, detail), RoceError::kNone);
        return packet;
    }

    MemoryPort* port_ = nullptr;
    std::unique_ptr<RoceUplink> uplink_;
    Collector sink_;
};

TEST_F(RoceUplinkTest, SendsToTheNeighboursMacMarkedCapableOfEcn) {
    Packet packet = to(0x0A090002);
    packet.grh.traffic_class = 0x68 | 3;
    uplink_->receive(1, sink_);
    uplink_->send(packet);
    EXPECT_TRUE(port_->sent.empty()) << "sent in a batch";
    uplink_->end_turn();
    ASSERT_EQ(port_->sent.size(), 1U);
    RoceEnvelope envelope;
    const Packet got = sent_packet(0, envelope);
    EXPECT_EQ(envelope.destination, kPeer);
    EXPECT_EQ(envelope.source, kOwn);
    EXPECT_FALSE(envelope.vlan.has_value());
    EXPECT_EQ(got.grh.traffic_class, 0x68 | 2);
    EXPECT_EQ(got.grh.hop_limit, 64) << "a hop limit of 0 would never arrive";
    EXPECT_EQ(got.bth.dest_qp, 77U);
}

// Nobody would tell a sleeping lane when the driver takes it.
TEST_F(RoceUplinkTest, WhatTheDriverHasNotTakenIsDueAtOnce) {
    port_->stuck = true;
    uplink_->send(to(0x0A090002));
    uplink_->end_turn();
    EXPECT_EQ(uplink_->next_deadline(), 0U);
    port_->stuck = false;
    uplink_->end_turn();
    ASSERT_EQ(port_->sent.size(), 1U);
    EXPECT_GT(uplink_->next_deadline(), 0U);
}

TEST_F(RoceUplinkTest, ACongestionNotificationIsNotMarkable) {
    Packet packet = to(0x0A090002);
    packet.bth.opcode = kCnpOpcode;
    packet.grh.traffic_class = 3;
    uplink_->send(packet);
    uplink_->end_turn();
    RoceEnvelope envelope;
    EXPECT_EQ(ecn_of(sent_packet(0, envelope)), Ecn::kNotCapable);
}

TEST_F(RoceUplinkTest, WaitsForAnUnknownNeighbour) {
    uplink_->receive(1, sink_);
    uplink_->send(to(0x0A090003));
    uplink_->end_turn();
    EXPECT_TRUE(port_->sent.empty());
    ASSERT_LT(uplink_->next_deadline(), kNoDeadline);
    ASSERT_TRUE(shell("ip neigh replace 10.9.0.3 lladdr 02:00:00:00:00:33 dev va nud permanent"));
    uplink_->receive(uplink_->next_deadline(), sink_);
    uplink_->end_turn();
    ASSERT_EQ(port_->sent.size(), 1U);
    RoceEnvelope envelope;
    EXPECT_EQ(sent_packet(0, envelope).grh.dgid, gid_of_ipv4(0x0A090003));
    EXPECT_EQ(envelope.destination, (MacAddress{2, 0, 0, 0, 0, 0x33}));
    EXPECT_EQ(uplink_->next_deadline(), kNoDeadline);
}

TEST_F(RoceUplinkTest, NoPacketOvertakesThoseThatWaitForTheSameNeighbour) {
    uplink_->receive(1, sink_);
    for (std::uint32_t psn = 0; psn < 2; ++psn) {
        Packet packet = to(0x0A090003);
        packet.bth.psn = psn;
        uplink_->send(packet);
    }
    ASSERT_TRUE(shell("ip neigh replace 10.9.0.3 lladdr 02:00:00:00:00:33 dev va nud permanent"));
    Packet late = to(0x0A090003);
    late.bth.psn = 2;
    uplink_->send(late);
    uplink_->receive(uplink_->next_deadline(), sink_);
    late.bth.psn = 3;
    uplink_->send(late);
    uplink_->end_turn();
    ASSERT_EQ(port_->sent.size(), 4U);
    for (std::uint32_t psn = 0; psn < 4; ++psn) {
        RoceEnvelope envelope;
        EXPECT_EQ(sent_packet(psn, envelope).bth.psn, psn);
    }
}

TEST_F(RoceUplinkTest, AListenerHearsTheFramesThatAreOnTheWire) {
    Listener listener;
    make(0x2007);
    uplink_->listen(&listener);
    uplink_->receive(1, sink_);
    const std::vector<std::byte> payload(100, std::byte{0x5A});
    const auto send = [&](std::uint32_t address, std::uint32_t psn) {
        Packet packet = to(address);
        packet.payload = payload;
        packet.bth.psn = psn;
        uplink_->send(packet);
    };
    send(0x0A090003, 1);
    EXPECT_TRUE(listener.sent.empty()) << "it waits for its neighbour";
    send(0x0A090002, 2);
    uplink_->end_turn();
    ASSERT_TRUE(shell("ip neigh replace 10.9.0.3 lladdr 02:00:00:00:00:33 dev va nud permanent"));
    port_->arriving.push_back(from_peer(0, 7));
    port_->arriving.push_back(from_peer(0, 8));  // another VLAN
    const std::vector<std::byte> theirs = port_->arriving.front();
    uplink_->receive(uplink_->next_deadline(), sink_);
    uplink_->end_turn();
    ASSERT_EQ(listener.sent.size(), 2U);
    EXPECT_TRUE(
        std::equal(listener.sent.begin(), listener.sent.end(), port_->sent.begin(), port_->sent.end()));
    EXPECT_EQ(listener.received, std::vector<Listener::Frame>{theirs});
    EXPECT_EQ(listener.psns, (std::vector<std::uint32_t>{2, 1, 0}));
    uplink_->listen(nullptr);
    send(0x0A090002, 3);
    EXPECT_EQ(listener.sent.size(), 2U);
}

TEST_F(RoceUplinkTest, APacketThatHadToWaitIsMarkedCapableOfEcnToo) {
    uplink_->receive(1, sink_);
    uplink_->send(to(0x0A090003));
    ASSERT_TRUE(shell("ip neigh replace 10.9.0.3 lladdr 02:00:00:00:00:33 dev va nud permanent"));
    uplink_->receive(uplink_->next_deadline(), sink_);
    uplink_->end_turn();
    RoceEnvelope envelope;
    EXPECT_EQ(ecn_of(sent_packet(0, envelope)), Ecn::kCapable0);
}

TEST_F(RoceUplinkTest, ADestinationWithoutRouteIsAskedForAgainAfterAWhile) {
    uplink_->receive(1, sink_);
    uplink_->send(to(0xC0000201));
    ASSERT_TRUE(shell("ip route add 192.0.2.0/24 via 10.9.0.2 dev va"));
    uplink_->send(to(0xC0000201));
    EXPECT_EQ(counter("tx_no_route"), 2U) << "not asked for every packet";
    uplink_->receive(kSecond, sink_);
    uplink_->send(to(0xC0000201));
    uplink_->end_turn();
    EXPECT_EQ(port_->sent.size(), 1U);
}

TEST_F(RoceUplinkTest, GivesUpAfterASecondAndWithoutARoute) {
    uplink_->receive(1, sink_);
    uplink_->send(to(0x0A090004));
    uplink_->receive(2 * kSecond, sink_);
    EXPECT_EQ(counter("tx_unresolved"), 1U);
    uplink_->send(to(0xC0000201));
    EXPECT_EQ(counter("tx_no_route"), 1U);
    uplink_->end_turn();
    EXPECT_TRUE(port_->sent.empty());
}

TEST_F(RoceUplinkTest, SendsNothingBetweenAddressFamilies) {
    Packet packet = to(0x0A090002);
    packet.grh.sgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    uplink_->send(packet);
    uplink_->end_turn();
    EXPECT_TRUE(port_->sent.empty());
    EXPECT_EQ(counter("tx_mixed_families"), 1U);
}

TEST_F(RoceUplinkTest, GroupsAreJoinedAtTheHostAndLeft) {
    uplink_->join(gid_of_ipv4(0xEF010203));
    EXPECT_TRUE(shell("grep -q 030201EF /proc/net/igmp"));
    uplink_->join({0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x47, 0x91});
    EXPECT_TRUE(shell("grep -q ff0e0000000000000000000000004791 /proc/net/igmp6"));
    uplink_->leave(gid_of_ipv4(0xEF010203));
    EXPECT_TRUE(shell("! grep -q 030201EF /proc/net/igmp"));
    EXPECT_EQ(counter("join_refused"), 0U);
}

TEST_F(RoceUplinkTest, ReceivesWhatIsForItAndCountsTheRest) {
    port_->arriving.push_back(from_peer());
    port_->arriving.push_back(from_peer(3));
    port_->arriving.push_back(from_peer(0, {}, 0x0A090009));
    port_->arriving.push_back(from_peer(0, 0x0005));
    std::vector<std::byte> broken = from_peer();
    broken[57] ^= std::byte{1};  // of the ICRC; two bytes of filling follow
    port_->arriving.push_back(broken);
    std::vector<std::byte> old = from_peer();
    old[12] = std::byte{0x89};
    old[13] = std::byte{0x15};
    port_->arriving.push_back(old);
    EXPECT_TRUE(uplink_->receive(1, sink_));
    EXPECT_EQ(sink_.opcodes.size(), 2U);
    EXPECT_EQ(counter("rx_congested"), 1U);
    EXPECT_EQ(counter("rx_other_host"), 2U);
    EXPECT_EQ(counter("rx_icrc"), 1U);
    EXPECT_EQ(counter("rx_roce_v1"), 1U);
    uplink_->end_turn();
    EXPECT_FALSE(uplink_->receive(2, sink_));
}

TEST_F(RoceUplinkTest, TagsAndUntags) {
    make(0x2007);
    uplink_->send(to(0x0A090002));
    uplink_->end_turn();
    RoceEnvelope envelope;
    sent_packet(0, envelope);
    EXPECT_EQ(envelope.vlan, 0x2007);
    port_->arriving.push_back(from_peer(0, 0x0007));
    port_->arriving.push_back(from_peer());
    port_->arriving.push_back(from_peer(0, 0x0008));
    uplink_->receive(1, sink_);
    EXPECT_EQ(sink_.opcodes.size(), 1U);
    EXPECT_EQ(counter("rx_other_host"), 2U);
}

TEST_F(RoceUplinkTest, AddressesAndLinkStateAreFollowed) {
    EXPECT_EQ(uplink_->take_changes(), 0);
    EXPECT_TRUE(uplink_->active());
    ASSERT_TRUE(shell("ip addr add 10.9.0.8/24 dev va"));
    uplink_->receive(kSecond, sink_);
    EXPECT_EQ(uplink_->take_changes(), kUplinkAddresses);
    const std::vector<Gid> gids = uplink_->gids();
    EXPECT_NE(std::find(gids.begin(), gids.end(), gid_of_ipv4(0x0A090008)), gids.end());
    port_->up = false;
    uplink_->receive(2 * kSecond, sink_);
    EXPECT_EQ(uplink_->take_changes() & kUplinkState, kUplinkState);
    EXPECT_FALSE(uplink_->active());
    EXPECT_EQ(uplink_->take_changes(), 0) << "told once";
}

TEST_F(RoceUplinkTest, MtuIsTheLargestThatFits) {
    EXPECT_EQ(uplink_->mtu(), 4096U);
    make({}, 1500);
    EXPECT_EQ(uplink_->mtu(), 1024U);
    make({}, 9000);
    EXPECT_EQ(uplink_->mtu(), 4096U);
    make({}, 300);
    EXPECT_EQ(uplink_->mtu(), 0U);
}

TEST_F(RoceUplinkTest, TheUdpPortIsHeldAndSharedInOneEngine) {
    EXPECT_NO_THROW(make({}));
    const auto second = hold_roce_port();
    EXPECT_NE(second, nullptr);
}

}  // namespace
}  // namespace uib::net
