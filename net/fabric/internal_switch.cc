#include "net/fabric/internal_switch.h"

#include <algorithm>
#include <stdexcept>

namespace uib::net {
namespace {

bool is_multicast(const Packet& packet) {
    if (packet.kind != PacketKind::kEthernet) return packet.lrh.dlid >= kMulticastLidFirst;
    return !packet.payload.empty() && (packet.payload[0] & std::byte{1}) != std::byte{0};
}

}  // namespace

InternalSwitch::PortIndex InternalSwitch::add_port(Lid lid) {
    if (lid == 0 || lid >= kMulticastLidFirst) throw std::invalid_argument("not a unicast LID");
    if (route(lid) != kNoPort) throw std::invalid_argument("LID is in use");
    if (forwarding_.size() <= lid) forwarding_.resize(lid + std::size_t{1}, kNoPort);
    const auto index = static_cast<PortIndex>(counters_.size());
    forwarding_[lid] = index;
    counters_.emplace_back();
    return index;
}

void InternalSwitch::join(Lid mlid, PortIndex port) {
    Group& group = groups_[mlid];
    const auto it = std::lower_bound(group.ports.begin(), group.ports.end(), port);
    const auto at = it - group.ports.begin();
    if (it != group.ports.end() && *it == port) {
        ++group.joined[static_cast<std::size_t>(at)];
        return;
    }
    group.ports.insert(it, port);
    group.joined.insert(group.joined.begin() + at, 1);
}

void InternalSwitch::leave(Lid mlid, PortIndex port) {
    const auto found = groups_.find(mlid);
    if (found == groups_.end()) return;
    Group& group = found->second;
    const auto it = std::lower_bound(group.ports.begin(), group.ports.end(), port);
    if (it == group.ports.end() || *it != port) return;
    const auto at = it - group.ports.begin();
    if (--group.joined[static_cast<std::size_t>(at)] != 0) return;
    group.ports.erase(it);
    group.joined.erase(group.joined.begin() + at);
    if (group.ports.empty()) groups_.erase(found);
}

const std::vector<InternalSwitch::PortIndex>& InternalSwitch::members(Lid mlid) const {
    static const std::vector<PortIndex> kNobody;
    const auto found = groups_.find(mlid);
    return found == groups_.end() ? kNobody : found->second.ports;
}

void InternalSwitch::count_sent(PortIndex port, const Packet& packet) {
    PortCounters& counters = counters_[port];
    counters.xmit_words += packet_bytes(packet) / 4;
    ++counters.xmit_packets;
    ++(is_multicast(packet) ? counters.multicast_xmit_packets : counters.unicast_xmit_packets);
}

void InternalSwitch::count_received(PortIndex port, const Packet& packet) {
    PortCounters& counters = counters_[port];
    counters.rcv_words += packet_bytes(packet) / 4;
    ++counters.rcv_packets;
    ++(is_multicast(packet) ? counters.multicast_rcv_packets : counters.unicast_rcv_packets);
}

}  // namespace uib::net
