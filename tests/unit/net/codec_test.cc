// Packets as the specification prints them, written by hand, against the codec in both directions; and each
// way in which a frame can fail to be a packet.
#include "net/wire/codec.h"

#include <gtest/gtest.h>

#include <cstring>

#include "net/wire/headers.h"
#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

Bytes encoded(const Packet& packet) {
    Bytes frame(encoded_bytes(packet), std::byte{0xEE});
    EXPECT_EQ(encode(packet, frame), frame.size());
    return frame;
}

/// The frame without its CRCs.
Bytes body(const Packet& packet) {
    Bytes frame = encoded(packet);
    frame.erase(frame.end() - (packet.kind == PacketKind::kTransport ? 6 : 2), frame.end());
    return frame;
}

/// 7.8.4: RDMA WRITE Only of 14 bytes without GRH.
struct WorkedExample {
    Bytes payload = hex("BB884D85FD5CFBA4728BC0690ED4");
    Packet packet;
    WorkedExample() {
        packet.lrh = {.dlid = 0x375C, .slid = 0x17D2, .sl = 1, .vl = 7};
        packet.bth.opcode = opcode(Service::kRc, Operation::kWriteOnly);
        packet.bth.pad = 2;
        packet.bth.mig_req = false;
        packet.bth.pkey = 0x2487;
        packet.bth.dest_qp = 0x87B1B3;
        packet.bth.psn = 0x0DEC2A;
        packet.reth = {.address = 0x01710A1C015D4002, .rkey = 0x38F27A05, .dma_length = 14};
        packet.payload = payload;
    }
};
const char* const kWorkedBytes =
    "7012375C000E17D2 0A2024870087B1B3000DEC2A 01710A1C015D400238F27A050000000E"
    "BB884D85FD5CFBA4728BC0690ED40000 9625B75A 45FA";

TEST(Codec, WorkedExampleOfTheSpecificationBothWays) {
    const WorkedExample example;
    EXPECT_EQ(encoded(example.packet), hex(kWorkedBytes));
    Packet packet;
    const Bytes frame = hex(kWorkedBytes);
    ASSERT_EQ(decode(frame, packet), DecodeError::kNone);
    EXPECT_EQ(packet.lrh.dlid, 0x375C);
    EXPECT_EQ(packet.lrh.slid, 0x17D2);
    EXPECT_EQ(packet.lrh.sl, 1);
    EXPECT_EQ(packet.lrh.vl, 7);
    EXPECT_EQ(packet.kind, PacketKind::kTransport);
    EXPECT_FALSE(packet.has_grh);
    EXPECT_EQ(packet.bth.opcode, 0x0A);
    EXPECT_EQ(packet.bth.pad, 2);
    EXPECT_FALSE(packet.bth.mig_req || packet.bth.solicited || packet.bth.ack_req);
    EXPECT_FALSE(packet.bth.fecn || packet.bth.becn);
    EXPECT_EQ(packet.bth.pkey, 0x2487);
    EXPECT_EQ(packet.bth.dest_qp, 0x87B1B3U);
    EXPECT_EQ(packet.bth.psn, 0x0DEC2AU);
    EXPECT_EQ(packet.reth.address, 0x01710A1C015D4002U);
    EXPECT_EQ(packet.reth.rkey, 0x38F27A05U);
    EXPECT_EQ(packet.reth.dma_length, 14U);
    EXPECT_EQ(packet.payload.data(), frame.data() + 36);
    EXPECT_EQ(packet.payload.size(), 14U);
}

TEST(Codec, GlobalPacketHasItsGrhWhereTheTableSays) {
    WorkedExample example;
    example.packet.has_grh = true;
    example.packet.grh = {.sgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
                          .dgid = {0xFF, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9},
                          .flow_label = 0xABCDE,
                          .traffic_class = 0x5A,
                          .hop_limit = 0x3F};
    const Bytes headers =
        hex("7013375C001817D2"
            "65AABCDE 0030 1B 3F FE800000000000000102030405060708 FF120000000000000000000000000009"
            "0A2024870087B1B3000DEC2A");
    const Bytes frame = encoded(example.packet);
    ASSERT_EQ(frame.size(), 24U * 4 + 2);
    EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 60), headers);
    Packet packet;
    ASSERT_EQ(decode(frame, packet), DecodeError::kNone);
    EXPECT_TRUE(packet.has_grh);
    EXPECT_EQ(packet.grh.sgid, example.packet.grh.sgid);
    EXPECT_EQ(packet.grh.dgid, example.packet.grh.dgid);
    EXPECT_EQ(packet.grh.flow_label, 0xABCDEU);
    EXPECT_EQ(packet.grh.traffic_class, 0x5A);
    EXPECT_EQ(packet.grh.hop_limit, 0x3F);
    EXPECT_EQ(packet.payload.size(), 14U);
}

