// One engine's part of a subnet: a switch, the channel adapters behind its ports, the links between them, and
// a subnet manager if this engine runs one.
//
// It keeps the switch's fast path (net/fabric) in step with what management sets at the ports. Ports of the
// switch that lead out of the engine are its owner's: SMPs that leave there go to the link given to
// connect(), and what arrives is given to receive().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/management/link_trap.h"
#include "engine/management/subnet_manager.h"

namespace uib::management {

class EngineSubnet final : public NodeWatcher {
  public:
    using PortIndex = net::InternalSwitch::PortIndex;

    struct AdapterConfig {
        PortIndex port = 0;  ///< of the fabric
        std::uint64_t guid = 0;
        std::string description;
        Number type = kNodeIsCa;  ///< or a router's port
    };

    /// All ports of `fabric` must be there. Links to `adapters` are up from the start; a port that is neither
    /// external nor an adapter's stays down.
    EngineSubnet(net::InternalSwitch& fabric, std::uint64_t switch_guid, const std::string& description,
                 const std::vector<AdapterConfig>& adapters);

    /// Called after a value at an adapter's port has changed, with the adapter's number.
    void on_change(std::function<void(std::size_t)> listener) { listener_ = std::move(listener); }
    /// Called after a value at a port of the switch has changed, with the port's number (0: the switch's
    /// own). The listener lives as long as this.
    void on_switch_change(std::function<void(unsigned)> listener) {
        switch_listeners_.push_back(std::move(listener));
    }

    /// No port's MTUCap is above `code` (1 to 5): a path through the engine must fit the links that lead out
    /// of it, since programs take their port's MTU for the path's.
    void limit_mtu(std::uint8_t code);

    /// Starts a subnet manager at the first adapter, or at the switch if there is none. One that runs ends.
    void run_manager(const SubnetOptions& options, Time now);
    void stop_manager() { manager_.reset(); }
    /// What the manager, or the switch's trap, has to do by itself.
    void on_timer(Time now);
    [[nodiscard]] Time next_deadline() const;
    [[nodiscard]] const LinkTrap& link_trap() const { return link_trap_; }
    [[nodiscard]] SubnetManager* manager() { return manager_.get(); }
    [[nodiscard]] const SubnetManager* manager() const { return manager_.get(); }

    [[nodiscard]] SmpNode& switch_node() { return switch_; }
    [[nodiscard]] const SmpNode& switch_node() const { return switch_; }
    [[nodiscard]] std::size_t adapters() const { return adapters_.size(); }
    [[nodiscard]] SmpNode& adapter(std::size_t index) { return adapters_[index]->node; }
    [[nodiscard]] const SmpNode& adapter(std::size_t index) const { return adapters_[index]->node; }
    /// What management has set at an adapter's port.
    [[nodiscard]] const NodePort& port_of(std::size_t index) const { return adapter(index).node().port(1); }

    // -- ActiveTrigger (7.2.7): what is Armed becomes Active by the first packet of a data VL, without the
    // manager.
    /// Such a packet came to a port of the switch: all its ports do.
    void active_trigger();
    /// One is at the switch for the end port behind `port`, whose link is not active. True if that receives
    /// it, because it is Armed; it is Active then.
    bool triggers_end_port(PortIndex port);
    /// The port that a unicast packet goes to for which the fabric's table has none, because an end port
    /// receives it though it is only Armed.
    PortIndex triggered_way(net::Lid dlid);

    /// The cable between an adapter and the switch is pulled out or put in again.
    void set_adapter_link(std::size_t adapter, bool up, Time now);

    // -- links out of the engine --
    void connect(PortIndex port, SmpLink* link) { switch_.connect(port + 1, link); }
    void set_external_link(PortIndex port, bool up, Time now);
    void receive(PortIndex port, const SmpPacket& packet, Time now) {
        switch_.receive(port + 1, packet, now);
    }

    // -- NodeWatcher --
    void on_port_changed(Node& node, unsigned port) override;

  private:
    struct Adapter {
        Adapter(Node made, PortIndex at, SmpNode& to)
            : node(std::move(made)), port(at), to_switch(to, at + 1), from_switch(node, 1) {}
        SmpNode node;
        PortIndex port;
        InternalSmpLink to_switch;
        InternalSmpLink from_switch;
    };
    void refresh(std::size_t index);
    static bool activate(Node& node, unsigned port);
    void link_changed(Time now);

    net::InternalSwitch& fabric_;
    SmpNode switch_;
    LinkTrap link_trap_;
    std::vector<std::unique_ptr<Adapter>> adapters_;
    std::function<void(std::size_t)> listener_;
    std::vector<std::function<void(unsigned)>> switch_listeners_;
    std::unique_ptr<SubnetManager> manager_;
};

}  // namespace uib::management
