// Flow control packets against the vectors of link-and-management-tables.md, section 8.1, and each reason to
// discard one.
#include "net/wire/link_packet.h"

#include <gtest/gtest.h>

#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

struct Vector {
    FlowControlPacket packet;
    const char* bytes;
};
const Vector kVectors[] = {
    {{.operand = 0, .vl = 0, .fctbs = 0x000, .fccl = 0x000}, "00000000 B362"},
    {{.operand = 1, .vl = 0, .fctbs = 0x000, .fccl = 0x800}, "10000800 8DD8"},
    {{.operand = 1, .vl = 0, .fctbs = 0x000, .fccl = 0x041}, "10000041 FD76"},
    {{.operand = 0, .vl = 0, .fctbs = 0x123, .fccl = 0x456}, "01230456 1CB3"},
    {{.operand = 0, .vl = 7, .fctbs = 0xFFF, .fccl = 0x7FF}, "0FFF77FF 6742"},
    {{.operand = 0, .vl = 14, .fctbs = 0x000, .fccl = 0x100}, "0000E100 4119"},
};

Bytes built(const FlowControlPacket& packet) {
    Bytes bytes(kLinkPacketBytes);
    build_link_packet(packet, std::span<std::byte, kLinkPacketBytes>(bytes));
    return bytes;
}

// C7-51, C7-52: six bytes, the last two the LPCRC over the first four.
TEST(LinkPacket, VectorsBothWays) {
    for (const Vector& vector : kVectors) {
        SCOPED_TRACE(vector.bytes);
        EXPECT_EQ(built(vector.packet), hex(vector.bytes));
        FlowControlPacket read;
        ASSERT_EQ(parse_link_packet(hex(vector.bytes), read), LinkPacketError::kNone);
        EXPECT_EQ(read.operand, vector.packet.operand);
        EXPECT_EQ(read.vl, vector.packet.vl);
        EXPECT_EQ(read.fctbs, vector.packet.fctbs);
        EXPECT_EQ(read.fccl, vector.packet.fccl);
    }
}

TEST(LinkPacket, EveryBitIsUnderTheLpcrc) {
    for (std::size_t bit = 0; bit < kLinkPacketBytes * 8; ++bit) {
        Bytes bytes = hex("0FFF77FF6742");
        bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        FlowControlPacket read;
        EXPECT_EQ(parse_link_packet(bytes, read), LinkPacketError::kLpcrc) << bit;
    }
}

// C7-57: operands 2 to 15 are reserved.
TEST(LinkPacket, ReservedOperands) {
    for (std::uint8_t operand = 0; operand < 16; ++operand) {
        FlowControlPacket read;
        EXPECT_EQ(parse_link_packet(built({.operand = operand, .vl = 2, .fctbs = 3, .fccl = 4}), read),
                  operand < 2 ? LinkPacketError::kNone : LinkPacketError::kOperand);
        EXPECT_EQ(read.operand, operand);
    }
}

// The CRC is told first, then the length.
TEST(LinkPacket, OtherLengths) {
    for (std::size_t length = 0; length < 20; ++length) {
        if (length == kLinkPacketBytes) continue;
        Bytes bytes(length, std::byte{0x11});
        FlowControlPacket read;
        if (length >= 2) {
            EXPECT_EQ(parse_link_packet(bytes, read), LinkPacketError::kLpcrc) << length;
            put_little_endian(std::span(bytes).last(2), bitwise_crc16(std::span(bytes).first(length - 2)));
        }
        EXPECT_EQ(parse_link_packet(bytes, read), LinkPacketError::kLength) << length;
    }
}

TEST(LinkPacket, Text) {
    EXPECT_EQ(describe(kVectors[1].packet), "flow control initialize VL 0 FCTBS 0 FCCL 2048");
    EXPECT_EQ(describe(kVectors[4].packet), "flow control VL 7 FCTBS 4095 FCCL 2047");
    EXPECT_EQ(describe(FlowControlPacket{.operand = 9}), "flow control operand 9 VL 0 FCTBS 0 FCCL 0");
    EXPECT_STREQ(name_of(LinkPacketError::kLpcrc), "lpcrc");
}

}  // namespace
}  // namespace uib::net
