// Control messages (control.h) about flow rules: which Ethernet frames a raw packet QP receives.
#pragma once

#include <cstdint>

#include "engine/ipc/control.h"

namespace uib::ipc {

enum class FlowType : std::uint32_t {
    kNormal = 0,
    kAllDefault = 1,        ///< what no normal rule takes
    kMulticastDefault = 2,  ///< of that, the multicast frames
    kSniffer = 3,           ///< a copy of every frame
};                          // as ibv_flow_attr_type

enum FlowFlags : std::uint32_t { kFlowDontTrap = 1 << 1 };  ///< gets a copy, lower rules are tried on

/// Headers that a frame must have; Ethernet needs no bit.
enum FlowLayers : std::uint32_t {
    kFlowVlan = 1 << 0,
    kFlowIpv4 = 1 << 1,
    kFlowIpv6 = 1 << 2,
    kFlowTcp = 1 << 3,
    kFlowUdp = 1 << 4,
};

/// Fields of a frame's headers in network order, or a mask of them; what a frame does not have is zero.
struct FlowFields {
    std::uint8_t destination_mac[6];
    std::uint8_t source_mac[6];
    std::uint8_t ether_type[2];  ///< behind the VLAN tag if there is one
    std::uint8_t vlan_tag[2];
    std::uint8_t source_ip[16];  ///< IPv4 in the first four bytes
    std::uint8_t destination_ip[16];
    std::uint8_t flow_label[4];  ///< 20 bits
    std::uint8_t source_port[2];
    std::uint8_t destination_port[2];
    std::uint8_t protocol;       ///< IPv6: next header
    std::uint8_t traffic_class;  ///< IPv4: type of service
    std::uint8_t hop_limit;      ///< IPv4: time to live
    std::uint8_t ip_flags;       ///< IPv4: 2 do not fragment, 4 more fragments
};
static_assert(sizeof(FlowFields) == 60);

/// A normal rule takes frames that have all of `layers` and agree with `value` where `mask` has ones; the
/// other types take neither layers nor fields. Reply HandleBody; kDestroyFlow takes HandleBody. The QP cannot
/// be destroyed before its rules (EBUSY). EPERM: the client may not send raw packets (CAP_NET_RAW).
struct CreateFlowRequest {
    std::uint32_t qp;
    std::uint32_t port;
    std::uint32_t type;      ///< FlowType
    std::uint32_t priority;  ///< 0 to 65535; the lowest value is looked at first
    std::uint32_t flags;     ///< FlowFlags
    std::uint32_t layers;    ///< FlowLayers
    FlowFields value;
    FlowFields mask;
};

}  // namespace uib::ipc
