// Wire form of packets: LRH to VCRC on an InfiniBand link (IBA 7.7, 8.3, 9.2 to 9.3, 7.8).
//
// encode() writes what the headers of a Packet say; decode() is its inverse and makes the checks that need
// the bytes: lengths, versions, CRCs. Both are pure; the payload of a decoded packet is a view into the
// frame. Reserved fields are sent as zero and ignored when received (C9-6, C9-7, C9-8), but the CRCs cover
// them as the tables say. RoCEv2's forms live in net/encap and use the transport part of this codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/wire/packet.h"

namespace uib::net {

/// Why a frame is no packet; each value has a counter at the port.
enum class DecodeError : std::uint8_t {
    kNone,
    kTooShort,          ///< shorter than its headers
    kLinkVersion,       ///< LRH:LVer is not 0 (7.7.2)
    kLength,            ///< LRH:PktLen disagrees with the frame or the headers (7.7.8)
    kIcrc,              ///< invariant CRC wrong (7.8.1)
    kVcrc,              ///< variant CRC wrong (7.8.2)
    kTransportVersion,  ///< BTH:TVer is not 0 (C9-36)
    kGrhVersion,        ///< GRH:IPVer is not 6 (C9-45)
    kGrhNextHeader,     ///< GRH:NxtHdr is not 0x1B in an IBA packet (C9-44)
    kGrhLength,         ///< GRH:PayLen disagrees with the frame
    kRawTransport,      ///< raw packet whose next header says IBA transport (C9-208)
    kPadding,           ///< PadCnt larger than the payload
};
inline constexpr std::size_t kDecodeErrorCount = 12;

/// Name for logs and counters, e.g. "icrc".
const char* name_of(DecodeError error);

/// Bytes from LRH to VCRC that encode() writes; a multiple of 4, plus 2. Of an Ethernet frame: its bytes.
std::size_t encoded_bytes(const Packet& packet);

/// Writes the packet, CRCs included, to `out`, which has room for encoded_bytes(). Returns the bytes written.
/// Of the BTH, PadCnt is written as bth.pad says (so that tests can send a wrong one); as many pad bytes are
/// written as the payload needs to fill its last word. A raw packet's payload is filled up likewise, and has
/// no ICRC; an Ethernet frame is written as it is, without an FCS.
std::size_t encode(const Packet& packet, std::span<std::byte> out);

struct DecodeChecks {
    bool icrc = true;
    bool vcrc = true;
};

/// Takes a frame from an InfiniBand link apart. On any error `out` holds what was read before it. Of several
/// errors the first in the order of 7.4 is told: CRCs, link version, length, then GRH, then BTH. The payload
/// of a raw packet includes the bytes that fill its last word.
DecodeError decode(std::span<const std::byte> frame, Packet& out, DecodeChecks checks = {});

/// The part that all encapsulations share: BTH, extension headers, payload, pad; neither CRC. Writes
/// transport_bytes(packet), see length.h, and returns them.
std::size_t encode_transport(const Packet& packet, std::span<std::byte> out);

/// Its inverse; `bytes` ends in front of the ICRC. Sets the BTH, what the opcode carries, and the payload; of
/// errors there are kTooShort, kTransportVersion and kPadding.
DecodeError decode_transport(std::span<const std::byte> bytes, Packet& out);

/// ICRC of a packet from the LRH to the byte in front of the ICRC (7.8.1); `has_grh` says how it is masked.
std::uint32_t link_icrc(std::span<const std::byte> bytes, bool has_grh);

/// One line for people: opcode, addresses, PSN and what the opcode carries.
std::string describe(const Packet& packet);

}  // namespace uib::net
