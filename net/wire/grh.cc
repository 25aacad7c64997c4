// The GRH as bytes (IBA 8.3): version 6, traffic class, flow label, payload length, next header 0x1B, hop
// limit, source GID, destination GID.
#include <algorithm>

#include "net/wire/packet.h"

namespace uib::net {

std::array<std::byte, kGrhBytes> encode_grh(const Grh& grh, std::size_t payload_length) {
    constexpr std::uint32_t kVersion = 6;
    constexpr std::uint8_t kNextHeader = 0x1B;
    std::array<std::byte, kGrhBytes> bytes{};
    const std::uint32_t word =
        kVersion << 28 | std::uint32_t{grh.traffic_class} << 20 | (grh.flow_label & 0xFFFFF);
    for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(word >> (24 - 8 * i));
    bytes[4] = static_cast<std::byte>(payload_length >> 8);
    bytes[5] = static_cast<std::byte>(payload_length);
    bytes[6] = std::byte{kNextHeader};
    bytes[7] = std::byte{grh.hop_limit};
    const auto as_byte = [](std::uint8_t value) { return std::byte{value}; };
    std::transform(grh.sgid.begin(), grh.sgid.end(), bytes.begin() + 8, as_byte);
    std::transform(grh.dgid.begin(), grh.dgid.end(), bytes.begin() + 24, as_byte);
    return bytes;
}

}  // namespace uib::net
