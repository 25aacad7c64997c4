// The global route header as a channel adapter sends and takes it: 8.3, 8.4.1, 8.4.3.
#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

constexpr std::size_t kGrhAt = kLrhBytes;

struct GlobalRoute : ::testing::Test {
    Station station;
    Packet packet = data_packet(0, 100);

    void SetUp() override {
        packet.has_grh = true;
        packet.grh.sgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
        packet.grh.dgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 9, 10, 11, 12, 13, 14, 15, 16};
        packet.grh.hop_limit = 64;
        station.to_active();
    }
    Bytes sent() {
        EXPECT_EQ(station.port.enqueue(packet, station.now), Enqueued::kQueued);
        return station.packets().at(0).bytes;
    }
    Bytes grh() {
        const Bytes bytes = sent();
        return {bytes.begin() + kGrhAt, bytes.begin() + kGrhAt + kGrhBytes};
    }
    /// What the adapter makes of it: through the port's checks, then the network layer's.
    DecodeError received(const Bytes& bytes) {
        station.receives(bytes);
        if (station.port.front(0).empty()) {
            ADD_FAILURE() << "not let through by the link layer";
            return DecodeError::kTooShort;
        }
        Packet decoded;
        const DecodeError error = decode(station.port.front(0), decoded, {.icrc = false, .vcrc = false});
        station.port.pop(0);
        return error;
    }
    Bytes to_port() {
        packet.lrh.dlid = kOwnLid;
        return wire_form(packet);
    }
};

TEST_F(GlobalRoute, o8_1_any_packet_but_an_smp_may_have_one) {
    ROWS("o8-1", "U8-5");
    EXPECT_EQ(std::to_integer<int>(sent()[1]) & 3, 3);
    EXPECT_EQ(received(to_port()), DecodeError::kNone);
    packet.has_grh = false;
    packet.lrh.dlid = kPeerLid;
    EXPECT_EQ(std::to_integer<int>(sent()[1]) & 3, 2);
    EXPECT_EQ(received(to_port()), DecodeError::kNone);
    Packet smp = smp_packet();
    smp.has_grh = true;
    EXPECT_EQ(station.port.enqueue(smp, station.now), Enqueued::kDiscarded);
}

TEST_F(GlobalRoute, C8_2_fields_that_are_always_the_same) {
    ROWS("C8-2", "C8-4", "C8-7");
    const Bytes fields = grh();
    EXPECT_EQ(fields[0], std::byte{0x60});
    EXPECT_EQ(fields[1], std::byte{0});  // no flow label
    EXPECT_EQ(fields[2], std::byte{0});
    EXPECT_EQ(fields[3], std::byte{0});
    EXPECT_EQ(fields[6], std::byte{0x1B});
}

TEST_F(GlobalRoute, C8_3_fields_of_the_address_vector) {
    ROWS("C8-3", "C8-5", "C8-9", "C8-11");
    packet.grh.traffic_class = 0xA5;
    packet.grh.flow_label = 0x12345;
    for (int i = 0; i < 3; ++i) {  // the same in all packets of the stream
        packet.bth.psn = static_cast<std::uint32_t>(i);
        const Bytes fields = grh();
        EXPECT_EQ(Bytes(fields.begin(), fields.begin() + 4), hex("6A512345"));
        EXPECT_EQ(fields[7], std::byte{64});
        EXPECT_EQ(Bytes(fields.begin() + 8, fields.end()),
                  hex("FE800000000000000102030405060708 FE80000000000000090A0B0C0D0E0F10"));
    }
}

TEST_F(GlobalRoute, C8_6_payload_length) {
    ROWS("C8-6");
    for (const std::size_t payload : {0, 1, 100, 4096}) {
        packet.payload = payload_of(payload);
        const Bytes bytes = sent();
        const auto words = load_be<std::uint16_t>(&bytes[4]) & 0x7FF;
        EXPECT_EQ(load_be<std::uint16_t>(&bytes[kGrhAt + 4]), words * 4 - 48);
    }
}

TEST_F(GlobalRoute, C8_8_raw_ipv6_packets_say_what_follows_themselves) {
    ROWS("C8-8", "U8-7");
    Packet raw = data_packet(0, 0);
    raw.kind = PacketKind::kRawIpv6;
    raw.lrh.dlid = kOwnLid;
    // 3 bytes of UDP (17), padded to a word that the length does not count.
    const Bytes datagram = hex("6000000000031140" + std::string(64, '0') + "AABBCC");
    raw.payload = datagram;
    const Bytes bytes = wire_form(raw);
    EXPECT_EQ(bytes.size(), 8U + 44 + 2);
    EXPECT_EQ(bytes[kGrhAt + 6], std::byte{17});
    EXPECT_EQ(load_be<std::uint16_t>(&bytes[kGrhAt + 4]), 3);
    EXPECT_EQ(received(bytes), DecodeError::kNone);
    // IBA transport in a raw packet is none.
    EXPECT_EQ(received(changed(bytes, [](Bytes& p) { p[kGrhAt + 6] = std::byte{0x1B}; })),
              DecodeError::kRawTransport);
}

TEST_F(GlobalRoute, U8_10_another_version_is_dropped) {
    ROWS("U8-10");
    for (const int version : {4, 7})
        EXPECT_EQ(
            received(changed(to_port(), [&](Bytes& p) { p[kGrhAt] = static_cast<std::byte>(version << 4); })),
            DecodeError::kGrhVersion);
}

TEST_F(GlobalRoute, U8_11_another_next_header_is_dropped) {
    ROWS("U8-11");
    EXPECT_EQ(received(changed(to_port(), [](Bytes& p) { p[kGrhAt + 6] = std::byte{0x11}; })),
              DecodeError::kGrhNextHeader);
}

TEST_F(GlobalRoute, U8_6_a_destination_in_the_subnet_takes_any_hop_limit) {
    ROWS("U8-6");
    for (const std::uint8_t hops : {0, 1, 255}) {
        packet.grh.hop_limit = hops;
        EXPECT_EQ(received(to_port()), DecodeError::kNone);
    }
}

}  // namespace
}  // namespace uib::net::link
