// The local route header and the CRCs: 7.7, 7.8.
#include "net/wire/crc.h"
#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

struct LinkHeader : ::testing::Test {
    Station station;
    void SetUp() override { station.to_active(); }
};

TEST_F(LinkHeader, C7_45_the_sender_obeys_the_smaller_mtu_and_the_receiver_its_own) {
    ROWS("C7-45");
    constexpr std::array<std::uint32_t, 6> kWords{0, 95, 159, 287, 543, 1055};
    for (std::uint8_t mtu = 1; mtu <= 5; ++mtu) {
        Station port({}, {.neighbor_mtu = mtu});
        port.to_active();
        EXPECT_EQ(max_packet_words(mtu), kWords[mtu]);
        const std::size_t payload = kWords[mtu] * std::size_t{4} - kDataOverhead;
        if (payload <= 4096) {
            EXPECT_EQ(port.send(0, payload), Enqueued::kQueued);
            EXPECT_EQ(port.packets().size(), 1U);
            EXPECT_EQ(port.send(0, payload + 4), Enqueued::kDiscarded);
            EXPECT_EQ(port.port.send_discards().too_long, 1U);
        }
        port.data(0, 4096);
        EXPECT_EQ(port.taken(0), 1);
        // The other way round: the port's own MTU is the smaller one.
        Station own({.mtu_cap = mtu}, {.neighbor_mtu = 5});
        own.to_active();
        if (payload > 4096 - 4) continue;
        EXPECT_EQ(own.send(0, payload), Enqueued::kQueued);
        EXPECT_EQ(own.send(0, payload + 4), Enqueued::kDiscarded);
        EXPECT_EQ(own.port.send_discards().too_long, 1U);
    }
}

TEST_F(LinkHeader, C7_38_reserved_fields_and_version_of_the_lrh) {
    ROWS("C7-38", "C7-39", "C7-40", "C7-41");
    station.send(0, 64);
    const Bytes sent = station.packets().at(0).bytes;
    EXPECT_EQ(sent[0] & std::byte{0x0F}, std::byte{0});
    EXPECT_EQ(sent[1] & std::byte{0x0C}, std::byte{0});
    EXPECT_EQ(sent[4] & std::byte{0xF8}, std::byte{0});
    for (unsigned version = 1; version < 16; ++version)
        station.receives(
            changed(Station::to_port(0), [&](Bytes& p) { p[0] = static_cast<std::byte>(version); }));
    EXPECT_EQ(station.taken(0), 0);
    EXPECT_EQ(
        station.port.receive_discards().of(PacketError::kLinkVersion) + station.port.receive_discards().state,
        15U);
    Station other;
    other.to_active();
    other.receives(changed(Station::to_port(0), [](Bytes& p) {
        p[1] |= std::byte{0x0C};
        p[4] |= std::byte{0xF8};
    }));
    EXPECT_EQ(other.taken(0), 1);
    // LNH: 3 with a GRH, 2 without; 0 and 1 are raw.
    for (const auto& [kind, grh, next] :
         {std::tuple{PacketKind::kTransport, true, 3}, std::tuple{PacketKind::kTransport, false, 2},
          std::tuple{PacketKind::kRawIpv6, false, 1}, std::tuple{PacketKind::kRawEthertype, false, 0}}) {
        Packet packet = data_packet(0, 64);
        packet.kind = kind;
        packet.has_grh = grh;
        ASSERT_EQ(other.port.enqueue(packet, other.now), Enqueued::kQueued);
        EXPECT_EQ(static_cast<int>(other.packets().at(0).lrh().next), next);
    }
}

TEST_F(LinkHeader, C7_47_crcs_of_all_packets) {
    ROWS("C7-47", "C7-48", "C7-49", "C7-50", "C7-51", "C7-52");
    for (const PacketKind kind : {PacketKind::kTransport, PacketKind::kRawEthertype, PacketKind::kRawIpv6}) {
        Packet packet = data_packet(0, 64);
        packet.kind = kind;
        station.port.enqueue(packet, station.now);
        const SentFrame sent = station.packets().at(0);
        EXPECT_EQ(sent.bytes.size(), sent.lrh().words * 4U + 2);
        Bytes repaired = sent.bytes;
        repair_crcs(repaired);
        EXPECT_EQ(repaired, sent.bytes);
        const std::size_t icrc = kind == PacketKind::kTransport ? 4 + 12 + 8
                                 : kind == PacketKind::kRawIpv6 ? 0
                                                                : 4;
        EXPECT_EQ(sent.bytes.size(), 8 + icrc + 64 + 2);
    }
    // The worked examples of 7.8.4: of the local and of the global packet.
    const std::string body =
        "0A20248700 87B1B3000DEC2A01710A1C015D400238F27A050000000E BB884D85FD5CFBA4728BC0690ED40000";
    const std::string grh =
        "6000000000300010 00000000000001250000000000000026 00000000000001170000000000000096";
    const Bytes local = hex("7012375C000E17D2" + body);
    const Bytes global = hex("7013375C001817D2" + grh + body);
    std::array<std::byte, 4> stored{};
    store_icrc(link_icrc(local, false), stored);
    EXPECT_EQ(Bytes(stored.begin(), stored.end()), hex("9625B75A"));
    store_icrc(link_icrc(global, true), stored);
    EXPECT_EQ(Bytes(stored.begin(), stored.end()), hex("B67D1ED1"));
    std::array<std::byte, 2> variant{};
    store_vcrc(vcrc(hex("7012375C000E17D2" + body + "9625B75A")), variant);
    EXPECT_EQ(Bytes(variant.begin(), variant.end()), hex("45FA"));
    store_vcrc(vcrc(hex("7013375C001817D2" + grh + body + "B67D1ED1")), variant);
    EXPECT_EQ(Bytes(variant.begin(), variant.end()), hex("B148"));
    // Link packets: six bytes, the last two the LPCRC; every flipped bit is seen.
    station.wait_symbols(kUpdateSymbols);
    Bytes update = station.updates().at(0).bytes;
    ASSERT_EQ(update.size(), 6U);
    EXPECT_EQ(bitwise_crc16(std::span(update).first(4)),
              std::to_integer<unsigned>(update[4]) | std::to_integer<unsigned>(update[5]) << 8);
    for (std::size_t bit = 0; bit < 48; ++bit) {
        Bytes flipped = update;
        flip_bit(flipped, bit);
        FlowControlPacket packet;
        EXPECT_EQ(parse_link_packet(flipped, packet), LinkPacketError::kLpcrc);
    }
}

}  // namespace
}  // namespace uib::net::link
