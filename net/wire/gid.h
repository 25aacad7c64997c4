// What kind of address a GID is. Some stand for IPv4 addresses (Annex A17.4.5.2: ::ffff:a.b.c.d).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "net/wire/packet.h"

namespace uib::net {

inline constexpr std::size_t kIpv4InGid = 12;  ///< where the address starts

constexpr bool is_ipv4(const Gid& gid) {
    return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
           gid[10] == 0xFF && gid[11] == 0xFF;
}

/// `address` in host order.
constexpr Gid gid_of_ipv4(std::uint32_t address) {
    Gid gid{};
    gid[10] = gid[11] = 0xFF;
    for (std::size_t i = 0; i < 4; ++i)
        gid[kIpv4InGid + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
    return gid;
}

constexpr Gid gid_of(std::uint64_t prefix, std::uint64_t interface_id) {
    Gid gid{};
    for (unsigned i = 0; i < 8; ++i) {
        gid[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
        gid[8 + i] = static_cast<std::uint8_t>(interface_id >> (56 - 8 * i));
    }
    return gid;
}

/// The upper 8 bytes: the subnet's.
constexpr std::uint64_t prefix_of(const Gid& gid) {
    std::uint64_t prefix = 0;
    for (std::size_t i = 0; i < 8; ++i) prefix = prefix << 8 | gid[i];
    return prefix;
}

/// The lower 8 bytes: a port GUID, where the GID is an InfiniBand port's.
constexpr std::uint64_t interface_id_of(const Gid& gid) {
    std::uint64_t id = 0;
    for (std::size_t i = 8; i < 16; ++i) id = id << 8 | gid[i];
    return id;
}

/// fe80::/10.
constexpr bool is_link_local(const Gid& gid) {
    return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}

/// ff00::/8, or an IPv4 group (224.0.0.0/4) as RoCE v2 has them.
constexpr bool is_multicast(const Gid& gid) {
    return gid[0] == 0xFF || (is_ipv4(gid) && (gid[kIpv4InGid] & 0xF0) == 0xE0);
}

}  // namespace uib::net
