// Packet receiver, data packet check and link packet check: 7.3 to 7.5.
#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

struct Checks : ::testing::Test {
    Station station{LinkConfig{.mtu_cap = 3}, PortSettings{.operational_vls = 2, .local_phy_errors = 15}};
    void SetUp() override { station.to_active(); }

    std::uint64_t errors() { return station.count(PortCounter::kRcvErrors); }
    std::uint64_t discards(PacketError error) { return station.port.receive_discards().of(error); }
    int delivered() { return station.taken(0) + station.taken(1) + station.taken(kVl15); }
    /// Only this one counter moves by the packet, and nothing is delivered.
    void expect_only(PacketError error, const Bytes& packet) {
        const ReceiveDiscards before = station.port.receive_discards();
        const std::uint64_t errors_before = errors();
        station.receives(packet);
        for (std::size_t i = 1; i < kPacketErrorCount; ++i) {
            const auto each = static_cast<PacketError>(i);
            EXPECT_EQ(discards(each) - before.of(each), each == error ? 1U : 0U)
                << name_of(each) << " by a packet with " << name_of(error);
        }
        EXPECT_EQ(errors() - errors_before, error == PacketError::kDlid ? 0U : 1U) << name_of(error);
        EXPECT_EQ(delivered(), 0) << name_of(error);
    }
};

Bytes bad_vcrc(Bytes packet) {
    packet.back() ^= std::byte{0x40};
    return packet;
}
/// A wrong ICRC under a right VCRC.
Bytes bad_icrc(Bytes packet) {
    const std::size_t end = packet.size() - kVcrcBytes;
    packet[end - 1] ^= std::byte{1};
    put_little_endian(std::span(packet).subspan(end), bitwise_crc16(std::span(packet).first(end)));
    return packet;
}
void set_words(Bytes& packet, std::size_t words) {
    store_be<2>(&packet[4], static_cast<std::uint16_t>(words));
}
void set_vl(Bytes& packet, unsigned vl) {
    packet[0] = (packet[0] & std::byte{0x0F}) | static_cast<std::byte>(vl << 4);
}
void set_version(Bytes& packet, unsigned version) {
    packet[0] = (packet[0] & std::byte{0xF0}) | static_cast<std::byte>(version);
}
/// A raw packet of `words`.
Bytes raw_to_port(std::size_t words) {
    Packet packet = data_packet(0, words * 4 - kLrhBytes - kRwhBytes);
    packet.kind = PacketKind::kRawEthertype;
    packet.lrh.dlid = kOwnLid;
    return wire_form(packet);
}

TEST_F(Checks, C7_4_the_receiver_takes_each_element_once) {
    ROWS("C7-4.1.1");
    using E = Element;
    struct Case {
        std::vector<Element> stream;
        std::vector<Received> told;  // but for kNothing
    };
    const std::vector<Case> cases{
        {{E::kIdle, E::kStartData, E::kBytes, E::kEndGood}, {Received::kDataPacket}},
        {{E::kStartLink, E::kBytes, E::kEndGood}, {Received::kLinkPacket}},
        {{E::kStartData, E::kBytes, E::kEndGood, E::kStartLink, E::kBytes, E::kEndGood},
         {Received::kDataPacket, Received::kLinkPacket}},
        {{E::kBytes, E::kBytes, E::kEndGood, E::kStartData, E::kEndGood},
         {Received::kBadPacketDiscard, Received::kDataPacket}},
        {{E::kStartData, E::kBytes, E::kError, E::kBytes, E::kEndGood, E::kStartData, E::kEndGood},
         {Received::kBadPacket, Received::kDataPacket}},
        {{E::kStartData, E::kIdle, E::kStartLink, E::kEndGood},
         {Received::kBadPacket, Received::kLinkPacket}},
        {{E::kStartLink, E::kIdle, E::kStartLink, E::kEndGood},
         {Received::kBadPacketDiscard, Received::kLinkPacket}},
        {{E::kEndGood, E::kIdle}, {Received::kBadPacketDiscard}},
        // A bad packet without an end: the next start delimiter starts.
        {{E::kStartData, E::kError, E::kBytes, E::kStartData, E::kBytes, E::kEndGood},
         {Received::kBadPacket, Received::kDataPacket}},
        {{E::kStartLink, E::kError, E::kStartLink, E::kEndGood},
         {Received::kBadPacketDiscard, Received::kLinkPacket}},
        {{E::kBytes, E::kStartLink, E::kEndGood}, {Received::kBadPacketDiscard, Received::kLinkPacket}},
        {{E::kStartData, E::kBytes, E::kEndBad, E::kStartData, E::kEndGood},
         {Received::kMarkedBadPacket, Received::kDataPacket}},
        {{E::kStartLink, E::kEndBad, E::kStartLink, E::kEndGood},
         {Received::kBadPacketDiscard, Received::kLinkPacket}},
        {{E::kError, E::kError, E::kIdle, E::kStartData, E::kEndGood},
         {Received::kBadPacketDiscard, Received::kDataPacket}},
        {{E::kIdle, E::kIdle, E::kEndBad}, {Received::kBadPacketDiscard}},
        // Idle ends a packet; what comes then is no part of it.
        {{E::kStartData, E::kBytes, E::kIdle, E::kBytes, E::kEndGood},
         {Received::kBadPacket, Received::kBadPacketDiscard}},
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
        PacketReceiver receiver;
        std::vector<Received> told;
        for (const Element element : cases[i].stream)
            if (const Received what = receiver.on(element); what != Received::kNothing) told.push_back(what);
        EXPECT_EQ(told, cases[i].told) << "case " << i;
    }
}

