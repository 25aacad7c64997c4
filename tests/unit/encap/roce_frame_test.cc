// RoCE v2 frames against bytes laid out by hand, and every way of damaging one.
#include "net/encap/roce_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "net/wire/gid.h"

namespace uib::net {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

const std::vector<std::byte> kPayload = bytes({0xDE, 0xAD, 0xBE, 0xEF, 0x01});

Packet send_only(bool ipv4) {
    Packet packet;
    packet.has_grh = true;
    packet.grh.traffic_class = 0x6A;
    packet.grh.hop_limit = 64;
    if (ipv4) {
        packet.grh.sgid = gid_of_ipv4(0x0A000001);
        packet.grh.dgid = gid_of_ipv4(0x0A000002);
    } else {
        packet.grh.sgid = {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        packet.grh.dgid = {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
        packet.grh.flow_label = 0x54321;
    }
    packet.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
    packet.bth.pad = 3;
    packet.bth.ack_req = true;
    packet.bth.dest_qp = 0x000111;
    packet.bth.psn = 0x0ABCDE;
    packet.payload = kPayload;
    return packet;
}

RoceEnvelope envelope() {
    RoceEnvelope out;
    out.destination = {2, 0, 0, 0, 0, 2};
    out.source = {2, 0, 0, 0, 0, 1};
    out.udp_source = 0xC123;
    return out;
}

std::vector<std::byte> frame_of(const Packet& packet, const RoceEnvelope& wrap) {
    std::vector<std::byte> frame(roce_frame_bytes(packet, wrap.vlan.has_value()), std::byte{0x55});
    EXPECT_EQ(encode_roce(packet, wrap, frame), frame.size());
    return frame;
}

RoceError unwrap(std::span<const std::byte> frame, Packet& out) {
    RoceEnvelope wrap;
    DecodeError detail{};
    return decode_roce(frame, out, wrap, detail);
}

// A CRC-32 of its own, bit by bit, so that the ICRC is judged by the definition.
std::uint32_t bitwise_crc32(const std::vector<std::byte>& data) {
    std::uint32_t crc = 0xFFFFFFFF;
    for (const std::byte byte : data) {
        crc ^= std::to_integer<std::uint32_t>(byte);
        for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
    }
    return ~crc;
}

TEST(RoceFrame, Ipv4FrameByteForByte) {
    const std::vector<std::byte> frame = frame_of(send_only(true), envelope());
    // Ethernet, IPv4 (length 20 + 8 + 12 + 8 + 4 = 52; the checksum follows below), UDP, BTH, payload and
    // pad.
    std::vector<std::byte> want = bytes(
        {2,    0,    0,    0,    0,    2,  2,    0,    0,    0,    0,    1,    8,  0,                     //
         0x45, 0x6A, 0,    52,   0,    0,  0x40, 0,    64,   17,   0,    0,    10, 0, 0, 1, 10, 0, 0, 2,  //
         0xC1, 0x23, 0x12, 0xB7, 0,    32, 0,    0,                                                       //
         0x04, 0x70, 0xFF, 0xFF, 0,    0,  0x01, 0x11, 0x80, 0x0A, 0xBC, 0xDE,                            //
         0xDE, 0xAD, 0xBE, 0xEF, 0x01, 0,  0,    0});
    // One's complement sum: 456A 0034 0000 4000 4011 0A00 0001 0A00 0002 = D9B2 (no carry), complement 264D.
    want[24] = std::byte{0x26};
    want[25] = std::byte{0x4D};
    ASSERT_EQ(frame.size(), want.size() + 4);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), frame.begin()));
    // The ICRC covers ones in place of the LRH, of type of service, TTL, both checksums, and Resv8a of the
    // BTH.
    std::vector<std::byte> covered(want.begin() + 14 - 8, want.end());
    std::fill_n(covered.begin(), 8, std::byte{0xFF});
    for (const std::size_t at : {8 + 1, 8 + 8, 8 + 10, 8 + 11, 8 + 20 + 6, 8 + 20 + 7, 8 + 28 + 4})
        covered[at] = std::byte{0xFF};
    const std::uint32_t icrc = bitwise_crc32(covered);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(frame[want.size() + i], static_cast<std::byte>(icrc >> (8 * i))) << i;
}

