// The internal Ethernet switch: which ports of one engine's Ethernet devices a frame goes to.
//
// A frame to a port's own address goes to that port, wherever it comes from: a frame to oneself comes back.
// Any other frame (broadcast, multicast, an address that no port has) goes to all ports, the sender's too,
// because several queue pairs stand behind each port; the ports' flow rules decide who gets it. There is
// nothing to learn: the addresses are those of the ports. VLAN tags are carried and not looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/mac_address.h"

namespace uib::net {

inline constexpr std::size_t kEthernetHeaderBytes = 14;

class EthernetSwitch {
  public:
    /// An index that the caller knows the port by.
    using PortIndex = std::uint32_t;

    /// Addresses must be unicast and unused; throws std::invalid_argument.
    void add_port(PortIndex port, const MacAddress& address);

    /// The ports that `frame` goes to. Empty if it is shorter than an Ethernet header.
    [[nodiscard]] std::span<const PortIndex> route(std::span<const std::byte> frame) const;

  private:
    std::vector<MacAddress> addresses_;  ///< parallel to ports_
    std::vector<PortIndex> ports_;
};

}  // namespace uib::net
