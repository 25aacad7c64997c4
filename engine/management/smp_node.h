// A node that takes part in subnet management: its SMI, its agent, the links of its ports and, where a subnet
// manager runs, that manager.
//
// It has no clock, thread or queue: an SMP that comes in is answered, passed on or delivered before receive()
// returns. Links to nodes of the same engine call the other node at once; a link to somewhere else puts the
// packet on its wire (VL15). So a request to the far side of this engine comes back within the call that sent
// it, and a manager must be ready for that.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/management/agent.h"
#include "engine/management/smi.h"

namespace uib::management {

/// What a port sends SMPs through.
class SmpLink {
  public:
    virtual ~SmpLink() = default;
    virtual void transmit(const SmpPacket& packet, Time now) = 0;
};

/// What gets the SMPs that are not the agent's.
class SmpManager {
  public:
    virtual ~SmpManager() = default;
    virtual void on_response(const SmpPacket& packet, Time now) = 0;
    /// Get or Set of SMInfo; the answer is complete but for route and LIDs.
    virtual net::Smp on_sm_info(const net::Smp& request, Time now) = 0;
    /// False if it is another manager's to repress.
    virtual bool on_trap(const net::Smp& trap, Time now) = 0;
};

/// SMPs that went nowhere, by cause.
struct SmpDrops {
    std::uint64_t route = 0;      ///< hop rules, or a port that is not there
    std::uint64_t link_down = 0;  ///< the port is down
    std::uint64_t management_key = 0;
    std::uint64_t lid = 0;         ///< nobody's LID here, or the way is back to where it came from
    std::uint64_t unexpected = 0;  ///< responses where no manager is, traps where no master is
};

class SmpNode {
  public:
    explicit SmpNode(Node node) : node_(std::move(node)), links_(node_.ports() + 1) {}
    SmpNode(const SmpNode&) = delete;
    SmpNode& operator=(const SmpNode&) = delete;

    [[nodiscard]] Node& node() { return node_; }
    [[nodiscard]] const Node& node() const { return node_; }
    /// What `port` sends through from now on; nullptr: nothing. The link's state is told by Node::set_link().
    void connect(unsigned port, SmpLink* link) { links_[port] = link; }
    /// A manager whose SMPs leave through `port`; nullptr ends it.
    void run_manager(unsigned port, SmpManager* manager);
    /// Called with the transaction of each trap that the master represses.
    void on_trap_repress(std::function<void(std::uint64_t)> listener) {
        repress_listener_ = std::move(listener);
    }

    /// From the link of `port`.
    void receive(unsigned port, const SmpPacket& packet, Time now);
    /// From the manager of this node. `port` is where LID routed SMPs of a CA leave; directed ones know.
    void originate(unsigned port, SmpPacket packet, Time now);

    [[nodiscard]] const SmpDrops& drops() const { return drops_; }

  private:
    [[nodiscard]] SmiNode smi_node() const;
    void directed(unsigned port, SmpPacket packet, Time now);
    void by_lid(unsigned port, const SmpPacket& packet, Time now);
    void go(const SmiResult& result, unsigned port, const SmpPacket& packet, Time now);
    void send(unsigned port, const SmpPacket& packet, Time now);
    void deliver(unsigned port, const SmpPacket& packet, Time now);
    void take_trap(unsigned port, const SmpPacket& packet, SmpManager* manager, Time now);
    void take_repress(unsigned port, const SmpPacket& packet, Time now);
    [[nodiscard]] bool owns(unsigned port, net::Lid lid) const;
    /// What a switch's forwarding table has for the LID.
    [[nodiscard]] net::PortNumber way_to(net::Lid dlid) const;

    Node node_;
    std::vector<SmpLink*> links_;  ///< by port
    unsigned manager_port_ = 0;
    SmpManager* manager_ = nullptr;
    std::function<void(std::uint64_t)> repress_listener_;
    SmpDrops drops_;
};

/// A link within the engine.
class InternalSmpLink final : public SmpLink {
  public:
    InternalSmpLink(SmpNode& to, unsigned port) : to_(to), port_(port) {}
    void transmit(const SmpPacket& packet, Time now) override { to_.receive(port_, packet, now); }

  private:
    SmpNode& to_;
    unsigned port_;
};

}  // namespace uib::management
