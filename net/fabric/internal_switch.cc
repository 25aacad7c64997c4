#include "net/fabric/internal_switch.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace uib::net {
namespace {

bool is_multicast(const Packet& packet) {
    if (packet.kind != PacketKind::kEthernet) return packet.lrh.dlid >= kMulticastLidFirst;
    return !packet.payload.empty() && (packet.payload[0] & std::byte{1}) != std::byte{0};
}

}  // namespace

const char* name_of(SwitchDrop drop) {
    switch (drop) {
        case SwitchDrop::kNoEntry:
            return "no_entry";
        case SwitchDrop::kAboveTop:
            return "above_top";
        case SwitchDrop::kNoSuchPort:
            return "no_such_port";
        case SwitchDrop::kToSwitch:
            return "to_switch";
        case SwitchDrop::kForeignLid:
            return "foreign_lid";
        case SwitchDrop::kPortInactive:
            return "port_inactive";
    }
    return "unknown";
}

// Ports.

InternalSwitch::PortIndex InternalSwitch::add(const Port& port) {
    ports_.push_back(port);
    counters_.emplace_back();
    refresh_range(0, tables_.top() + std::size_t{1});  // the table may have named it before it was there
    return static_cast<PortIndex>(ports_.size() - 1);
}

InternalSwitch::PortIndex InternalSwitch::add_port() {
    return add({});
}

InternalSwitch::PortIndex InternalSwitch::add_external_port() {
    return add({true, {}});
}

InternalSwitch::PortIndex InternalSwitch::add_port(Lid lid) {
    if (lid == 0 || lid >= kMulticastLidFirst) throw std::invalid_argument("not a unicast LID");
    if (route(lid) != kNoPort) throw std::invalid_argument("LID is in use");
    const PortIndex index = add({false, {lid, 0, true}});
    if (lid < kLinearCap) {
        auto block = tables_.linear_block(lid / kLinearBlock);
        block[lid % kLinearBlock] = static_cast<PortNumber>(index + 1);
        tables_.set_linear_block(lid / kLinearBlock, block);
        tables_.set_top(std::max(tables_.top(), lid));
        refresh(lid);
        return index;
    }
    if (forwarding_.size() <= lid) forwarding_.resize(lid + std::size_t{1}, kNoPort);
    forwarding_[lid] = index;
    return index;
}

void InternalSwitch::set_end_port(PortIndex port, const EndPort& end) {
    EndPort& held = ports_[port].end;
    if (held == end) return;
    const EndPort before = std::exchange(held, end);
    for (const EndPort& range : {before, end}) {
        const std::size_t first = range.lid >> range.lmc << range.lmc;
        refresh_range(first, first + (std::size_t{1} << range.lmc));
    }
}

// Unicast.

void InternalSwitch::refresh(Lid lid) {
    if (lid >= kLinearCap) return;
    const PortNumber number = tables_.entry(lid);
    PortIndex found = kNoPort;
    if (lid <= tables_.top() && number != 0 && number <= ports_.size()) {
        const Port& port = ports_[number - 1U];
        if (port.external || (port.end.active && answers(port.end, lid))) found = number - 1U;
    }
    if (forwarding_.size() <= lid) {
        if (found == kNoPort) return;
        forwarding_.resize(lid + std::size_t{1}, kNoPort);
    }
    forwarding_[lid] = found;
}

void InternalSwitch::refresh_range(std::size_t first, std::size_t end) {
    for (std::size_t lid = first; lid < std::min<std::size_t>(end, kLinearCap); ++lid)
        refresh(static_cast<Lid>(lid));
}

bool InternalSwitch::set_top(Lid top) {
    const Lid before = tables_.top();
    if (!tables_.set_top(top)) return false;
    refresh_range(std::min(before, top), std::max(before, top) + std::size_t{1});
    return true;
}

bool InternalSwitch::set_linear_block(std::uint32_t block, std::span<const PortNumber, kLinearBlock> ports) {
    if (!tables_.set_linear_block(block, ports)) return false;
    refresh_range(block * kLinearBlock, (block + std::size_t{1}) * kLinearBlock);
    return true;
}

SwitchDrop InternalSwitch::why_dropped(Lid dlid) const {
    if (dlid > tables_.top()) return SwitchDrop::kAboveTop;
    const PortNumber number = tables_.entry(dlid);
    if (number == kNoRoute) return SwitchDrop::kNoEntry;
    if (number == 0) return SwitchDrop::kToSwitch;
    if (number > ports_.size()) return SwitchDrop::kNoSuchPort;
    return answers(ports_[number - 1U].end, dlid) ? SwitchDrop::kPortInactive : SwitchDrop::kForeignLid;
}

void InternalSwitch::count_dropped(const Packet& packet) {
    ++drops_[static_cast<std::size_t>(why_dropped(packet.lrh.dlid))];
    const PortIndex source = route(packet.lrh.slid);
    if (source != kNoPort) ++counters_[source].xmit_discards;
}

// Multicast.

bool InternalSwitch::set_multicast_block(std::uint32_t block, unsigned position,
                                         std::span<const std::uint16_t, kMulticastBlock> masks) {
    if (!tables_.set_multicast_block(block, position, masks)) return false;
    for (std::size_t i = 0; i < kMulticastBlock; ++i)
        refresh_group(static_cast<Lid>(kMulticastLidFirst + block * kMulticastBlock + i));
    return true;
}

void InternalSwitch::set_default_multicast_port(PortNumber port) {
    tables_.set_default_multicast_port(port);
    default_members_.clear();
    if (port != 0 && port <= ports_.size()) default_members_.push_back(port - 1U);
    std::vector<Lid> groups;
    for (const auto& [mlid, joined] : joined_) groups.push_back(mlid);
    for (const Lid mlid : groups) refresh_group(mlid);
}

void InternalSwitch::refresh_group(Lid mlid) {
    const PortMask mask = tables_.multicast(mlid);
    const auto joined = joined_.find(mlid);
    std::vector<PortIndex> ports;
    for (PortIndex port = 0; port < ports_.size(); ++port)
        if ((port + 1 < mask.size() && mask.test(port + 1)) ||
            (joined != joined_.end() && joined->second.contains(port)))
            ports.push_back(port);
    if (ports.empty()) {
        members_.erase(mlid);
    } else {
        members_[mlid] = std::move(ports);
    }
}

void InternalSwitch::join(Lid mlid, PortIndex port) {
    if (++joined_[mlid][port] == 1) refresh_group(mlid);
}

void InternalSwitch::leave(Lid mlid, PortIndex port) {
    const auto group = joined_.find(mlid);
    if (group == joined_.end()) return;
    const auto member = group->second.find(port);
    if (member == group->second.end() || --member->second != 0) return;
    group->second.erase(member);
    if (group->second.empty()) joined_.erase(group);
    refresh_group(mlid);
}

const std::vector<InternalSwitch::PortIndex>& InternalSwitch::members(Lid mlid) const {
    static const std::vector<PortIndex> kNobody;
    const auto found = members_.find(mlid);
    if (found != members_.end()) return found->second;
    return mlid >= kMulticastLidFirst + kMulticastCap ? default_members_ : kNobody;
}

// Counters.

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
