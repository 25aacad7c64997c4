// Bytes of a packet on an InfiniBand link, for the port's data counters and for limits (IBA 7.7, 9.2, 9.3).
#pragma once

#include <cstdint>

#include "net/wire/opcode_table.h"
#include "net/wire/packet.h"

namespace uib::net {

inline constexpr std::uint32_t kLrhBytes = 8;
inline constexpr std::uint32_t kRwhBytes = 4;
inline constexpr std::uint32_t kBthBytes = 12;
inline constexpr std::uint32_t kIcrcBytes = 4;
inline constexpr std::uint32_t kVcrcBytes = 2;

/// Bytes of the extension headers that `opcode` calls for (transport-tables.md, section 1).
constexpr std::uint32_t extension_bytes(std::uint8_t code) {
    return kOpcodes[code].extension_bytes;
}

/// Bytes filled up to whole words.
constexpr std::uint32_t padded_bytes(std::size_t bytes) {
    return static_cast<std::uint32_t>((bytes + 3) / 4 * 4);
}

/// BTH to the end of the padded payload.
constexpr std::uint32_t transport_bytes(const Packet& packet) {
    return kBthBytes + extension_bytes(packet.bth.opcode) + padded_bytes(packet.payload.size());
}

/// LRH to ICRC (a raw packet has none), padded to whole words; the VCRC is not counted (LRH:PktLen does not
/// count it either). Of an Ethernet frame: its bytes without the FCS, padded likewise.
constexpr std::uint32_t packet_bytes(const Packet& packet) {
    switch (packet.kind) {
        case PacketKind::kRawEthertype:
            return kLrhBytes + kRwhBytes + padded_bytes(packet.payload.size());
        case PacketKind::kRawIpv6:
            return kLrhBytes + padded_bytes(packet.payload.size());
        case PacketKind::kEthernet:
            return padded_bytes(packet.payload.size());
        case PacketKind::kTransport:
            break;
    }
    return kLrhBytes + (packet.has_grh ? kGrhBytes : 0) + transport_bytes(packet) + kIcrcBytes;
}

}  // namespace uib::net
