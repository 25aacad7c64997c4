// Ethernet addresses.
#pragma once

#include <array>
#include <cstdint>

namespace uib::net {

using MacAddress = std::array<std::uint8_t, 6>;

/// Bit 0 of the first byte: a group, broadcast among them.
constexpr bool is_multicast(const MacAddress& address) {
    return (address[0] & 1) != 0;
}

}  // namespace uib::net
