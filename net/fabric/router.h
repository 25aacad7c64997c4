// A router between subnets of one engine (IBA chapter 8): takes a packet from one subnet to another by its
// DGID.
//
// Of the packet's headers it changes the LRH (SLID its own in the other subnet, DLID the final port's) and
// the hop limit; nothing that the ICRC covers (8.2.2.2). A packet whose hop limit is 0 or 1 goes no further
// (C8-16), and neither do subnet management packets (8.2.2.1) and packets without a GRH. Both are counted:
// loss in a router has no other notification. SL and traffic class stay as they are. It is a value that holds
// what it is told of subnets and ports; moving packets is its owner's work.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "net/wire/packet.h"

namespace uib::net {

/// Why a router forwards a packet no further.
enum class RouterDrop : std::uint8_t {
    kManagement,  ///< VL15, or to QP0
    kNoGrh,       ///< local by its headers
    kMulticast,   ///< groups do not reach across subnets
    kHopLimit,    ///< 0 or 1
    kNoSubnet,    ///< no other subnet has the DGID's prefix
    kNoPort,      ///< the subnet has no port with that DGID
};
inline constexpr std::size_t kRouterDropCount = 6;

/// Name for counters, e.g. "hop_limit".
const char* name_of(RouterDrop drop);

class Router {
  public:
    /// A port of the router in a subnet; dense from 0.
    using InterfaceIndex = std::size_t;

    InterfaceIndex add_interface(std::uint64_t prefix);
    /// Its address in its subnet.
    void set_lid(InterfaceIndex interface, Lid lid) { interfaces_[interface].lid = lid; }
    [[nodiscard]] Lid lid(InterfaceIndex interface) const { return interfaces_[interface].lid; }
    /// A port of the interface's subnet; LID 0: it is gone.
    void set_port(InterfaceIndex interface, const Gid& gid, Lid lid);

    /// A packet that came in through interface `from` is made ready for the other subnet; through which
    /// interface it goes on. Nothing: it was discarded.
    std::optional<InterfaceIndex> forward(InterfaceIndex from, Packet& packet);

    [[nodiscard]] std::uint64_t forwarded() const { return forwarded_; }
    [[nodiscard]] std::uint64_t dropped(RouterDrop cause) const {
        return drops_[static_cast<std::size_t>(cause)];
    }

  private:
    struct Interface {
        std::uint64_t prefix = 0;
        Lid lid = 0;
        std::map<Gid, Lid> ports;
    };
    std::optional<InterfaceIndex> drop(RouterDrop cause);

    std::vector<Interface> interfaces_;
    std::uint64_t forwarded_ = 0;
    std::array<std::uint64_t, kRouterDropCount> drops_{};
};

}  // namespace uib::net
