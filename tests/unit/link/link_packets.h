// Packets for the tests of the link layer. A data packet is a UD SEND: LRH 8, BTH 12, DETH 8, payload,
// ICRC 4.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "net/wire/codec.h"
#include "net/wire/length.h"
#include "net/wire/packet.h"

namespace uib::net::link {

inline constexpr Lid kOwnLid = 0x10;
inline constexpr Lid kPeerLid = 0x20;
inline constexpr std::size_t kDataOverhead = 32;

/// Bytes that differ from their neighbours.
inline std::span<const std::byte> payload_of(std::size_t bytes) {
    static const auto kPattern = [] {
        std::array<std::byte, 4096> pattern{};
        for (std::size_t i = 0; i < pattern.size(); ++i)
            pattern[i] = static_cast<std::byte>(i * 7 + (i >> 8));
        return pattern;
    }();
    return std::span(kPattern).first(bytes);
}

inline Packet data_packet(std::uint8_t sl, std::size_t payload, std::uint32_t psn = 0) {
    Packet packet;
    packet.lrh = {.dlid = kPeerLid, .slid = kOwnLid, .sl = sl};
    packet.bth.opcode = 0x64;  // UD SEND Only
    packet.bth.dest_qp = 7;
    packet.bth.psn = psn;
    packet.payload = payload_of(payload);
    return packet;
}

/// A directed route SMP in its packet: 72 words.
inline Packet smp_packet(std::uint32_t psn = 0) {
    Packet packet = data_packet(0, 256, psn);
    packet.lrh.dlid = kPermissiveLid;
    packet.bth.dest_qp = 0;
    return packet;
}

inline std::vector<std::byte> wire_form(const Packet& packet) {
    std::vector<std::byte> bytes(encoded_bytes(packet));
    encode(packet, bytes);
    return bytes;
}

}  // namespace uib::net::link
