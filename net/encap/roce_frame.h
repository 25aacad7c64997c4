// RoCE v2: a transport packet in an Ethernet frame, behind IPv4 or IPv6 and UDP (IBA Annex A17).
//
// Pure functions between a Packet and the bytes of a frame without FCS. The packet's GRH stands for the
// network header: GIDs are the addresses (IPv4 as ::ffff:a.b.c.d), the traffic class carries DSCP and ECN,
// the hop limit the TTL. There is no LRH on the wire: its fields are left alone by decode_roce(). The network
// header is written here and not by the host's stack, because the ICRC covers its identification and flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "net/wire/codec.h"
#include "net/wire/mac_address.h"
#include "net/wire/packet.h"

namespace uib::net {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint16_t kRoceV1EtherType = 0x8915;
/// Congestion notification packet (A17.9.3): BECN set, 16 reserved bytes of payload.
inline constexpr std::uint8_t kCnpOpcode = 0x81;

/// Explicit congestion notification, the low bits of the traffic class (RFC 3168).
enum class Ecn : std::uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kCongested = 3 };
constexpr Ecn ecn_of(const Packet& packet) {
    return static_cast<Ecn>(packet.grh.traffic_class & 3);
}

/// What a frame says beside the packet.
struct RoceEnvelope {
    MacAddress destination{};
    MacAddress source{};
    std::optional<std::uint16_t> vlan;  ///< tag control: priority and VLAN identifier
    std::uint16_t udp_source = 0;       ///< tells flows apart on the way
};

/// Why a frame carries no packet for us. Each value has a counter; kNone has none.
enum class RoceError : std::uint8_t {
    kNone,
    kOtherProtocol,  ///< not RoCE: somebody else's frame
    kRoceV1,         ///< EtherType 0x8915
    kTruncated,      ///< shorter than its IP header says
    kIpHeader,       ///< version, header length, options, checksum or length impossible
    kFragment,       ///< a piece of an IP datagram: RoCE never fragments
    kUdpLength,
    kIcrc,
    kTransport,  ///< the BTH and what follows: DecodeError tells
};
inline constexpr std::size_t kRoceErrorCount = 9;
const char* name_of(RoceError error);

/// Bytes in front of the BTH: Ethernet (with a tag or not), IP, UDP.
constexpr std::size_t roce_header_bytes(bool ipv4, bool tagged) {
    return std::size_t{14} + (tagged ? 4 : 0) + (ipv4 ? 20 : 40) + 8;
}
/// Bytes of the frame without FCS, at least 60.
std::size_t roce_frame_bytes(const Packet& packet, bool tagged);

/// Writes the frame; `out` has room for roce_frame_bytes(). The packet must have a GRH. Returns the bytes
/// written.
std::size_t encode_roce(const Packet& packet, const RoceEnvelope& envelope, std::span<std::byte> out);

/// Takes a frame apart; the payload is a view into it. `detail` tells more when the result is kTransport.
RoceError decode_roce(std::span<const std::byte> frame, Packet& out, RoceEnvelope& envelope,
                      DecodeError& detail);

/// Source port of a flow between two queue pairs, in 0xC000 to 0xFFFF; from the flow label if one is given.
std::uint16_t roce_source_port(std::uint32_t flow_label, std::uint32_t source_qp,
                               std::uint32_t destination_qp);

}  // namespace uib::net