TEST_F(Checks, C7_4_a_packet_without_a_start_is_discarded) {
    ROWS("C7-4.1.1/1");
    station.port.on_frame({.start = FrameStart::kNone, .bytes = Station::to_port(0)}, station.now);
    EXPECT_EQ(delivered(), 0);
    EXPECT_EQ(errors(), 1U);
    EXPECT_EQ(station.port.receive_discards().bad_packets, 1U);
}

TEST_F(Checks, C7_4_errors_within_and_bad_ends_are_local) {
    ROWS("C7-4.1.1/2");
    const Bytes packet = Station::to_port(0);
    station.port.on_frame({.bytes = packet, .code_error = true}, station.now);
    station.port.on_frame({.bytes = packet, .end = FrameEnd::kNone}, station.now);
    EXPECT_EQ(errors(), 2U);
    EXPECT_EQ(delivered(), 0);
    // The start delimiter that breaks a packet off starts none.
    for (const Element breaks : {Element::kStartData, Element::kStartLink}) {
        PacketReceiver receiver;
        receiver.on(Element::kStartData);
        EXPECT_EQ(receiver.on(breaks), Received::kBadPacket);
        EXPECT_EQ(receiver.on(Element::kBytes), Received::kNothing);
        EXPECT_EQ(receiver.on(Element::kEndGood), Received::kNothing);
    }
    station.receives(packet);
    EXPECT_EQ(delivered(), 1);
}

TEST_F(Checks, C7_4_a_marked_bad_packet_is_a_remote_error) {
    ROWS("C7-4.1.1/3");
    station.port.on_frame({.bytes = Station::to_port(0), .end = FrameEnd::kBad}, station.now);
    EXPECT_EQ(delivered(), 0);
    EXPECT_EQ(station.count(PortCounter::kRcvRemotePhysicalErrors), 1U);
    EXPECT_EQ(errors(), 0U);
}

TEST_F(Checks, C7_4_a_link_packet_marked_bad_is_a_local_error) {
    ROWS("C7-4.1.1/4");
    const Bytes initialize = hex("10 00 08 00 8D D8");
    station.port.on_frame({.start = FrameStart::kLink, .bytes = initialize, .end = FrameEnd::kBad},
                          station.now);
    EXPECT_EQ(station.port.state(), PortState::kActive);
    EXPECT_EQ(errors(), 1U);
    EXPECT_EQ(station.count(PortCounter::kRcvRemotePhysicalErrors), 0U);
}

TEST_F(Checks, C7_7_any_defect_keeps_a_packet_from_its_client) {
    ROWS("C7-7", "C7-10", "C7-11", "U7-7", "C7-67");
    const Bytes good = Station::to_port(0);
    expect_only(PacketError::kVcrc, bad_vcrc(good));
    expect_only(PacketError::kIcrc, bad_icrc(good));
    expect_only(PacketError::kLinkVersion, changed(good, [](Bytes& p) { set_version(p, 1); }));
    expect_only(PacketError::kLength, changed(good, [](Bytes& p) { set_words(p, p.size() / 4 + 1); }));
    expect_only(PacketError::kDlid, changed(good, [](Bytes& p) { store_be<2>(&p[2], std::uint16_t{0x33}); }));
    expect_only(PacketError::kVl, changed(good, [](Bytes& p) { set_vl(p, 2); }));
    Packet global = smp_packet();
    global.lrh.vl = kVl15;
    global.has_grh = true;
    expect_only(PacketError::kGrhOnVl15, wire_form(global));
    EXPECT_EQ(station.port.state(), PortState::kActive);
    station.receives(good);
    EXPECT_EQ(delivered(), 1);
}

