// Link packets: the flow control packet is the only one (IBA 7.5, 7.9.4).
//
// Six bytes: operand (4 bits), FCTBS (12), VL (4), FCCL (12), LPCRC. Whether the VL is one that the port has
// depends on the port and its state, so that check is net/link's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace uib::net {

inline constexpr std::size_t kLinkPacketBytes = 6;
/// Operands (7.9.4.1.1); the others are reserved.
inline constexpr std::uint8_t kFlowControlNormal = 0;
inline constexpr std::uint8_t kFlowControlInitialize = 1;

struct FlowControlPacket {
    std::uint8_t operand = kFlowControlNormal;
    std::uint8_t vl = 0;
    std::uint16_t fctbs = 0;  ///< blocks of 64 bytes that the sender has sent on the VL, modulo 4096
    std::uint16_t fccl = 0;   ///< up to which block count the sender can receive on the VL, modulo 4096
};

/// Why a link packet is discarded, in the order in which the errors are told (7.5).
enum class LinkPacketError : std::uint8_t { kNone, kLpcrc, kLength, kOperand };
inline constexpr std::size_t kLinkPacketErrorCount = 4;

/// Name for logs and counters, e.g. "lpcrc".
const char* name_of(LinkPacketError error);

void build_link_packet(const FlowControlPacket& packet, std::span<std::byte, kLinkPacketBytes> out);
/// `bytes` is what came between the delimiters. On kLpcrc and kLength `out` is untouched.
LinkPacketError parse_link_packet(std::span<const std::byte> bytes, FlowControlPacket& out);

std::string describe(const FlowControlPacket& packet);

}  // namespace uib::net
