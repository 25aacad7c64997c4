#include "net/wire/codec.h"

#include <algorithm>

#include "net/wire/bytes.h"
#include "net/wire/crc.h"
#include "net/wire/headers.h"

namespace uib::net {
namespace {

constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kIpv6NextHeaderAt = 6;
/// 7.7.8: the smallest PktLen of a raw packet; that of a transport packet follows from its headers.
constexpr std::uint16_t kMinRawWords = 5;

/// Copies the payload to the front of `out` and zeros behind it until the word is full; returns the bytes.
std::size_t put_payload(std::span<const std::byte> payload, std::span<std::byte> out) {
    const std::size_t padded = padded_bytes(payload.size());
    const auto end = std::copy(payload.begin(), payload.end(), out.begin());
    std::fill(end, out.begin() + static_cast<std::ptrdiff_t>(padded), std::byte{0});
    return padded;
}

/// 7.8.1, packets without a GRH: VL; FECN, BECN and Resv6 of the BTH.
constexpr IcrcMask kLocalMask = [] {
    IcrcMask mask;
    mask.bytes[0] = std::byte{0xF0};
    mask.bytes[kLrhBytes + 4] = std::byte{0xFF};
    return mask;
}();

/// Packets with a GRH: the LRH; TClass, FlowLabel, HopLmt; the same of the BTH.
constexpr IcrcMask kGlobalMask = [] {
    IcrcMask mask;
    for (std::size_t i = 0; i < kLrhBytes; ++i) mask.bytes[i] = std::byte{0xFF};
    mask.bytes[kLrhBytes] = std::byte{0x0F};
    for (const std::size_t at : {1, 2, 3, 7}) mask.bytes[kLrhBytes + at] = std::byte{0xFF};
    mask.bytes[kLrhBytes + kGrhBytes + 4] = std::byte{0xFF};
    return mask;
}();

/// Behind the LRH, in front of the VCRC.
DecodeError decode_raw(std::span<const std::byte> body, Packet& out) {
    if (out.kind == PacketKind::kRawEthertype) {
        out.ethertype = parse_rwh(body.first<kRwhBytes>());
        out.payload = body.subspan(kRwhBytes);
        return DecodeError::kNone;
    }
    if (body.size() < kIpv6Bytes) return DecodeError::kTooShort;
    if (body[kIpv6NextHeaderAt] == std::byte{kIbaNextHeader}) return DecodeError::kRawTransport;
    out.payload = body;
    return DecodeError::kNone;
}

/// `bytes` starts with the GRH and ends in front of the VCRC.
DecodeError decode_grh(std::span<const std::byte> bytes, Packet& out) {
    const GrhFields fields = parse_grh(bytes.first<kGrhBytes>());
    out.grh = fields.grh;
    if (fields.version != kGrhIpVersion) return DecodeError::kGrhVersion;
    if (fields.next_header != kIbaNextHeader) return DecodeError::kGrhNextHeader;
    if (fields.payload_length != bytes.size() - kGrhBytes) return DecodeError::kGrhLength;
    return DecodeError::kNone;
}

}  // namespace

std::uint32_t link_icrc(std::span<const std::byte> bytes, bool has_grh) {
    return icrc(has_grh ? kGlobalMask : kLocalMask, bytes);
}

std::size_t encoded_bytes(const Packet& packet) {
    if (packet.kind == PacketKind::kEthernet) return packet.payload.size();
    return packet_bytes(packet) + kVcrcBytes;
}

std::size_t encode_transport(const Packet& packet, std::span<std::byte> out) {
    const std::size_t extensions = extension_bytes(packet.bth.opcode);
    build_bth({.bth = packet.bth}, out.first<kBthBytes>());
    build_extensions(packet, out.subspan(kBthBytes, extensions));
    const std::size_t headers = kBthBytes + extensions;
    return headers + put_payload(packet.payload, out.subspan(headers));
}

std::size_t encode(const Packet& packet, std::span<std::byte> out) {
    if (packet.kind == PacketKind::kEthernet) {
        std::copy(packet.payload.begin(), packet.payload.end(), out.begin());
        return packet.payload.size();
    }
    const std::size_t covered = packet_bytes(packet);  // by the VCRC
    const LinkNextHeader next = next_header_of(packet);
    Cursor<std::byte> at(out);
    build_lrh({.lrh = packet.lrh, .next = next, .words = static_cast<std::uint16_t>(covered / 4)},
              at.take<kLrhBytes>());
    if (next == LinkNextHeader::kRawEthertype) build_rwh(packet.ethertype, at.take<kRwhBytes>());
    if (packet.kind != PacketKind::kTransport) {
        put_payload(packet.payload, at.rest());
    } else {
        if (packet.has_grh) {
            const auto behind = static_cast<std::uint16_t>(covered - kLrhBytes - kGrhBytes);
            build_grh({.grh = packet.grh, .payload_length = behind}, at.take<kGrhBytes>());
        }
        encode_transport(packet, at.rest());
        const std::size_t icrc_at = covered - kIcrcBytes;
        store_icrc(link_icrc(out.first(icrc_at), packet.has_grh), out.subspan(icrc_at).first<kIcrcBytes>());
    }
    store_vcrc(vcrc(out.first(covered)), out.subspan(covered).first<kVcrcBytes>());
    if (packet.damaged_bit != 0) flip_bit(out.first(covered + kVcrcBytes), packet.damaged_bit);
    return covered + kVcrcBytes;
}

DecodeError decode_transport(std::span<const std::byte> bytes, Packet& out) {
    if (bytes.size() < kBthBytes) return DecodeError::kTooShort;
    const BthFields fields = parse_bth(bytes.first<kBthBytes>());
    out.bth = fields.bth;
    if (fields.version != 0) return DecodeError::kTransportVersion;
    const std::span<const std::byte> behind = bytes.subspan(kBthBytes);
    const std::size_t extensions = extension_bytes(out.bth.opcode);
    if (behind.size() < extensions) return DecodeError::kTooShort;
    parse_extensions(behind.first(extensions), out);
    const std::span<const std::byte> padded = behind.subspan(extensions);
    if (padded.size() < out.bth.pad) return DecodeError::kPadding;
    out.payload = padded.first(padded.size() - out.bth.pad);
    return DecodeError::kNone;
}

DecodeError decode(std::span<const std::byte> frame, Packet& out, DecodeChecks checks) {
    out = Packet{};
    if (frame.size() < kLrhBytes + kVcrcBytes) return DecodeError::kTooShort;
    const LrhFields link = parse_lrh(frame.first<kLrhBytes>());
    out.lrh = link.lrh;
    const bool raw = is_raw(link.next);
    if (raw) {
        out.kind = link.next == LinkNextHeader::kRawIpv6 ? PacketKind::kRawIpv6 : PacketKind::kRawEthertype;
    }
    out.has_grh = link.next == LinkNextHeader::kGlobal;
    const std::span<const std::byte> covered = frame.first(frame.size() - kVcrcBytes);
    if (checks.vcrc && vcrc(covered) != load_vcrc(frame.last<kVcrcBytes>())) return DecodeError::kVcrc;
    const std::size_t network = kLrhBytes + (out.has_grh ? kGrhBytes : 0);
    if (!raw) {
        if (covered.size() < network + kBthBytes + kIcrcBytes) return DecodeError::kTooShort;
        const std::span<const std::byte> invariant = covered.first(covered.size() - kIcrcBytes);
        if (checks.icrc && link_icrc(invariant, out.has_grh) != load_icrc(covered.last<kIcrcBytes>()))
            return DecodeError::kIcrc;
    }
    if (link.version != 0) return DecodeError::kLinkVersion;
    if (std::size_t{link.words} * 4 != covered.size()) return DecodeError::kLength;
    if (raw) {
        if (link.words < kMinRawWords) return DecodeError::kLength;
        return decode_raw(covered.subspan(kLrhBytes), out);
    }
    if (out.has_grh) {
        const DecodeError error = decode_grh(covered.subspan(kLrhBytes), out);
        if (error != DecodeError::kNone) return error;
    }
    return decode_transport(covered.first(covered.size() - kIcrcBytes).subspan(network), out);
}

}  // namespace uib::net
