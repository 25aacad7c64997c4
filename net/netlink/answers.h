// What the kernel's answers say (rtnetlink(7)). Each function reads one message whose bytes are all there
// (mnl_nlmsg_ok) and believes no length in it that it has not compared; what is not there is as if it had not
// been said.
#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <optional>

#include "net/wire/mac_address.h"
#include "net/wire/packet.h"

namespace uib::net {

/// An address of the interface as a GID: IPv6 as it is, IPv4 as ::ffff:a.b.c.d (annex A17).
struct HostAddress {
    Gid gid{};
    std::uint8_t prefix_length = 0;
    bool operator==(const HostAddress&) const = default;
};

/// A usable address of the interface `index`; tentative and failed ones are none.
std::optional<HostAddress> read_address(const nlmsghdr* message, int index);

struct HostRoute {
    bool through_here = false;
    std::optional<Gid> gateway;
};
/// Of an answer to a question for one destination; `index`: the interface that "here" means.
HostRoute read_route(const nlmsghdr* message, int index);

struct HostNeighbour {
    MacAddress mac{};
    bool stale = false;  ///< has not been heard of for a while
};
/// Nothing as long as the kernel does not know its MAC.
std::optional<HostNeighbour> read_neighbour(const nlmsghdr* message);

}  // namespace uib::net
