#include "engine/management/engine_subnet.h"

#include <algorithm>
#include <utility>

namespace uib::management {

EngineSubnet::EngineSubnet(net::InternalSwitch& fabric, std::uint64_t switch_guid,
                           const std::string& description, const std::vector<AdapterConfig>& adapters)
    : fabric_(fabric),
      switch_(Node::of_switch(switch_guid, static_cast<unsigned>(fabric.ports()), description, fabric)),
      link_trap_(switch_) {
    for (const AdapterConfig& config : adapters) {
        Node node = Node::channel_adapter(config.guid, config.guid, 1, config.description);
        node.info.type = config.type;
        auto made = std::make_unique<Adapter>(std::move(node), config.port, switch_);
        made->node.connect(1, &made->to_switch);
        switch_.connect(config.port + 1, &made->from_switch);
        made->node.node().set_link(1, true);
        switch_.node().set_link(config.port + 1, true);
        adapters_.push_back(std::move(made));
    }
    for (const auto& adapter : adapters_) adapter->node.node().watch(this);
    switch_.node().watch(this);
}

void EngineSubnet::limit_mtu(std::uint8_t code) {
    const Number limit = std::clamp<Number>(code, 1, 5);
    for (unsigned port = 0; port <= switch_.node().ports(); ++port) {
        PortInfo& info = switch_.node().port(port).info;
        info.mtu_cap = std::min(info.mtu_cap, limit);
    }
    for (const auto& adapter : adapters_) {
        PortInfo& info = adapter->node.node().port(1).info;
        info.mtu_cap = std::min(info.mtu_cap, limit);
    }
}

void EngineSubnet::run_manager(const SubnetOptions& options, Time now) {
    manager_.reset();  // a node has one at a time
    SmpNode& node = adapters_.empty() ? switch_ : adapters_.front()->node;
    manager_ = std::make_unique<SubnetManager>(node, adapters_.empty() ? 0 : 1, options);
    manager_->start(now);
}

void EngineSubnet::set_external_link(PortIndex port, bool up, Time now) {
    switch_.node().set_link(port + 1, up);
    link_changed(now);
}

void EngineSubnet::set_adapter_link(std::size_t index, bool up, Time now) {
    Adapter& adapter = *adapters_[index];
    adapter.node.node().set_link(1, up);
    switch_.node().set_link(adapter.port + 1, up);
    link_changed(now);
}

// The manager of this engine, if it is master, need not be told by wire.
void EngineSubnet::link_changed(Time now) {
    if (manager_ != nullptr) manager_->wake(now);
    if (manager_ == nullptr || manager_->state() != SmState::kMaster) link_trap_.raise(now);
}

bool EngineSubnet::activate(Node& node, unsigned port) {
    Number& state = node.port(port).info.port_state;
    if (state == kStateArmed) {
        state = kStateActive;
        node.changed(port);
    }
    return state == kStateActive;
}

void EngineSubnet::active_trigger() {
    for (unsigned port = 1; port <= switch_.node().ports(); ++port) activate(switch_.node(), port);
}

bool EngineSubnet::triggers_end_port(PortIndex port) {
    const auto adapter = std::find_if(adapters_.begin(), adapters_.end(),
                                      [port](const auto& made) { return made->port == port; });
    return adapter != adapters_.end() && activate(switch_.node(), port + 1) &&
           activate((*adapter)->node.node(), 1);
}

EngineSubnet::PortIndex EngineSubnet::triggered_way(net::Lid dlid) {
    if (fabric_.why_dropped(dlid) != net::SwitchDrop::kPortInactive) return net::InternalSwitch::kNoPort;
    const PortIndex port = fabric_.tables().entry(dlid) - 1U;
    return triggers_end_port(port) ? port : net::InternalSwitch::kNoPort;
}

void EngineSubnet::on_timer(Time now) {
    if (manager_ != nullptr && manager_->next_deadline() <= now) manager_->on_timer(now);
    if (link_trap_.next_deadline() <= now) link_trap_.on_timer(now);
}

Time EngineSubnet::next_deadline() const {
    const Time of_manager = manager_ == nullptr ? kNever : manager_->next_deadline();
    return std::min(of_manager, link_trap_.next_deadline());
}

void EngineSubnet::on_port_changed(Node& node, unsigned port) {
    if (&node == &switch_.node())
        for (const auto& listener : switch_listeners_) listener(port);
    for (std::size_t index = 0; index < adapters_.size(); ++index) {
        const Adapter& adapter = *adapters_[index];
        if (&node == &adapter.node.node() || (&node == &switch_.node() && port == adapter.port + 1))
            refresh(index);
    }
}

void EngineSubnet::refresh(std::size_t index) {
    const Adapter& adapter = *adapters_[index];
    const PortInfo& end = adapter.node.node().port(1).info;
    const PortInfo& switch_side = switch_.node().port(adapter.port + 1).info;
    fabric_.set_end_port(adapter.port,
                         {static_cast<net::Lid>(end.lid), static_cast<std::uint8_t>(end.lmc),
                          end.port_state == kStateActive && switch_side.port_state == kStateActive});
    if (listener_) listener_(index);
}

}  // namespace uib::management
