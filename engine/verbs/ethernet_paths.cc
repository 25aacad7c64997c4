#include "engine/verbs/ethernet_paths.h"

#include "net/wire/gid.h"

namespace uib::verbs {

void EthernetPaths::set_port(net::Lid lid, const std::vector<net::Gid>& gids) {
    std::erase_if(ports_, [&](const auto& entry) { return entry.second == lid; });
    for (const net::Gid& gid : gids)
        if (gid != net::Gid{}) ports_.emplace(gid, lid);
}

void EthernetPaths::resolve(bool ethernet, net::Packet& packet) const {
    if (!ethernet) {
        if (packet.lrh.dlid >= kFirstLid && packet.lrh.dlid < net::kMulticastLidFirst) packet.lrh.dlid = 0;
        return;
    }
    packet.lrh.dlid = 0;
    if (packet.kind == net::PacketKind::kEthernet) return;
    if (!packet.has_grh) return;
    if (net::is_multicast(packet.grh.dgid)) {
        packet.lrh.dlid = multicast_lid(packet.grh.dgid);
    } else if (const auto port = ports_.find(packet.grh.dgid); port != ports_.end()) {
        packet.lrh.dlid = port->second;
    }
}

net::Lid EthernetPaths::multicast_lid(const net::Gid& gid) {
    constexpr unsigned kGroups = net::kPermissiveLid - net::kMulticastLidFirst;
    unsigned sum = 0;
    for (const std::uint8_t byte : gid) sum = (sum * 31 + byte) % kGroups;
    return static_cast<net::Lid>(net::kMulticastLidFirst + sum);
}

}  // namespace uib::verbs
