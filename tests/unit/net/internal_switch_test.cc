#include "net/fabric/internal_switch.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace uib::net {
namespace {

TEST(InternalSwitch, RoutesByLid) {
    InternalSwitch fabric;
    const auto a = fabric.add_port(1), b = fabric.add_port(7);
    EXPECT_EQ(fabric.route(1), a);
    EXPECT_EQ(fabric.route(7), b);
    EXPECT_EQ(fabric.route(2), InternalSwitch::kNoPort);
    EXPECT_EQ(fabric.route(60000), InternalSwitch::kNoPort);
}

TEST(InternalSwitch, RefusesLidsThatNameNoPort) {
    InternalSwitch fabric;
    fabric.add_port(3);
    EXPECT_THROW(fabric.add_port(3), std::invalid_argument);
    EXPECT_THROW(fabric.add_port(0), std::invalid_argument);
    EXPECT_THROW(fabric.add_port(kMulticastLidFirst), std::invalid_argument);
}

TEST(InternalSwitch, MembershipIsCounted) {
    InternalSwitch fabric;
    const auto a = fabric.add_port(1), b = fabric.add_port(2);
    fabric.join(0xC001, b);
    fabric.join(0xC001, a);
    fabric.join(0xC001, a);
    EXPECT_EQ(fabric.members(0xC001), (std::vector<InternalSwitch::PortIndex>{a, b}));
    fabric.leave(0xC001, a);
    EXPECT_EQ(fabric.members(0xC001).size(), 2U);
    fabric.leave(0xC001, a);
    fabric.leave(0xC001, a);
    EXPECT_EQ(fabric.members(0xC001), std::vector<InternalSwitch::PortIndex>{b});
    EXPECT_TRUE(fabric.members(0xC002).empty());
}

TEST(InternalSwitch, CountsWordsAndKindsOfPackets) {
    InternalSwitch fabric;
    const auto port = fabric.add_port(1);
    const std::byte payload[5] = {};
    Packet packet;
    packet.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
    packet.lrh.dlid = 1;
    packet.payload = payload;
    fabric.count_sent(port, packet);
    packet.lrh.dlid = 0xC001;
    fabric.count_received(port, packet);
    // LRH 8, BTH 12, payload 5 padded to 8, ICRC 4: 32 bytes.
    EXPECT_EQ(fabric.counters(port).xmit_words, 8U);
    EXPECT_EQ(fabric.counters(port).unicast_xmit_packets, 1U);
    EXPECT_EQ(fabric.counters(port).multicast_xmit_packets, 0U);
    EXPECT_EQ(fabric.counters(port).multicast_rcv_packets, 1U);
}

}  // namespace
}  // namespace uib::net
