// MAC addresses that follow from a GID alone.
#pragma once

#include <cstdint>
#include <optional>

#include "net/wire/gid.h"
#include "net/wire/mac_address.h"

namespace uib::net {

/// Where frames for a multicast address go (RFC 1112, 6.4; RFC 2464, section 7); nothing for other addresses.
constexpr std::optional<MacAddress> multicast_mac(const Gid& to) {
    if (is_ipv4(to)) {
        if ((to[kIpv4InGid] & 0xF0) != 0xE0) return std::nullopt;
        return MacAddress{0x01, 0x00, 0x5E, static_cast<std::uint8_t>(to[13] & 0x7F), to[14], to[15]};
    }
    if (to[0] != 0xFF) return std::nullopt;
    return MacAddress{0x33, 0x33, to[12], to[13], to[14], to[15]};
}

/// The MAC address inside a link-local GID that was made of one (RFC 4291, appendix A).
constexpr std::optional<MacAddress> mac_within(const Gid& gid) {
    if (gid[0] != 0xFE || gid[1] != 0x80 || gid[11] != 0xFF || gid[12] != 0xFE) return std::nullopt;
    return MacAddress{static_cast<std::uint8_t>(gid[8] ^ 2), gid[9], gid[10], gid[13], gid[14], gid[15]};
}

}  // namespace uib::net
