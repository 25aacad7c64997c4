// Forwarding tables from a topology: see compute_routes().
#include <algorithm>
#include <queue>

#include "engine/management/topology.h"

namespace uib::management {
namespace {

constexpr unsigned kFar = ~0U;

/// The switches of a topology with their levels.
class Levels {
  public:
    explicit Levels(const Topology& topology) : topology_(topology), level_(topology.nodes().size(), kFar) {
        for (NodeIndex i = 0; i < level_.size(); ++i)
            if (topology.node(i).is_switch()) order_.push_back(i);
        std::sort(order_.begin(), order_.end(), [&](NodeIndex a, NodeIndex b) {
            return topology.node(a).guid() < topology.node(b).guid();
        });
        for (const NodeIndex root : order_)
            if (level_[root] == kFar) spread(root);
        std::sort(order_.begin(), order_.end(), [&](NodeIndex a, NodeIndex b) { return up(b, a); });
    }

    /// Switches from the highest down.
    [[nodiscard]] const std::vector<NodeIndex>& order() const { return order_; }
    /// From `a` to `b` is up.
    [[nodiscard]] bool up(NodeIndex a, NodeIndex b) const {
        if (level_[a] != level_[b]) return level_[b] < level_[a];
        return topology_.node(b).guid() < topology_.node(a).guid();
    }
    /// Port by which a switch hangs on the spanning tree; 0 for a root.
    [[nodiscard]] unsigned parent_port(NodeIndex node) const { return parent_port_[node]; }

    template <typename Visit>
    void for_neighbours(NodeIndex node, Visit visit) const {
        const std::vector<PortRecord>& ports = topology_.node(node).ports;
        for (unsigned port = 1; port < ports.size(); ++port)
            if (ports[port].linked() && topology_.node(ports[port].peer).is_switch() &&
                ports[port].peer != node)
                visit(port, ports[port].peer);
    }

  private:
    void spread(NodeIndex root) {
        parent_port_.resize(level_.size(), 0);
        std::queue<NodeIndex> queue({root});
        level_[root] = 0;
        while (!queue.empty()) {
            const NodeIndex at = queue.front();
            queue.pop();
            for_neighbours(at, [&](unsigned port, NodeIndex to) {
                if (level_[to] != kFar) return;
                level_[to] = level_[at] + 1;
                parent_port_[to] = topology_.node(at).ports[port].peer_port;
                queue.push(to);
            });
        }
    }

    const Topology& topology_;
    std::vector<unsigned> level_;
    std::vector<unsigned> parent_port_;
    std::vector<NodeIndex> order_;
};

/// For one destination switch: by switch, the ports that a shortest allowed route may take.
class Ways {
  public:
    Ways(const Topology& topology, const Levels& levels, NodeIndex destination)
        : down_(topology.nodes().size(), kFar), any_(topology.nodes().size(), kFar) {
        spread_down(levels, destination);
        for (const NodeIndex node : levels.order()) {
            any_[node] = down_[node];
            if (any_[node] != kFar) continue;
            levels.for_neighbours(node, [&](unsigned, NodeIndex to) {
                if (levels.up(node, to) && any_[to] != kFar) any_[node] = std::min(any_[node], any_[to] + 1);
            });
        }
    }

    [[nodiscard]] std::vector<unsigned> ports(const Levels& levels, NodeIndex node) const {
        std::vector<unsigned> found;
        if (any_[node] == kFar) return found;
        const bool goes_down = down_[node] != kFar;
        levels.for_neighbours(node, [&](unsigned port, NodeIndex to) {
            const bool up = levels.up(node, to);
            if (goes_down ? !up && down_[to] != kFar && down_[to] + 1 == down_[node]
                          : up && any_[to] != kFar && any_[to] + 1 == any_[node])
                found.push_back(port);
        });
        return found;
    }

