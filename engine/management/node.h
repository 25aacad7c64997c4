// A node as subnet management sees it: what its attributes hold (IBA 14.2.5).
//
// This is the one place of those values: a device's port reads its LID here, a switch's forwarding tables are
// those of net/fabric. Whoever depends on a value watches the node and is told after a port has changed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/management/attributes.h"
#include "net/fabric/internal_switch.h"

namespace uib::management {

/// Nanoseconds of the owner's monotonic clock.
using Time = std::uint64_t;
inline constexpr Time kNever = ~Time{0};

class Node;

class NodeWatcher {
  public:
    virtual ~NodeWatcher() = default;
    /// PortInfo, the P_Key table or the GUIDs of `port` are others.
    virtual void on_port_changed(Node& node, unsigned port) = 0;
};

struct NodePort {
    PortInfo info;
    std::vector<std::uint64_t> guids;
    std::vector<std::uint16_t> pkeys;
    SlToVl sl_to_vl{};  ///< of a CA's port
    /// Low 0-31, low 32-63, high 0-31, high 32-63.
    std::array<VlArbitrationBlock, 4> vl_arbitration{};
    /// When the lease of the M_Key ends (14.2.4.2).
    Time lease_ends = kNever;
    /// How often ClientReregister has been set: what was registered with subnet administration is to be
    /// registered anew.
    std::uint32_t reregistrations = 0;
};

class Node {
  public:
    static constexpr std::size_t kGuids = 8;
    static constexpr std::uint32_t kVendorId = 0x025549;

    /// A channel adapter whose ports are down; `port_guid` is that of port 1, the others follow.
    static Node channel_adapter(std::uint64_t guid, std::uint64_t port_guid, unsigned ports,
                                std::string description);
    /// A switch whose tables are `fabric`'s.
    static Node of_switch(std::uint64_t guid, unsigned ports, std::string description,
                          net::InternalSwitch& fabric);

    [[nodiscard]] bool is_switch() const { return fabric_ != nullptr; }
    [[nodiscard]] net::InternalSwitch& fabric() const { return *fabric_; }
    /// Physical ports, numbered from 1.
    [[nodiscard]] unsigned ports() const { return static_cast<unsigned>(ports_.size()) - 1; }
    [[nodiscard]] bool has_port(unsigned port) const {
        return port < ports_.size() && (port != 0 || is_switch());
    }
    /// Port 0 is a switch's own.
    [[nodiscard]] NodePort& port(unsigned number) { return ports_[number]; }
    [[nodiscard]] const NodePort& port(unsigned number) const { return ports_[number]; }
    /// The port that holds what belongs to the node at `port`: LID, M_Key, GID prefix.
    [[nodiscard]] NodePort& end_port(unsigned port) { return ports_[is_switch() ? 0 : port]; }
    [[nodiscard]] const NodePort& end_port(unsigned port) const { return ports_[is_switch() ? 0 : port]; }
    /// Of a switch, by the port where a packet comes in and the one where it goes out.
    [[nodiscard]] SlToVl& sl_to_vl(unsigned in, unsigned out) { return sl_to_vl_[in * ports_.size() + out]; }

    /// The physical link of `port` has come up (the state is Initialize then) or is gone (Down).
    void set_link(unsigned port, bool up);
    /// VLCap; OperationalVLs starts as the one data VL that always works.
    void set_vl_cap(unsigned port, Number code);
    /// A subnet manager runs at `port`, or no longer.
    void set_manager_bit(unsigned port, bool on);

    void watch(NodeWatcher* watcher) { watcher_ = watcher; }
    void changed(unsigned port) {
        if (watcher_ != nullptr) watcher_->on_port_changed(*this, port);
    }

    NodeInfo info;
    std::string description;
    SwitchInfo switch_info;

  private:
    Node() = default;

    std::vector<NodePort> ports_;  ///< by number; of a CA the first is unused
    std::vector<SlToVl> sl_to_vl_;
    net::InternalSwitch* fabric_ = nullptr;
    NodeWatcher* watcher_ = nullptr;
};

}  // namespace uib::management
