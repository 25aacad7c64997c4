// The IPv4 header of RoCE v2 (Annex A17.4.5.2): no options, no fragments, protocol UDP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/packet.h"

namespace uib::net {

inline constexpr std::size_t kIpv4Bytes = 20;

struct Ipv4Header {
    std::uint8_t type_of_service = 0;
    std::uint16_t total_length = 0;
    bool fragment = false;  ///< a piece of a datagram, first or later
    std::uint8_t ttl = 0;
    std::uint8_t protocol = 0;
    std::uint32_t source = 0;  ///< host order
    std::uint32_t destination = 0;
};

/// Writes a header for the GRH's addresses (which must be IPv4), traffic class and hop limit, with `behind`
/// bytes following it; don't-fragment set, identification zero (RFC 6864), checksum right.
void build_ipv4(const Grh& grh, std::size_t behind, std::span<std::byte, kIpv4Bytes> out);

/// False when there is no whole header, or version, header length (options are not taken), length or checksum
/// are wrong.
bool parse_ipv4(std::span<const std::byte> bytes, Ipv4Header& out);

}  // namespace uib::net
