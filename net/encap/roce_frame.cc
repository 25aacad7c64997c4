#include "net/encap/roce_frame.h"

#include <algorithm>
#include <array>

#include "net/wire/bytes.h"
#include "net/wire/crc.h"
#include "net/wire/gid.h"
#include "net/wire/headers.h"
#include "net/wire/ipv4.h"

namespace uib::net {
namespace {

constexpr std::size_t kMacBytes = 6;
constexpr std::size_t kMinFrame = 60;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kUdpBytes = 8;
constexpr std::size_t kLrhOnes = 8;  // of the ICRC: a RoCE packet has no LRH; in the frame, the end of the
                                     // Ethernet header lies there
constexpr std::uint16_t kTypeIpv4 = 0x0800;
constexpr std::uint16_t kTypeIpv6 = 0x86DD;
constexpr std::uint16_t kTypeVlan = 0x8100;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::byte kOnes{0xFF};

/// UDP, as long as `behind` bytes follow. The checksum stays zero, which says that there is none.
void build_udp(std::uint16_t source, std::size_t behind, std::byte* out) {
    store_be<2>(out, source);
    store_be<2>(out + 2, kRoceUdpPort);
    store_be<2>(out + 4, static_cast<std::uint16_t>(kUdpBytes + behind));
    store_be<2>(out + 6, std::uint16_t{0});
}

void build_ipv6(const Grh& grh, std::size_t behind, std::byte* out) {
    store_be<4>(out,
                std::uint32_t{6} << 28 | std::uint32_t{grh.traffic_class} << 20 | (grh.flow_label & 0xFFFFF));
    store_be<2>(out + 4, static_cast<std::uint16_t>(behind));
    out[6] = std::byte{kProtocolUdp};
    out[7] = std::byte{grh.hop_limit};
    std::copy_n(reinterpret_cast<const std::byte*>(grh.sgid.data()), grh.sgid.size(), out + 8);
    std::copy_n(reinterpret_cast<const std::byte*>(grh.dgid.data()), grh.dgid.size(), out + 24);
}

/// What the ICRC takes for ones (A17.4.8: fields that change on the way), from eight bytes before the IP
/// header.
constexpr IcrcMask icrc_mask(bool ipv4) {
    constexpr std::size_t kBthMaskedByte = 4;  // FECN, BECN, Resv6
    IcrcMask mask{};
    for (std::size_t i = 0; i < kLrhOnes; ++i) mask.bytes[i] = kOnes;
    const auto ip = [&mask](std::size_t at) -> std::byte& { return mask.bytes[kLrhOnes + at]; };
    if (ipv4) {
        ip(1) = ip(8) = ip(10) = ip(11) = kOnes;  // type of service, TTL, checksum
    } else {
        ip(0) = std::byte{0x0F};  // traffic class, flow label
        ip(1) = ip(2) = ip(3) = kOnes;
        ip(7) = kOnes;  // hop limit
    }
    const std::size_t udp = ipv4 ? kIpv4Bytes : kIpv6Bytes;
    ip(udp + 6) = ip(udp + 7) = kOnes;  // checksum
    ip(udp + kUdpBytes + kBthMaskedByte) = kOnes;
    return mask;
}
constexpr IcrcMask kIpv4Mask = icrc_mask(true);
constexpr IcrcMask kIpv6Mask = icrc_mask(false);

/// ICRC of the `bytes` bytes from the IP header at `ip` on, which stands in a frame.
std::uint32_t roce_icrc(const std::byte* ip, std::size_t bytes, bool ipv4) {
    return icrc(ipv4 ? kIpv4Mask : kIpv6Mask, {ip - kLrhOnes, kLrhOnes + bytes});
}

/// Ethernet addresses, tag and type; the bytes taken, 0 if the frame is too short.
std::size_t parse_ethernet(std::span<const std::byte> frame, RoceEnvelope& envelope, std::uint16_t& type) {
    std::size_t at = 2 * kMacBytes;
    if (frame.size() < at + 2) return 0;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(frame.data()), kMacBytes, envelope.destination.begin());
    std::copy_n(reinterpret_cast<const std::uint8_t*>(frame.data()) + kMacBytes, kMacBytes,
                envelope.source.begin());
    type = load_be<std::uint16_t>(frame.data() + at);
    envelope.vlan.reset();
    if (type == kTypeVlan) {
        if (frame.size() < at + 6) return 0;
        envelope.vlan = load_be<std::uint16_t>(frame.data() + at + 2);
        type = load_be<std::uint16_t>(frame.data() + at + 4);
        at += 4;
    }
    return at + 2;
}

/// Reads the network header at the front of `ip` and cuts `ip` to the datagram; `length` is that header's.
RoceError parse_network(std::uint16_t type, std::span<const std::byte>& ip, Grh& grh, std::size_t& length) {
    if (type == kTypeIpv4) {
        Ipv4Header header;
        if (!parse_ipv4(ip, header)) return RoceError::kIpHeader;
        if (header.protocol != kProtocolUdp) return RoceError::kOtherProtocol;
        if (header.total_length > ip.size()) return RoceError::kTruncated;
        grh.sgid = gid_of_ipv4(header.source);
        grh.dgid = gid_of_ipv4(header.destination);
        grh.traffic_class = header.type_of_service;
        grh.hop_limit = header.ttl;
        ip = ip.first(header.total_length);
        length = kIpv4Bytes;
        return header.fragment ? RoceError::kFragment : RoceError::kNone;
    }
    if (ip.size() < kIpv6Bytes) return RoceError::kTruncated;
    const GrhFields header = parse_grh(ip.first<kIpv6Bytes>());
    if (header.version != kGrhIpVersion) return RoceError::kIpHeader;
    if (header.next_header != kProtocolUdp) return RoceError::kOtherProtocol;
    if (kIpv6Bytes + header.payload_length > ip.size()) return RoceError::kTruncated;
    grh = header.grh;
    ip = ip.first(kIpv6Bytes + header.payload_length);
    length = kIpv6Bytes;
    return RoceError::kNone;
}

}  // namespace