TEST(RoceFrame, Ipv6IcrcByItsDefinition) {
    const std::vector<std::byte> frame = frame_of(send_only(false), envelope());
    EXPECT_EQ(frame[12], std::byte{0x86});
    EXPECT_EQ(frame[13], std::byte{0xDD});
    EXPECT_EQ(frame[14], std::byte{0x66});  // version 6, traffic class 6A
    EXPECT_EQ(frame[15], std::byte{0xA5});
    EXPECT_EQ(frame[19], std::byte{32});
    std::vector<std::byte> covered(frame.begin() + 14 - 8, frame.end() - 4);
    std::fill_n(covered.begin(), 8, std::byte{0xFF});
    covered[8] |= std::byte{0x0F};
    for (const std::size_t at : {8 + 1, 8 + 2, 8 + 3, 8 + 7, 8 + 40 + 6, 8 + 40 + 7, 8 + 48 + 4})
        covered[at] = std::byte{0xFF};
    const std::uint32_t icrc = bitwise_crc32(covered);
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(frame[frame.size() - 4 + i], static_cast<std::byte>(icrc >> (8 * i))) << i;
}

TEST(RoceFrame, RoundTripWithAndWithoutTag) {
    for (const bool ipv4 : {true, false}) {
        for (const bool tagged : {true, false}) {
            RoceEnvelope wrap = envelope();
            if (tagged) wrap.vlan = 0x6123;
            const Packet packet = send_only(ipv4);
            const std::vector<std::byte> frame = frame_of(packet, wrap);
            Packet got;
            RoceEnvelope unwrapped;
            DecodeError detail{};
            ASSERT_EQ(decode_roce(frame, got, unwrapped, detail), RoceError::kNone);
            EXPECT_EQ(unwrapped.vlan, wrap.vlan);
            EXPECT_EQ(unwrapped.source, wrap.source);
            EXPECT_EQ(unwrapped.destination, wrap.destination);
            EXPECT_EQ(unwrapped.udp_source, wrap.udp_source);
            EXPECT_TRUE(got.has_grh);
            EXPECT_EQ(got.grh.sgid, packet.grh.sgid);
            EXPECT_EQ(got.grh.dgid, packet.grh.dgid);
            EXPECT_EQ(got.grh.traffic_class, packet.grh.traffic_class);
            EXPECT_EQ(got.grh.hop_limit, packet.grh.hop_limit);
            EXPECT_EQ(got.grh.flow_label, packet.grh.flow_label);
            EXPECT_EQ(got.bth.psn, packet.bth.psn);
            EXPECT_TRUE(std::equal(got.payload.begin(), got.payload.end(), kPayload.begin(), kPayload.end()));
        }
    }
}

TEST(RoceFrame, ShortFramesAreFilledUpAndTheFillingIsNoPayload) {
    Packet packet = send_only(true);
    packet.payload = {};
    packet.bth.pad = 0;
    const std::vector<std::byte> frame = frame_of(packet, envelope());
    ASSERT_EQ(frame.size(), 60U);
    EXPECT_EQ(frame[58], std::byte{0});
    Packet got;
    ASSERT_EQ(unwrap(frame, got), RoceError::kNone);
    EXPECT_TRUE(got.payload.empty());
}

// Every bit of the frame: a change of a field that routers may change passes, any other is caught.
TEST(RoceFrame, EveryBitIsCoveredOrMayChange) {
    for (const bool ipv4 : {true, false}) {
        const std::vector<std::byte> good = frame_of(send_only(ipv4), envelope());
        for (std::size_t bit = 14 * 8; bit < good.size() * 8; ++bit) {
            std::vector<std::byte> bad = good;
            bad[bit / 8] ^= static_cast<std::byte>(0x80U >> (bit % 8));
            const std::size_t at = bit / 8 - 14;
            const std::size_t transport = ipv4 ? 28 : 48;
            bool may_change = at == transport + 4;                     // FECN, BECN, Resv6
            may_change |= at == transport - 2 || at == transport - 1;  // UDP checksum
            if (!ipv4) may_change |= at == 1 || at == 2 || at == 3 || at == 7 || (at == 0 && bit % 8 >= 4);
            Packet got;
            const RoceError error = unwrap(bad, got);
            if (may_change) {
                EXPECT_EQ(error, RoceError::kNone) << "byte " << at;
            } else {
                EXPECT_NE(error, RoceError::kNone) << "byte " << at << " bit " << bit % 8;
            }
        }
    }
}