TEST(Codec, IcrcSurvivesWhatChangesOnTheWay) {
    WorkedExample example;
    example.packet.has_grh = true;
    Bytes frame = encoded(example.packet);
    const Bytes icrc(frame.end() - 6, frame.end() - 2);
    // A router: LRH, traffic class, flow label, hop limit; a switch: the congestion mark.
    frame[0] = std::byte{0x30};
    frame[3] = std::byte{0x11};
    frame[9] = std::byte{0x77};
    frame[15] = std::byte{0x01};
    frame[52] |= std::byte{0x80};
    repair_crcs(frame);
    EXPECT_EQ(Bytes(frame.end() - 6, frame.end() - 2), icrc);
    Packet packet;
    EXPECT_EQ(decode(frame, packet), DecodeError::kNone);
    EXPECT_TRUE(packet.bth.fecn);
}

TEST(Codec, EachFlagOfTheBthHasItsBit) {
    Packet packet;
    packet.bth.mig_req = false;
    packet.bth.opcode = 0x04;
    const auto byte_at = [&](std::size_t at) { return std::to_integer<int>(encoded(packet)[8 + at]); };
    EXPECT_EQ(byte_at(1), 0x00);
    packet.bth.solicited = true;
    EXPECT_EQ(byte_at(1), 0x80);
    packet.bth.mig_req = true;
    EXPECT_EQ(byte_at(1), 0xC0);
    packet.bth.pad = 3;
    EXPECT_EQ(byte_at(1), 0xF0);
    EXPECT_EQ(byte_at(4), 0x00);
    packet.bth.fecn = true;
    EXPECT_EQ(byte_at(4), 0x80);
    packet.bth.becn = true;
    EXPECT_EQ(byte_at(4), 0xC0);
    EXPECT_EQ(byte_at(8), 0x00);
    packet.bth.ack_req = true;
    EXPECT_EQ(byte_at(8), 0x80);
}

TEST(Codec, VersionsHaveTheirPlaces) {
    Bytes bytes(kLrhBytes);
    build_lrh({.lrh = {}, .version = 0xB, .next = LinkNextHeader::kGlobal, .words = 0x7FF},
              std::span<std::byte, kLrhBytes>(bytes));
    EXPECT_EQ(bytes, hex("0B03000007FF0000"));
    EXPECT_EQ(parse_lrh(std::span<const std::byte, kLrhBytes>(bytes)).version, 0xB);
    bytes.resize(kBthBytes);
    build_bth({.bth = {}, .version = 0xC}, std::span<std::byte, kBthBytes>(bytes));
    EXPECT_EQ(bytes[1], std::byte{0x4C});
    EXPECT_EQ(parse_bth(std::span<const std::byte, kBthBytes>(bytes)).version, 0xC);
}

Packet packet_of(Service service, Operation operation) {
    Packet packet;
    packet.lrh = {.dlid = 2, .slid = 1, .sl = 0, .vl = 0};
    packet.bth.opcode = opcode(service, operation);
    packet.bth.dest_qp = 0x11;
    packet.bth.psn = 0x22;
    return packet;
}

/// What stands behind the BTH, CRCs left out.
Bytes behind_bth(const Packet& packet) {
    const Bytes all = body(packet);
    return {all.begin() + 20, all.end()};
}

TEST(Codec, AtomicRequest) {
    Packet packet = packet_of(Service::kRc, Operation::kCompareSwap);
    packet.atomic = {.address = 0x0102030405060708,
                     .rkey = 0x0A0B0C0D,
                     .swap_add = 0x1112131415161718,
                     .compare = 0x2122232425262728};
    EXPECT_EQ(behind_bth(packet), hex("0102030405060708 0A0B0C0D 1112131415161718 2122232425262728"));
}

TEST(Codec, AtomicAnswer) {
    Packet packet = packet_of(Service::kRc, Operation::kAtomicAcknowledge);
    packet.aeth = {.syndrome = 0x1F, .msn = 0xABCDEF};
    packet.atomic_original = 0x8899AABBCCDDEEFF;
    EXPECT_EQ(behind_bth(packet), hex("1F ABCDEF 8899AABBCCDDEEFF"));
}