const char* name_of(RoceError error) {
    static constexpr std::array kNames = {"none",     "other_protocol", "roce_v1", "truncated", "ip_header",
                                          "fragment", "udp_length",     "icrc",    "transport"};
    static_assert(kNames.size() == kRoceErrorCount);
    const auto index = static_cast<std::size_t>(error);
    return index < kNames.size() ? kNames[index] : "?";
}

std::size_t roce_frame_bytes(const Packet& packet, bool tagged) {
    return std::max(kMinFrame, roce_header_bytes(is_ipv4(packet.grh.dgid), tagged) + transport_bytes(packet) +
                                   kIcrcBytes);
}

std::size_t encode_roce(const Packet& packet, const RoceEnvelope& envelope, std::span<std::byte> out) {
    const bool ipv4 = is_ipv4(packet.grh.dgid);
    std::byte* at = out.data();
    at = std::copy_n(reinterpret_cast<const std::byte*>(envelope.destination.data()), kMacBytes, at);
    at = std::copy_n(reinterpret_cast<const std::byte*>(envelope.source.data()), kMacBytes, at);
    if (envelope.vlan) {
        store_be<2>(at, kTypeVlan);
        store_be<2>(at + 2, *envelope.vlan);
        at += 4;
    }
    store_be<2>(at, ipv4 ? kTypeIpv4 : kTypeIpv6);
    std::byte* const ip = at + 2;
    const std::size_t ip_bytes = ipv4 ? kIpv4Bytes : kIpv6Bytes;
    const std::size_t transport = transport_bytes(packet);
    const std::size_t behind_udp = transport + kIcrcBytes;
    if (ipv4) {
        build_ipv4(packet.grh, kUdpBytes + behind_udp, std::span<std::byte, kIpv4Bytes>(ip, kIpv4Bytes));
    } else {
        build_ipv6(packet.grh, kUdpBytes + behind_udp, ip);
    }
    build_udp(envelope.udp_source, behind_udp, ip + ip_bytes);
    const std::size_t transport_at = ip_bytes + kUdpBytes;
    std::byte* const bth = ip + transport_at;
    encode_transport(packet, {bth, transport});
    store_icrc(roce_icrc(ip, transport_at + transport, ipv4),
               std::span<std::byte, kIcrcBytes>(bth + transport, kIcrcBytes));
    const auto written = static_cast<std::size_t>(bth + behind_udp - out.data());
    if (packet.damaged_bit != 0) flip_bit({ip, transport_at + behind_udp}, packet.damaged_bit);
    if (written >= kMinFrame) return written;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(written), out.begin() + kMinFrame, std::byte{0});
    return kMinFrame;
}

RoceError decode_roce(std::span<const std::byte> frame, Packet& out, RoceEnvelope& envelope,
                      DecodeError& detail) {
    std::uint16_t type = 0;
    const std::size_t ip_at = parse_ethernet(frame, envelope, type);
    if (ip_at == 0) return RoceError::kOtherProtocol;
    if (type == kRoceV1EtherType) return RoceError::kRoceV1;
    if (type != kTypeIpv4 && type != kTypeIpv6) return RoceError::kOtherProtocol;
    std::span<const std::byte> ip = frame.subspan(ip_at);
    std::size_t length = 0;
    if (const RoceError error = parse_network(type, ip, out.grh, length); error != RoceError::kNone)
        return error;
    if (ip.size() < length + kUdpBytes) return RoceError::kUdpLength;
    const std::byte* const udp = ip.data() + length;
    if (load_be<std::uint16_t>(udp + 2) != kRoceUdpPort) return RoceError::kOtherProtocol;
    if (load_be<std::uint16_t>(udp + 4) != ip.size() - length) return RoceError::kUdpLength;
    envelope.udp_source = load_be<std::uint16_t>(udp);
    const std::size_t transport_at = length + kUdpBytes;
    if (ip.size() < transport_at + kBthBytes + kIcrcBytes) return RoceError::kUdpLength;
    const std::span<const std::byte> covered = ip.first(ip.size() - kIcrcBytes);
    if (roce_icrc(covered.data(), covered.size(), type == kTypeIpv4) != load_icrc(ip.last<kIcrcBytes>()))
        return RoceError::kIcrc;
    out.has_grh = true;
    out.kind = PacketKind::kTransport;
    detail = decode_transport(covered.subspan(transport_at), out);
    return detail == DecodeError::kNone ? RoceError::kNone : RoceError::kTransport;
}

// A flow label is folded as A17.9 recommends and the kernel does; without one the queue pairs' numbers tell
// flows apart.
std::uint16_t roce_source_port(std::uint32_t flow_label, std::uint32_t source_qp,
                               std::uint32_t destination_qp) {
    if (flow_label == 0) {
        const std::uint64_t product = std::uint64_t{source_qp} * destination_qp;
        flow_label = static_cast<std::uint32_t>(product ^ product >> 20 ^ product >> 40);
    }
    const std::uint32_t low = flow_label & 0x03FFF;
    const std::uint32_t high = (flow_label & 0xFC000) >> 14;
    return static_cast<std::uint16_t>(0xC000 | (low ^ high));
}

}  // namespace uib::net
