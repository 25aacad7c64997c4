#include "net/wire/length.h"

#include <gtest/gtest.h>

#include <array>

namespace uib::net {
namespace {

// Sizes of the extension headers by operation: transport-tables.md, sections 1 and 2.
TEST(Length, ExtensionHeadersOfEachOperation) {
    const auto rc = [](Operation operation) { return extension_bytes(opcode(Service::kRc, operation)); };
    EXPECT_EQ(rc(Operation::kSendFirst), 0U);
    EXPECT_EQ(rc(Operation::kSendOnlyImmediate), 4U);
    EXPECT_EQ(rc(Operation::kSendLastInvalidate), 4U);
    EXPECT_EQ(rc(Operation::kWriteFirst), 16U);
    EXPECT_EQ(rc(Operation::kWriteMiddle), 0U);
    EXPECT_EQ(rc(Operation::kWriteOnlyImmediate), 20U);
    EXPECT_EQ(rc(Operation::kReadRequest), 16U);
    EXPECT_EQ(rc(Operation::kReadResponseFirst), 4U);
    EXPECT_EQ(rc(Operation::kReadResponseMiddle), 0U);
    EXPECT_EQ(rc(Operation::kAcknowledge), 4U);
    EXPECT_EQ(rc(Operation::kAtomicAcknowledge), 12U);
    EXPECT_EQ(rc(Operation::kCompareSwap), 28U);
    EXPECT_EQ(extension_bytes(opcode(Service::kUd, Operation::kSendOnly)), 8U);
    EXPECT_EQ(extension_bytes(opcode(Service::kUd, Operation::kSendOnlyImmediate)), 12U);
    EXPECT_EQ(rc(Operation::kAtomicWrite), 16U);
}

// XRC requests name the shared receive queue, answers do not; RD names the EE context in both.
TEST(Length, HeadersOfTheServices) {
    EXPECT_EQ(extension_bytes(opcode(Service::kXrc, Operation::kSendMiddle)), 4U);
    EXPECT_EQ(extension_bytes(opcode(Service::kXrc, Operation::kSendOnlyInvalidate)), 8U);
    EXPECT_EQ(extension_bytes(opcode(Service::kXrc, Operation::kWriteOnlyImmediate)), 24U);
    EXPECT_EQ(extension_bytes(opcode(Service::kXrc, Operation::kAcknowledge)), 4U);
    EXPECT_EQ(extension_bytes(opcode(Service::kXrc, Operation::kReadResponseMiddle)), 0U);
    EXPECT_EQ(extension_bytes(opcode(Service::kRd, Operation::kSendOnly)), 12U);
    EXPECT_EQ(extension_bytes(opcode(Service::kRd, Operation::kReadResponseMiddle)), 4U);
    EXPECT_EQ(extension_bytes(opcode(Service::kRd, Operation::kCompareSwap)), 40U);
    EXPECT_EQ(extension_bytes(opcode(Service::kRd, Operation::kResync)), 12U);
}

TEST(Length, PacketsOfEachKind) {
    const std::array<std::byte, 45> bytes{};
    Packet packet;
    packet.payload = bytes;
    packet.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
    EXPECT_EQ(packet_bytes(packet), 8U + 12 + 48 + 4);
    packet.has_grh = true;
    EXPECT_EQ(packet_bytes(packet), 8U + 40 + 12 + 48 + 4);
    packet.kind = PacketKind::kRawEthertype;
    EXPECT_EQ(packet_bytes(packet), 8U + 4 + 48);
    packet.kind = PacketKind::kRawIpv6;
    EXPECT_EQ(packet_bytes(packet), 8U + 48);
    packet.kind = PacketKind::kEthernet;
    EXPECT_EQ(packet_bytes(packet), 48U);
}

// Codes that a service does not define, and how many it does.
TEST(Length, OpcodesThatServicesDefine) {
    const auto defined = [](Service service) {
        int count = 0;
        for (unsigned i = 0; i < 32; ++i) count += kOpcodes[static_cast<unsigned>(service) << 5 | i].defined;
        return count;
    };
    EXPECT_EQ(defined(Service::kRc), 24);  // 0x00 to 0x14, invalidates, atomic write
    EXPECT_EQ(defined(Service::kUc), 12);  // no READ, no atomics
    EXPECT_EQ(defined(Service::kRd), 23);  // RESYNC, but no invalidates
    EXPECT_EQ(defined(Service::kUd), 2);
    EXPECT_EQ(defined(Service::kXrc), 24);
    EXPECT_EQ(opcode_name(0x80), "CNP congestion notification");
    EXPECT_EQ(opcode_name(0x2C), "UC reserved 0x2c");
    EXPECT_EQ(opcode_name(0xC1), "vendor reserved 0xc1");
}

}  // namespace
}  // namespace uib::net