TEST(Codec, ImmediateIsTheClientsFourBytes) {
    Packet packet = packet_of(Service::kUc, Operation::kWriteOnlyImmediate);
    packet.reth = {.address = 1, .rkey = 2, .dma_length = 0};
    const Bytes immediate = hex("DEADBEEF");
    std::memcpy(&packet.immediate, immediate.data(), 4);
    EXPECT_EQ(behind_bth(packet), hex("0000000000000001 00000002 00000000 DEADBEEF"));
}

TEST(Codec, InvalidateBehindTheXrcSrq) {
    Packet packet = packet_of(Service::kXrc, Operation::kSendOnlyInvalidate);
    packet.xrc_srq = 0xFF123456;
    packet.invalidate_key = 0x0BADCAFE;
    EXPECT_EQ(behind_bth(packet), hex("00123456 0BADCAFE"));
}

TEST(Codec, XrcAnswersHaveNoXrcSrq) {
    Packet packet = packet_of(Service::kXrc, Operation::kAcknowledge);
    packet.xrc_srq = 0x123456;
    packet.aeth = {.syndrome = 0x60, .msn = 1};
    EXPECT_EQ(behind_bth(packet), hex("60000001"));
}

TEST(Codec, DatagramHeaderAndImmediate) {
    Packet packet = packet_of(Service::kUd, Operation::kSendOnlyImmediate);
    packet.deth = {.qkey = 0x80010000, .source_qp = 0xABC123};
    std::memset(&packet.immediate, 0x7E, 4);
    EXPECT_EQ(behind_bth(packet), hex("80010000 00ABC123 7E7E7E7E"));
}

TEST(Codec, ReliableDatagramRequestAndAnswer) {
    Packet request = packet_of(Service::kRd, Operation::kReadRequest);
    request.ee_context = 0x00654321;
    request.deth = {.qkey = 0x11223344, .source_qp = 0x000102};
    request.reth = {.address = 0x10, .rkey = 0x20, .dma_length = 0x30};
    EXPECT_EQ(behind_bth(request), hex("00654321 11223344 00000102 0000000000000010 00000020 00000030"));
    Packet answer = packet_of(Service::kRd, Operation::kReadResponseOnly);
    answer.ee_context = 0x0A0B0C;
    answer.aeth = {.syndrome = 0x1F, .msn = 7};
    EXPECT_EQ(behind_bth(answer), hex("000A0B0C 1F000007"));
}

TEST(Codec, AtomicWriteIsRethAndPayload) {
    Packet packet = packet_of(Service::kRc, Operation::kAtomicWrite);
    packet.reth = {.address = 8, .rkey = 9, .dma_length = 8};
    const Bytes payload = hex("0011223344556677");
    packet.payload = payload;
    EXPECT_EQ(packet.bth.opcode, 0x1D);
    EXPECT_EQ(behind_bth(packet), hex("0000000000000008 00000009 00000008 0011223344556677"));
}

TEST(Codec, RawPacketWithEthertype) {
    Packet packet;
    packet.kind = PacketKind::kRawEthertype;
    packet.lrh = {.dlid = 0xC001, .slid = 3, .sl = 4, .vl = 1};
    packet.ethertype = 0x0800;
    const Bytes payload = hex("450000150102030405");
    packet.payload = payload;
    const Bytes frame = encoded(packet);
    EXPECT_EQ(body(packet), hex("1040C00100060003 00000800 450000150102030405 000000"));
    Packet read;
    ASSERT_EQ(decode(frame, read), DecodeError::kNone);
    EXPECT_EQ(read.kind, PacketKind::kRawEthertype);
    EXPECT_EQ(read.ethertype, 0x0800);
    EXPECT_EQ(Bytes(read.payload.begin(), read.payload.end()), hex("450000150102030405 000000"));
}

TEST(Codec, RawIpv6Packet) {
    Packet packet;
    packet.kind = PacketKind::kRawIpv6;
    packet.lrh = {.dlid = 5, .slid = 6, .sl = 0, .vl = 0};
    Bytes payload(44, std::byte{0xA5});
    payload[6] = std::byte{17};
    packet.payload = payload;
    const Bytes frame = encoded(packet);
    ASSERT_EQ(frame.size(), 8U + 44 + 2);
    EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 8), hex("00010005000D0006"));
    Packet read;
    ASSERT_EQ(decode(frame, read), DecodeError::kNone);
    EXPECT_EQ(read.kind, PacketKind::kRawIpv6);
    EXPECT_EQ(Bytes(read.payload.begin(), read.payload.end()), payload);
}

