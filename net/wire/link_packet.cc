#include "net/wire/link_packet.h"

#include "net/wire/bytes.h"
#include "net/wire/crc.h"
#include "net/wire/text.h"

namespace uib::net {
namespace {

constexpr std::size_t kLpcrcBytes = 2;
constexpr std::size_t kCoveredBytes = kLinkPacketBytes - kLpcrcBytes;

}  // namespace

const char* name_of(LinkPacketError error) {
    switch (error) {
        case LinkPacketError::kNone:
            return "none";
        case LinkPacketError::kLpcrc:
            return "lpcrc";
        case LinkPacketError::kLength:
            return "length";
        case LinkPacketError::kOperand:
            return "operand";
    }
    return "unknown";
}

void build_link_packet(const FlowControlPacket& packet, std::span<std::byte, kLinkPacketBytes> out) {
    store_be<2>(out.data(),
                static_cast<std::uint16_t>((packet.operand & 0xF) << 12 | (packet.fctbs & 0xFFF)));
    store_be<2>(&out[2], static_cast<std::uint16_t>((packet.vl & 0xF) << 12 | (packet.fccl & 0xFFF)));
    store_vcrc(vcrc(out.first<kCoveredBytes>()), out.last<kLpcrcBytes>());
}

LinkPacketError parse_link_packet(std::span<const std::byte> bytes, FlowControlPacket& out) {
    if (bytes.size() < kLpcrcBytes) return LinkPacketError::kLength;
    if (vcrc(bytes.first(bytes.size() - kLpcrcBytes)) != load_vcrc(bytes.last<kLpcrcBytes>()))
        return LinkPacketError::kLpcrc;
    if (bytes.size() != kLinkPacketBytes) return LinkPacketError::kLength;
    const auto first = load_be<std::uint16_t>(bytes.data());
    const auto second = load_be<std::uint16_t>(&bytes[2]);
    out.operand = static_cast<std::uint8_t>(first >> 12);
    out.fctbs = first & 0xFFF;
    out.vl = static_cast<std::uint8_t>(second >> 12);
    out.fccl = second & 0xFFF;
    return out.operand > kFlowControlInitialize ? LinkPacketError::kOperand : LinkPacketError::kNone;
}

std::string describe(const FlowControlPacket& packet) {
    std::string text = "flow control";
    if (packet.operand == kFlowControlInitialize) {
        text += " initialize";
    } else if (packet.operand != kFlowControlNormal) {
        append(text, " operand %u", packet.operand);
    }
    append(text, " VL %u FCTBS %u FCCL %u", packet.vl, packet.fctbs, packet.fccl);
    return text;
}

}  // namespace uib::net