  private:
    void spread_down(const Levels& levels, NodeIndex destination) {
        std::queue<NodeIndex> queue({destination});
        down_[destination] = 0;
        while (!queue.empty()) {
            const NodeIndex at = queue.front();
            queue.pop();
            levels.for_neighbours(at, [&](unsigned, NodeIndex from) {
                if (!levels.up(at, from) || down_[from] != kFar) return;  // `from` is to be above
                down_[from] = down_[at] + 1;
                queue.push(from);
            });
        }
    }

    std::vector<unsigned> down_;
    std::vector<unsigned> any_;
};

void route_multicast(const Topology& topology, const Levels& levels, net::Lid mlid,
                     const std::set<std::uint64_t>& members, std::map<NodeIndex, SwitchRoutes>& routes) {
    std::map<NodeIndex, net::PortMask> masks;
    std::vector<std::size_t> below(topology.nodes().size(), 0);  // members in the subtree
    std::size_t all = 0;
    for (const std::uint64_t guid : members) {
        const NodeIndex end = topology.find(guid);
        if (end == kNoNode || topology.node(end).is_switch()) continue;
        const PortRecord& port = topology.node(end).ports[topology.node(end).end_port()];
        if (!port.linked() || !topology.node(port.peer).is_switch()) continue;
        masks[port.peer].set(port.peer_port);
        ++below[port.peer];
        ++all;
    }
    const std::vector<NodeIndex>& order = levels.order();
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
        const unsigned port = levels.parent_port(*node);
        if (port == 0 || below[*node] == 0) continue;
        const PortRecord& parent = topology.node(*node).ports[port];
        masks[parent.peer].set(parent.peer_port);
        below[parent.peer] += below[*node];
    }
    for (const NodeIndex node : order)
        if (levels.parent_port(node) != 0 && below[node] != all) masks[node].set(levels.parent_port(node));
    for (const auto& [node, mask] : masks)
        if (mask.any()) routes[node].multicast[mlid] = mask;
}

}  // namespace

std::map<NodeIndex, SwitchRoutes> compute_routes(const Topology& topology, const LidMap& lids, unsigned lmc,
                                                 const MulticastMembers& members) {
    const Levels levels(topology);
    std::map<NodeIndex, SwitchRoutes> routes;
    std::map<std::pair<NodeIndex, unsigned>, unsigned> load;
    std::map<NodeIndex, std::vector<std::pair<net::Lid, net::PortNumber>>> behind;  // LIDs by last switch
    net::Lid top = 0;
    for (const NodeRecord& node : topology.nodes()) {
        const net::Lid base = lids.lid(node.guid());
        if (base == 0) continue;
        const PortRecord& end = node.ports[node.end_port()];
        const bool own = node.is_switch();
        if (!own && (!end.linked() || !topology.node(end.peer).is_switch())) continue;
        const NodeIndex last = own ? topology.find(node.guid()) : end.peer;
        for (unsigned i = 0; i < (own ? 1U : 1U << lmc); ++i) {
            const auto lid = static_cast<net::Lid>(base + i);
            behind[last].emplace_back(lid, static_cast<net::PortNumber>(own ? 0 : end.peer_port));
            top = std::max(top, lid);
        }
    }
    for (const NodeIndex node : levels.order())
        routes[node].linear.assign(top + std::size_t{1}, net::kNoRoute);
    for (const auto& [last, destinations] : behind) {
        const Ways ways(topology, levels, last);
        for (const NodeIndex node : levels.order()) {
            const std::vector<unsigned> ports = ways.ports(levels, node);
            for (const auto& [lid, exit] : destinations) {
                if (node == last) {
                    routes[node].linear[lid] = exit;
                } else if (!ports.empty()) {
                    const unsigned port =
                        *std::min_element(ports.begin(), ports.end(), [&](unsigned a, unsigned b) {
                            return load[{node, a}] < load[{node, b}];
                        });
                    ++load[{node, port}];
                    routes[node].linear[lid] = static_cast<net::PortNumber>(port);
                }
            }
        }
    }
    for (const auto& [mlid, ports] : members) route_multicast(topology, levels, mlid, ports, routes);
    return routes;
}

}  // namespace uib::management
