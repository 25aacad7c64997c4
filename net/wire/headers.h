// Each header as bytes and back (IBA 7.7, 8.3, 9.2, 9.3, 9.8.4).
//
// build_*() writes a header with its reserved fields zero; parse_*() reads one and ignores them (C7-39,
// C7-41, C9-6 to C9-8, o9-2, o9-3.a1). The extents of the spans are the lengths, so a caller cannot forget to
// check them. Nothing here judges what a field says: that is decode()'s and the transport's part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/length.h"
#include "net/wire/packet.h"

namespace uib::net {

/// LRH:LNH, what follows the LRH (7.7.5).
enum class LinkNextHeader : std::uint8_t { kRawEthertype = 0, kRawIpv6 = 1, kLocal = 2, kGlobal = 3 };

constexpr bool is_raw(LinkNextHeader next) {
    return next == LinkNextHeader::kRawEthertype || next == LinkNextHeader::kRawIpv6;
}
/// Of a packet that is no Ethernet frame.
LinkNextHeader next_header_of(const Packet& packet);

struct LrhFields {
    Lrh lrh;
    std::uint8_t version = 0;
    LinkNextHeader next = LinkNextHeader::kLocal;
    std::uint16_t words = 0;  ///< PktLen: LRH to the last byte before the VCRC, in units of 4 bytes (11 bits)
};
struct GrhFields {
    Grh grh;
    std::uint8_t version = 6;
    std::uint8_t next_header = 0x1B;
    std::uint16_t payload_length = 0;  ///< bytes behind the GRH, the ICRC included
};
struct BthFields {
    Bth bth;
    std::uint8_t version = 0;
};

inline constexpr std::uint8_t kGrhIpVersion = 6;
inline constexpr std::uint8_t kIbaNextHeader = 0x1B;

void build_lrh(const LrhFields& fields, std::span<std::byte, kLrhBytes> out);
LrhFields parse_lrh(std::span<const std::byte, kLrhBytes> in);

void build_grh(const GrhFields& fields, std::span<std::byte, kGrhBytes> out);
GrhFields parse_grh(std::span<const std::byte, kGrhBytes> in);

void build_bth(const BthFields& fields, std::span<std::byte, kBthBytes> out);
BthFields parse_bth(std::span<const std::byte, kBthBytes> in);

void build_rwh(std::uint16_t ethertype, std::span<std::byte, kRwhBytes> out);
std::uint16_t parse_rwh(std::span<const std::byte, kRwhBytes> in);

/// RDETH and XRCETH: 8 reserved bits and a 24-bit number.
void build_number24(std::uint32_t number, std::span<std::byte, 4> out);
std::uint32_t parse_number24(std::span<const std::byte, 4> in);

void build_deth(const Deth& deth, std::span<std::byte, 8> out);
Deth parse_deth(std::span<const std::byte, 8> in);

void build_reth(const Reth& reth, std::span<std::byte, 16> out);
Reth parse_reth(std::span<const std::byte, 16> in);

void build_atomic_eth(const AtomicEth& atomic, std::span<std::byte, 28> out);
AtomicEth parse_atomic_eth(std::span<const std::byte, 28> in);

void build_aeth(const Aeth& aeth, std::span<std::byte, 4> out);
Aeth parse_aeth(std::span<const std::byte, 4> in);

/// Writes the extension headers that the packet's opcode calls for to `out`, which has room for
/// extension_bytes().
void build_extensions(const Packet& packet, std::span<std::byte> out);
/// Reads those that packet.bth.opcode calls for from `in`, which holds extension_bytes() at least.
void parse_extensions(std::span<const std::byte> in, Packet& packet);

}  // namespace uib::net
