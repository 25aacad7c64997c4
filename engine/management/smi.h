// The subnet management interface's rules for directed route SMPs (IBA 14.2.2): what a node does with one
// that arrives, that it originates or that it answers. Pure: the SMP's pointer and return path are brought up
// to date, and the answer says where it goes.
#pragma once

#include <cstdint>

#include "net/wire/mad.h"
#include "net/wire/packet.h"

namespace uib::management {

/// An SMP and the LIDs of its link header.
struct SmpPacket {
    net::Smp smp;
    net::Lid slid = net::kPermissiveLid;
    net::Lid dlid = net::kPermissiveLid;
};

enum class SmiStep : std::uint8_t {
    kDrop,
    kDeliver,  ///< to this node: a request to its agent, a response to its manager
    kSend,     ///< out of `port`
    kRoute,    ///< by the LIDs that the packet now has
};

struct SmiResult {
    SmiStep step = SmiStep::kDrop;
    std::uint8_t port = 0;  ///< kSend
};

/// What the rules need to know of a node.
struct SmiNode {
    bool is_switch = false;
    std::uint8_t ports = 1;
    net::Lid lid = 0;  ///< of the switch
};

/// A directed route SMP has come in through port `ingress`.
SmiResult smi_arrival(SmpPacket& packet, const SmiNode& node, std::uint8_t ingress);

/// This node sends a directed route SMP: a request whose hop pointer is 0, or a response that its agent made
/// of the request (with D set, everything else of the route kept), the packet's LIDs exchanged.
SmiResult smi_departure(SmpPacket& packet, const SmiNode& node);

}  // namespace uib::management