TEST(Codec, EthernetFrameIsWrittenAsItIs) {
    Packet packet;
    packet.kind = PacketKind::kEthernet;
    const Bytes payload = hex("FFFFFFFFFFFF 020000000001 0806 0001");
    packet.payload = payload;
    EXPECT_EQ(encoded(packet), payload);
}

TEST(Codec, EveryOpcodeComesBackAsItWent) {
    for (unsigned code = 0; code < 256; ++code) {
        const bool carries = kOpcodes[code].payload;
        for (const bool global : {false, true}) {
            for (const std::size_t length :
                 carries ? std::vector<std::size_t>{0, 1, 2, 3, 4, 4096} : std::vector<std::size_t>{0}) {
                SCOPED_TRACE(opcode_name(static_cast<std::uint8_t>(code)) + " " + std::to_string(length));
                Packet sent = packet_of(Service::kRc, Operation::kSendOnly);
                sent.bth.opcode = static_cast<std::uint8_t>(code);
                sent.bth.pad = static_cast<std::uint8_t>(-length & 3);
                sent.has_grh = global;
                sent.deth = {.qkey = 0x12345678, .source_qp = 0xFEDCBA};
                sent.xrc_srq = 0xABCDEF;
                if ((kOpcodes[code].headers & kAtomicEth) != 0) {
                    sent.atomic = {.address = ~0ULL - 1, .rkey = 5, .swap_add = 6, .compare = 7};
                } else {
                    sent.reth = {.address = ~0ULL - 2, .rkey = 8, .dma_length = 1U << 31};
                }
                sent.aeth = {.syndrome = 0x20, .msn = 0xFFFFFF};
                sent.atomic_original = 0x8000000000000001;
                sent.immediate = 0x01020304;
                sent.invalidate_key = 0xF0F0F0F0;
                const Bytes payload(length, std::byte{0x3C});
                sent.payload = payload;
                const Bytes frame = encoded(sent);
                EXPECT_EQ(frame.size() % 4, 2U);
                Packet read;
                ASSERT_EQ(decode(frame, read), DecodeError::kNone);
                EXPECT_EQ(read.bth.opcode, code);
                EXPECT_EQ(Bytes(read.payload.begin(), read.payload.end()), payload);
                EXPECT_EQ(encoded(read), frame);
                EXPECT_EQ(describe(read), describe(sent));
            }
        }
    }
}

TEST(Codec, ReservedBitsAreIgnored) {
    const WorkedExample example;
    Bytes frame = encoded(example.packet);
    frame[1] |= std::byte{0x0C};   // LRH, two bits
    frame[4] |= std::byte{0xF8};   // LRH, in front of PktLen
    frame[12] |= std::byte{0x3F};  // BTH, Resv6
    frame[16] |= std::byte{0x7F};  // BTH, Resv7
    repair_crcs(frame);
    Packet packet;
    ASSERT_EQ(decode(frame, packet), DecodeError::kNone);
    EXPECT_EQ(encoded(packet), encoded(example.packet));
    for (const auto& [service, at] : {std::pair{Service::kUd, 24}, {Service::kXrc, 20}, {Service::kRd, 20}}) {
        const Bytes plain = encoded(packet_of(service, Operation::kSendOnly));
        Bytes marked = plain;
        marked[static_cast<std::size_t>(at)] = std::byte{0xFF};
        repair_crcs(marked);
        ASSERT_EQ(decode(marked, packet), DecodeError::kNone);
        EXPECT_EQ(encoded(packet), plain);
    }
}

TEST(Codec, DescribeShowsWhatTheOpcodeCarries) {
    WorkedExample example;
    EXPECT_EQ(
        describe(example.packet),
        "RC RDMA WRITE Only QP 0x87b1b3 PSN 912426 P_Key 0x2487 MigReq=0, LID 0x17d2 to 0x375c SL 1 VL 7, "
        "VA 0x1710a1c015d4002 R_Key 0x38f27a05 length 14, 14 bytes");
    Packet packet = packet_of(Service::kUd, Operation::kSendOnly);
    packet.bth.opcode = 0x66;
    EXPECT_NE(describe(packet).find("UD reserved 0x66"), std::string::npos);
}

}  // namespace
}  // namespace uib::net
