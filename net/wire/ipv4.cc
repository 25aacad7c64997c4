#include "net/wire/ipv4.h"

#include <algorithm>

#include "net/wire/bytes.h"
#include "net/wire/gid.h"

namespace uib::net {
namespace {

constexpr std::byte kVersionAndLength{0x45};
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint16_t kMoreAndOffset = 0x3FFF;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::size_t kChecksumAt = 10;

/// RFC 1071. Zero over a header whose checksum is right.
std::uint16_t checksum(std::span<const std::byte, kIpv4Bytes> header) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kIpv4Bytes; i += 2) sum += load_be<std::uint16_t>(header.data() + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum += sum >> 16;
    return static_cast<std::uint16_t>(~sum);
}

}  // namespace

void build_ipv4(const Grh& grh, std::size_t behind, std::span<std::byte, kIpv4Bytes> out) {
    std::byte* const at = out.data();
    at[0] = kVersionAndLength;
    at[1] = std::byte{grh.traffic_class};
    store_be<2>(at + 2, static_cast<std::uint16_t>(kIpv4Bytes + behind));
    store_be<2>(at + 4, std::uint16_t{0});
    store_be<2>(at + 6, kDontFragment);
    at[8] = std::byte{grh.hop_limit};
    at[9] = std::byte{kProtocolUdp};
    store_be<2>(at + kChecksumAt, std::uint16_t{0});
    std::copy_n(reinterpret_cast<const std::byte*>(grh.sgid.data()) + kIpv4InGid, 4, at + 12);
    std::copy_n(reinterpret_cast<const std::byte*>(grh.dgid.data()) + kIpv4InGid, 4, at + 16);
    store_be<2>(at + kChecksumAt, checksum(out));
}

bool parse_ipv4(std::span<const std::byte> bytes, Ipv4Header& out) {
    if (bytes.size() < kIpv4Bytes || bytes[0] != kVersionAndLength) return false;
    const auto header = bytes.first<kIpv4Bytes>();
    const std::byte* const at = header.data();
    out.type_of_service = std::to_integer<std::uint8_t>(at[1]);
    out.total_length = load_be<std::uint16_t>(at + 2);
    out.fragment = (load_be<std::uint16_t>(at + 6) & kMoreAndOffset) != 0;
    out.ttl = std::to_integer<std::uint8_t>(at[8]);
    out.protocol = std::to_integer<std::uint8_t>(at[9]);
    out.source = load_be<std::uint32_t>(at + 12);
    out.destination = load_be<std::uint32_t>(at + 16);
    return out.total_length >= kIpv4Bytes && checksum(header) == 0;
}

}  // namespace uib::net
