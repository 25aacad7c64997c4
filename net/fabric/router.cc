#include "net/fabric/router.h"

#include "net/wire/gid.h"

namespace uib::net {
namespace {

constexpr std::uint8_t kManagementVl = 15;

}  // namespace

const char* name_of(RouterDrop drop) {
    switch (drop) {
        case RouterDrop::kManagement:
            return "management";
        case RouterDrop::kNoGrh:
            return "no_grh";
        case RouterDrop::kMulticast:
            return "multicast";
        case RouterDrop::kHopLimit:
            return "hop_limit";
        case RouterDrop::kNoSubnet:
            return "no_subnet";
        case RouterDrop::kNoPort:
            return "no_port";
    }
    return "unknown";
}

Router::InterfaceIndex Router::add_interface(std::uint64_t prefix) {
    interfaces_.push_back({prefix, 0, {}});
    return interfaces_.size() - 1;
}

void Router::set_port(InterfaceIndex interface, const Gid& gid, Lid lid) {
    if (lid == 0) {
        interfaces_[interface].ports.erase(gid);
    } else {
        interfaces_[interface].ports[gid] = lid;
    }
}

std::optional<Router::InterfaceIndex> Router::drop(RouterDrop cause) {
    ++drops_[static_cast<std::size_t>(cause)];
    return std::nullopt;
}

std::optional<Router::InterfaceIndex> Router::forward(InterfaceIndex from, Packet& packet) {
    if (packet.lrh.vl == kManagementVl || packet.bth.dest_qp == 0) return drop(RouterDrop::kManagement);
    if (!packet.has_grh) return drop(RouterDrop::kNoGrh);
    if (packet.grh.dgid[0] == 0xFF) return drop(RouterDrop::kMulticast);
    if (packet.grh.hop_limit <= 1) return drop(RouterDrop::kHopLimit);
    const std::uint64_t prefix = prefix_of(packet.grh.dgid);
    for (InterfaceIndex to = 0; to < interfaces_.size(); ++to) {
        if (to == from || interfaces_[to].prefix != prefix) continue;
        const auto port = interfaces_[to].ports.find(packet.grh.dgid);
        if (port == interfaces_[to].ports.end()) return drop(RouterDrop::kNoPort);
        packet.lrh.slid = interfaces_[to].lid;
        packet.lrh.dlid = port->second;
        --packet.grh.hop_limit;
        ++forwarded_;
        return to;
    }
    return drop(RouterDrop::kNoSubnet);
}

}  // namespace uib::net