TEST_F(Checks, C7_8_the_first_error_in_the_order_of_the_machine_is_told) {
    ROWS("C7-8.1.1", "C7-68");
    Packet source = smp_packet();
    source.lrh.vl = kVl15;
    source.has_grh = true;
    source.lrh.dlid = 0x33;
    Bytes packet = wire_form(source);
    expect_only(PacketError::kDlid, packet);  // and it has a GRH on VL15
    set_words(packet, 200);
    repair_crcs(packet);
    expect_only(PacketError::kLength, packet);
    set_version(packet, 5);
    repair_crcs(packet);
    expect_only(PacketError::kLinkVersion, packet);
    expect_only(PacketError::kIcrc, bad_icrc(packet));
    expect_only(PacketError::kVcrc, bad_vcrc(bad_icrc(packet)));
    // Of a VL that is not there and a DLID of another port the DLID is told.
    expect_only(PacketError::kDlid, changed(Station::to_port(0), [](Bytes& p) {
                    set_vl(p, 9);
                    store_be<2>(&p[2], std::uint16_t{0x33});
                }));
    // Link packets: CRC, length, operand, VL.
    const auto link_discards = [&](LinkPacketError error) {
        return station.port.receive_discards().of(error);
    };
    station.receives_link(hex("F0 00 E0 00 00 00 00"));
    EXPECT_EQ(link_discards(LinkPacketError::kLpcrc), 1U);
    EXPECT_EQ(link_discards(LinkPacketError::kLength), 0U);
    station.update({.operand = 7, .vl = 9});
    EXPECT_EQ(link_discards(LinkPacketError::kOperand), 1U);
    EXPECT_EQ(station.port.receive_discards().link_vl, 0U);
}

TEST_F(Checks, C7_8_length) {
    ROWS("C7-8.1.1/1", "C7-42", "C7-43", "C7-44");
    const Bytes good = Station::to_port(0, 64);
    const std::size_t words = (good.size() - 2) / 4;
    expect_only(PacketError::kLength, changed(good, [&](Bytes& p) { set_words(p, words - 1); }));
    expect_only(PacketError::kLength, changed(good, [&](Bytes& p) { set_words(p, words + 1); }));
    // Raw: 5 words at least.
    station.receives(raw_to_port(5));
    EXPECT_EQ(delivered(), 1);
    expect_only(PacketError::kLength, raw_to_port(4));
    // IBA transport: 6 words.
    Bytes least = Station::to_port(0, 0);
    least.resize(6 * 4 + 2);
    station.receives(changed(least, [](Bytes& p) { set_words(p, 6); }));
    EXPECT_EQ(delivered(), 1);
    least.resize(5 * 4 + 2);
    expect_only(PacketError::kLength, changed(least, [](Bytes& p) { set_words(p, 5); }));
    // MTUCap 1024: 287 words at most.
    station.data(0, 287 * 4 - kDataOverhead);
    EXPECT_EQ(delivered(), 1);
    expect_only(PacketError::kLength, Station::to_port(0, 288 * 4 - kDataOverhead));
    expect_only(PacketError::kVcrc, Bytes(9));
    expect_only(PacketError::kLength, Bytes(1));
}

TEST_F(Checks, C7_8_a_switch_port_leaves_the_icrc_to_the_destination) {
    ROWS("C7-8.1.1/2", "C7-9");
    Station port({.role = PortRole::kSwitch}, {.local_phy_errors = 15});
    port.to_active();
    port.receives(bad_icrc(Station::to_port(0)));
    EXPECT_EQ(port.taken(0), 1);
    // What may be for the switch itself is checked in full.
    port.receives(bad_icrc(Station::to_port(kVl15)));
    EXPECT_EQ(port.taken(kVl15), 0);
    port.receives(changed(Station::to_port(kVl15), [](Bytes& p) { set_version(p, 3); }));
    port.receives(changed(Station::to_port(kVl15), [](Bytes& p) { set_words(p, 71); }));
    EXPECT_EQ(port.taken(kVl15), 0);
    EXPECT_EQ(port.count(PortCounter::kRcvErrors), 3U);
    // DLID 0 goes nowhere: an error of switch routing.
    port.receives(changed(Station::to_port(0), [](Bytes& p) { store_be<2>(&p[2], std::uint16_t{0}); }));
    EXPECT_EQ(port.count(PortCounter::kRcvSwitchRelayErrors), 1U);
    EXPECT_EQ(port.taken(0), 0);
}

