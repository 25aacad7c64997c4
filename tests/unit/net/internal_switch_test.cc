#include "net/fabric/internal_switch.h"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <stdexcept>
#include <utility>

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
    // Of an Ethernet frame its address tells; it has no LID.
    Packet frame;
    frame.kind = PacketKind::kEthernet;
    const std::byte to_group[16] = {std::byte{1}};
    const std::byte to_host[16] = {std::byte{2}};
    frame.payload = to_group;
    fabric.count_sent(port, frame);
    frame.payload = to_host;
    fabric.count_sent(port, frame);
    EXPECT_EQ(fabric.counters(port).multicast_xmit_packets, 1U);
    EXPECT_EQ(fabric.counters(port).unicast_xmit_packets, 2U);
    EXPECT_EQ(fabric.counters(port).xmit_words, 16U);
}

std::array<PortNumber, kLinearBlock> linear(std::initializer_list<std::pair<unsigned, PortNumber>> entries) {
    std::array<PortNumber, kLinearBlock> ports;
    ports.fill(kNoRoute);
    for (const auto& [lid, port] : entries) ports[lid % kLinearBlock] = port;
    return ports;
}

TEST(InternalSwitch, AManagedPortIsReachedWhenTheTableNamesItAndItAnswersAndIsActive) {
    InternalSwitch fabric;
    const auto a = fabric.add_port();
    EXPECT_EQ(fabric.route(5), InternalSwitch::kNoPort);
    EXPECT_EQ(fabric.why_dropped(5), SwitchDrop::kAboveTop);
    ASSERT_TRUE(fabric.set_top(10));
    EXPECT_EQ(fabric.why_dropped(5), SwitchDrop::kNoEntry);
    ASSERT_TRUE(fabric.set_linear_block(0, linear({{5, 1}, {6, 0}, {7, 2}, {11, 1}})));
    EXPECT_EQ(fabric.why_dropped(5), SwitchDrop::kForeignLid);
    EXPECT_EQ(fabric.why_dropped(6), SwitchDrop::kToSwitch);
    EXPECT_EQ(fabric.why_dropped(7), SwitchDrop::kNoSuchPort);
    fabric.set_end_port(a, {5, 0, false});
    EXPECT_EQ(fabric.why_dropped(5), SwitchDrop::kPortInactive);
    EXPECT_EQ(fabric.route(5), InternalSwitch::kNoPort);
    fabric.set_end_port(a, {5, 0, true});
    EXPECT_EQ(fabric.route(5), a);
    ASSERT_TRUE(fabric.set_top(4));
    EXPECT_EQ(fabric.route(5), InternalSwitch::kNoPort);
    ASSERT_TRUE(fabric.set_top(5));
    EXPECT_EQ(fabric.route(5), a);
}

TEST(InternalSwitch, AnEndPortAnswersToTheLidsOfItsMaskControl) {
    InternalSwitch fabric;
    const auto a = fabric.add_port(), b = fabric.add_port();
    fabric.set_end_port(a, {4, 2, true});
    fabric.set_end_port(b, {8, 1, true});
    ASSERT_TRUE(fabric.set_top(63));
    ASSERT_TRUE(fabric.set_linear_block(
        0, linear({{3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}, {8, 2}, {9, 2}, {10, 2}})));
    for (const Lid lid : {4, 5, 6, 7}) EXPECT_EQ(fabric.route(lid), a) << lid;
    for (const Lid lid : {8, 9}) EXPECT_EQ(fabric.route(lid), b) << lid;
    for (const Lid lid : {3, 10}) EXPECT_EQ(fabric.route(lid), InternalSwitch::kNoPort) << lid;
    fabric.set_end_port(a, {16, 0, true});
    for (const Lid lid : {4, 5, 6, 7}) EXPECT_EQ(fabric.route(lid), InternalSwitch::kNoPort) << lid;
}

TEST(InternalSwitch, AnExternalPortTakesWhateverTheTableSends) {
    InternalSwitch fabric;
    fabric.add_port(1);
    const auto outside = fabric.add_external_port();
    EXPECT_TRUE(fabric.external(outside));
    ASSERT_TRUE(fabric.set_top(200));
    ASSERT_TRUE(fabric.set_linear_block(2, linear({{130, 2}})));
    EXPECT_EQ(fabric.route(130), outside);
    EXPECT_EQ(fabric.route(1), 0U);
}

