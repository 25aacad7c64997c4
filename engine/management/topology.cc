#include "engine/management/topology.h"

#include <algorithm>

namespace uib::management {

NodeIndex Topology::find(std::uint64_t port_guid) const {
    const auto found = by_guid_.find(port_guid);
    return found == by_guid_.end() ? kNoNode : found->second;
}

NodeIndex Topology::add(NodeRecord record) {
    by_guid_[record.guid()] = nodes_.size();
    nodes_.push_back(std::move(record));
    return nodes_.size() - 1;
}

void Topology::link(NodeIndex a, unsigned a_port, NodeIndex b, unsigned b_port) {
    const auto attach = [&](NodeIndex from, unsigned port, NodeIndex to, unsigned to_port) {
        std::vector<PortRecord>& ports = nodes_[from].ports;
        if (ports.size() <= port) ports.resize(port + 1);
        ports[port].peer = to;
        ports[port].peer_port = to_port;
    };
    attach(a, a_port, b, b_port);
    attach(b, b_port, a, a_port);
}

net::Lid LidMap::lid(std::uint64_t port_guid) const {
    const auto found = lids_.find(port_guid);
    return found == lids_.end() ? net::Lid{0} : found->second.first;
}

bool LidMap::free(std::uint32_t first, std::uint32_t count, std::uint64_t except) const {
    if (first == 0 || first % count != 0 || first + count - 1 > kUnicastLidLast) return false;
    return std::none_of(lids_.begin(), lids_.end(), [&](const auto& entry) {
        const Range& taken = entry.second;
        return entry.first != except && first < taken.first + taken.count && taken.first < first + count;
    });
}

void LidMap::assign(const Topology& topology, unsigned lmc) {
    std::map<std::uint64_t, const NodeRecord*> by_guid;
    for (const NodeRecord& node : topology.nodes()) by_guid[node.guid()] = &node;
    const auto count_of = [&](const NodeRecord& node) { return node.is_switch() ? 1U : 1U << lmc; };
    std::vector<const NodeRecord*> without;
    // Those who have or show one keep it before a new one could take it away.
    for (const auto& [guid, node] : by_guid) {
        const std::uint32_t count = count_of(*node);
        const auto had = lids_.find(guid);
        if (had != lids_.end() && free(had->second.first, count, guid)) {
            had->second.count = count;
            continue;
        }
        lids_.erase(guid);
        const auto shown = static_cast<std::uint32_t>(node->ports[node->end_port()].info.lid);
        if (free(shown, count, guid)) {
            lids_[guid] = {static_cast<net::Lid>(shown), count};
        } else {
            without.push_back(node);
        }
    }
    for (const NodeRecord* node : without) {
        const std::uint32_t count = count_of(*node);
        std::uint32_t first = count;
        while (first <= kUnicastLidLast && !free(first, count, node->guid())) first += count;
        if (first <= kUnicastLidLast) lids_[node->guid()] = {static_cast<net::Lid>(first), count};
    }
}

}  // namespace uib::management