TEST_F(Checks, C7_8_multicast_dlids_are_left_to_the_transport) {
    ROWS("C7-8.1.1/3");
    for (const Lid dlid : {Lid{0xC000}, Lid{0xFFFE}}) {
        station.receives(changed(Station::to_port(0), [&](Bytes& p) { store_be<2>(&p[2], dlid); }));
        EXPECT_EQ(delivered(), 1);
    }
    EXPECT_EQ(station.port.counters().extended(PortCounter::kMulticastRcvPkts), 2U);
}

TEST_F(Checks, C7_12_bad_link_packets_leave_flow_control_alone) {
    ROWS("C7-12", "C7-57");
    station.data(0, 500);
    const auto received = station.port.receive_credits(0).received();
    ASSERT_NE(received, 0);
    station.send(0, 64);
    ASSERT_EQ(station.packets().size(), 1U);
    station.update({.fctbs = received, .fccl = 1});  // no credits any more
    for (const std::uint8_t operand : {2, 5, 15})
        station.update({.operand = operand, .fctbs = 99, .fccl = kPlenty});
    Bytes bad = hex("00 63 08 00 00 00");
    station.receives_link(bad);
    bad = hex("00 63 08 00 00");
    station.receives_link(bad);
    EXPECT_EQ(station.port.receive_credits(0).received(), received);
    station.send(0, 64);
    EXPECT_TRUE(station.packets().empty());
    EXPECT_EQ(errors(), 5U);
    EXPECT_EQ(station.port.receive_discards().of(LinkPacketError::kOperand), 3U);
    EXPECT_EQ(station.port.state(), PortState::kActive);
}

TEST_F(Checks, C7_12_credits_for_a_vl_that_is_not_there) {
    ROWS("C7-12/1");
    Station other;
    other.to_init();
    other.update({.operand = kFlowControlInitialize, .vl = 9, .fccl = 5});
    other.command(PortState::kArm);
    other.update({.vl = 9, .fccl = 5});
    EXPECT_EQ(other.count(PortCounter::kRcvErrors), 0U);
    other.command(PortState::kActive);
    ASSERT_EQ(other.port.state(), PortState::kActive);
    other.update({.vl = 9, .fccl = 5});
    EXPECT_EQ(other.count(PortCounter::kRcvErrors), 1U);
    EXPECT_EQ(other.port.receive_discards().link_vl, 1U);
}

TEST_F(Checks, C7_66_unicast_dlids_are_masked_by_the_lmc) {
    ROWS("C7-66");
    PortSettings settings = station.port.settings();
    settings.lmc = 2;
    station.port.configure(settings, station.now);
    for (const Lid dlid : {Lid{0x0F}, Lid{0x10}, Lid{0x11}, Lid{0x13}, Lid{0x14}}) {
        station.receives(changed(Station::to_port(0), [&](Bytes& p) { store_be<2>(&p[2], dlid); }));
        EXPECT_EQ(delivered(), dlid >= 0x10 && dlid <= 0x13 ? 1 : 0) << dlid;
    }
    EXPECT_EQ(discards(PacketError::kDlid), 2U);
    // The reserved LID is nobody's, the permissive one everybody's, whatever the mask.
    for (const auto& [dlid, own] : {std::pair{Lid{0}, false}, std::pair{kPermissiveLid, true}})
        for (const std::uint8_t lmc : {0, 7}) EXPECT_EQ(is_own_dlid(dlid, 0, lmc), own) << dlid;
    for (unsigned lmc = 0; lmc <= 7; ++lmc) {
        const auto bits = static_cast<std::uint8_t>(lmc);
        EXPECT_TRUE(is_own_dlid(static_cast<Lid>(0x80 + (1U << lmc) - 1), 0x80, bits));
        EXPECT_FALSE(is_own_dlid(static_cast<Lid>(0x80 + (1U << lmc)), 0x80, bits));
        EXPECT_FALSE(is_own_dlid(0x7F, 0x80, bits));
    }
}

}  // namespace
}  // namespace uib::net::link
