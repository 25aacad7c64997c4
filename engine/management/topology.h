// What a sweep has found: the nodes of the subnet, their ports and the links between them.
//
// A channel adapter does not forward, so each of its ports that was reached is a record of its own, with only
// that port known; a switch is one record with all its ports.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/management/attributes.h"
#include "net/fabric/forwarding_tables.h"

namespace uib::management {

/// Ports that a directed route leaves through, from the manager's node on.
using DirectedPath = std::vector<std::uint8_t>;

using NodeIndex = std::size_t;
inline constexpr NodeIndex kNoNode = ~NodeIndex{0};

struct PortRecord {
    bool known = false;
    PortInfo info;
    NodeIndex peer = kNoNode;
    unsigned peer_port = 0;
    [[nodiscard]] bool linked() const { return peer != kNoNode; }
};

struct NodeRecord {
    NodeInfo info;
    SwitchInfo switch_info;
    DirectedPath path;
    std::vector<PortRecord> ports;  ///< by number
    [[nodiscard]] bool is_switch() const { return info.type == kNodeIsSwitch; }
    /// The port whose LID is the node's: a switch's own, or the one that was reached.
    [[nodiscard]] unsigned end_port() const {
        return is_switch() ? 0 : static_cast<unsigned>(info.local_port);
    }
    /// Names the record: a port GUID, which of a switch is that of port 0.
    [[nodiscard]] std::uint64_t guid() const { return info.port_guid; }
};

class Topology {
  public:
    void clear() { *this = {}; }
    /// kNoNode if there is none.
    [[nodiscard]] NodeIndex find(std::uint64_t port_guid) const;
    NodeIndex add(NodeRecord record);
    void link(NodeIndex a, unsigned a_port, NodeIndex b, unsigned b_port);

    [[nodiscard]] const std::vector<NodeRecord>& nodes() const { return nodes_; }
    [[nodiscard]] NodeRecord& node(NodeIndex index) { return nodes_[index]; }
    [[nodiscard]] const NodeRecord& node(NodeIndex index) const { return nodes_[index]; }

  private:
    std::vector<NodeRecord> nodes_;
    std::map<std::uint64_t, NodeIndex> by_guid_;
};

/// LIDs by port GUID; those of ports that are gone stay theirs, for when they come back.
class LidMap {
  public:
    /// Gives every end port of `topology` a base LID, switches one LID and other ports 2^`lmc`: the one it
    /// had, else the one it shows, else the lowest free one, in the order of GUIDs.
    void assign(const Topology& topology, unsigned lmc);
    /// 0 if the port has none.
    [[nodiscard]] net::Lid lid(std::uint64_t port_guid) const;
    void forget() { lids_.clear(); }

  private:
    struct Range {
        net::Lid first = 0;
        std::uint32_t count = 1;
    };
    [[nodiscard]] bool free(std::uint32_t first, std::uint32_t count, std::uint64_t except) const;
    std::map<std::uint64_t, Range> lids_;
};

/// Members of multicast groups: port GUIDs by multicast LID.
using MulticastMembers = std::map<net::Lid, std::set<std::uint64_t>>;

/// What a switch is to hold.
struct SwitchRoutes {
    std::vector<net::PortNumber> linear;          ///< by LID, up to the highest one in use
    std::map<net::Lid, net::PortMask> multicast;  ///< groups without a port are left out
};

/// Forwarding tables for all switches of `topology`, by node index. Unicast routes follow the up/down rule:
/// levels count from the switch with the lowest GUID, and no route goes up again after it went down, so that
/// routes through several switches cannot wait for each other in a circle. Of the ports that a rule-abiding
/// shortest route may take, the one with the fewest LIDs so far gets the next one. Multicast routes are the
/// part of one spanning tree that joins the members.
std::map<NodeIndex, SwitchRoutes> compute_routes(const Topology& topology, const LidMap& lids, unsigned lmc,
                                                 const MulticastMembers& members);

}  // namespace uib::management