TEST(RoceFrame, ARouterMayLowerTheTtl) {
    Packet packet = send_only(true);
    std::vector<std::byte> frame = frame_of(packet, envelope());
    frame[14 + 8] = std::byte{63};
    // The header checksum follows: one less in the high byte of that word is 0x100 more in the complement.
    const unsigned sum = std::to_integer<unsigned>(frame[24]) << 8 | std::to_integer<unsigned>(frame[25]);
    const unsigned next = sum + 0x100;
    frame[24] = static_cast<std::byte>(next >> 8);
    frame[25] = static_cast<std::byte>(next);
    Packet got;
    EXPECT_EQ(unwrap(frame, got), RoceError::kNone);
    EXPECT_EQ(got.grh.hop_limit, 63);
}

TEST(RoceFrame, WhatIsNotOursIsTold) {
    const std::vector<std::byte> good = frame_of(send_only(true), envelope());
    Packet got;
    std::vector<std::byte> frame = good;
    frame[12] = std::byte{0x89};
    frame[13] = std::byte{0x15};
    EXPECT_EQ(unwrap(frame, got), RoceError::kRoceV1);
    frame[13] = std::byte{0x06};
    EXPECT_EQ(unwrap(frame, got), RoceError::kOtherProtocol);
    EXPECT_EQ(unwrap(std::span(good).first(10), got), RoceError::kOtherProtocol);
    EXPECT_EQ(unwrap(std::span(good).first(50), got), RoceError::kTruncated);
    frame = good;
    frame[23] = std::byte{6};  // TCP: the checksum is wrong then, too
    EXPECT_EQ(unwrap(frame, got), RoceError::kIpHeader);
    frame = good;
    frame.back() ^= std::byte{1};
    EXPECT_EQ(unwrap(frame, got), RoceError::kIcrc);
}

TEST(RoceFrame, AFragmentIsRefused) {
    std::vector<std::byte> frame = frame_of(send_only(true), envelope());
    frame[20] = std::byte{0x20};  // more fragments, in place of don't fragment: 0x2000 less
    const unsigned sum = std::to_integer<unsigned>(frame[24]) << 8 | std::to_integer<unsigned>(frame[25]);
    const unsigned next = sum + 0x2000;
    frame[24] = static_cast<std::byte>(next >> 8);
    frame[25] = static_cast<std::byte>(next);
    Packet got;
    EXPECT_EQ(unwrap(frame, got), RoceError::kFragment);
}

TEST(RoceFrame, RandomBytesAndTruncationsAreHarmless) {
    std::mt19937 random(7);
    const std::vector<std::byte> good = frame_of(send_only(true), envelope());
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> frame = good;
        for (int i = 0; i < 4; ++i) frame[random() % frame.size()] = static_cast<std::byte>(random());
        frame.resize(random() % (frame.size() + 1));
        frame.shrink_to_fit();
        Packet got;
        unwrap(frame, got);
    }
}

TEST(RoceFrame, SourcePortTellsFlowsApartAndKeepsThem) {
    EXPECT_EQ(roce_source_port(0, 17, 18), roce_source_port(0, 17, 18));
    EXPECT_NE(roce_source_port(0, 17, 18), roce_source_port(0, 17, 19));
    EXPECT_EQ(roce_source_port(0xFC001, 1, 2), 0xC000 | (0x0001 ^ 0x3F));
    for (std::uint32_t qp = 0; qp < 1000; ++qp) EXPECT_GE(roce_source_port(0, qp, qp * 7), 0xC000);
}

}  // namespace
}  // namespace uib::net