TEST(InternalSwitch, ATableMayNameAPortThatComesLater) {
    InternalSwitch fabric;
    fabric.add_port(1);
    ASSERT_TRUE(fabric.set_top(63));
    ASSERT_TRUE(fabric.set_linear_block(0, linear({{1, 1}, {30, 2}})));
    EXPECT_EQ(fabric.route(30), InternalSwitch::kNoPort);
    const auto outside = fabric.add_external_port();
    EXPECT_EQ(fabric.route(30), outside);
}

TEST(InternalSwitch, DropsAreCountedByCauseAndAtTheSender) {
    InternalSwitch fabric;
    const auto a = fabric.add_port(1);
    Packet packet;
    packet.lrh.slid = 1;
    packet.lrh.dlid = 99;
    fabric.count_dropped(packet);
    EXPECT_EQ(fabric.dropped(SwitchDrop::kAboveTop), 1U);
    EXPECT_EQ(fabric.counters(a).xmit_discards, 1U);
    packet.lrh.slid = 98;  // nobody's
    fabric.count_dropped(packet);
    EXPECT_EQ(fabric.dropped(SwitchDrop::kAboveTop), 2U);
    EXPECT_EQ(fabric.counters(a).xmit_discards, 1U);
}

TEST(InternalSwitch, TheMulticastTableAndAttachedPortsTogetherReplicate) {
    InternalSwitch fabric;
    for (int i = 0; i < 20; ++i) fabric.add_port(static_cast<Lid>(1 + i));
    std::array<std::uint16_t, kMulticastBlock> masks{};
    masks[1] = 1U << 3 | 1U << 0;  // port 3; port 0 is the switch
    ASSERT_TRUE(fabric.set_multicast_block(0, 0, masks));
    masks[1] = 1U << 2;  // port 18
    ASSERT_TRUE(fabric.set_multicast_block(0, 1, masks));
    EXPECT_EQ(fabric.members(0xC001), (std::vector<InternalSwitch::PortIndex>{2, 17}));
    fabric.join(0xC001, 2);
    fabric.join(0xC001, 0);
    EXPECT_EQ(fabric.members(0xC001), (std::vector<InternalSwitch::PortIndex>{0, 2, 17}));
    fabric.leave(0xC001, 2);
    EXPECT_EQ(fabric.members(0xC001), (std::vector<InternalSwitch::PortIndex>{0, 2, 17}));
    masks[1] = 0;
    ASSERT_TRUE(fabric.set_multicast_block(0, 0, masks));
    EXPECT_EQ(fabric.members(0xC001), (std::vector<InternalSwitch::PortIndex>{0, 17}));
    EXPECT_FALSE(fabric.set_multicast_block(InternalSwitch::kMulticastCap / kMulticastBlock, 0, masks));
}

TEST(InternalSwitch, MulticastBeyondTheTableTakesTheDefaultPort) {
    InternalSwitch fabric;
    fabric.add_port(1);
    fabric.add_port(2);
    const Lid beyond = kMulticastLidFirst + InternalSwitch::kMulticastCap;
    EXPECT_TRUE(fabric.members(beyond).empty());
    fabric.join(beyond + 1, 0);
    fabric.set_default_multicast_port(2);
    EXPECT_EQ(fabric.members(beyond), std::vector<InternalSwitch::PortIndex>{1});
    EXPECT_EQ(fabric.members(beyond + 1), (std::vector<InternalSwitch::PortIndex>{0, 1}));
    EXPECT_TRUE(fabric.members(kMulticastLidFirst).empty());
}

TEST(ForwardingTables, BlocksReadBackAsWritten) {
    ForwardingTables tables(100, 40);
    auto ports = linear({{64, 9}, {99, 8}, {100, 7}});
    EXPECT_TRUE(tables.set_linear_block(1, ports));
    ports[100 % kLinearBlock] = kNoRoute;  // beyond the table
    EXPECT_EQ(tables.linear_block(1), ports);
    EXPECT_FALSE(tables.set_linear_block(2, ports));
    EXPECT_FALSE(tables.set_top(100));
    EXPECT_TRUE(tables.set_top(99));
    std::array<std::uint16_t, kMulticastBlock> masks{};
    masks[7] = 0x8001;
    EXPECT_TRUE(tables.set_multicast_block(1, 15, masks));
    EXPECT_EQ(tables.multicast_block(1, 15), masks);
    EXPECT_TRUE(tables.multicast(kMulticastLidFirst + 39).test(240));
    EXPECT_TRUE(tables.multicast(kMulticastLidFirst + 39).test(255));
    EXPECT_FALSE(tables.set_multicast_block(1, 16, masks));
}

}  // namespace
}  // namespace uib::net
