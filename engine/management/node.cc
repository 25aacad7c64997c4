#include "engine/management/node.h"

#include <utility>

namespace uib::management {
namespace {

constexpr std::uint16_t kDefaultPkey = 0xFFFF;
constexpr Number kForEver = 20;  // the least LifeTimeValue that means it

NodePort make_port(std::uint64_t guid, unsigned number, bool end) {
    NodePort port;
    port.info.local_port = number;
    port.info.guid_cap = end ? Node::kGuids : 0;
    port.pkeys.assign(1, kDefaultPkey);
    if (end) {
        port.guids.assign(Node::kGuids, 0);
        port.guids[0] = guid;
        port.info.capability_mask = kIsSystemImageGuid | kIsExtendedSpeeds | kIsClientReregistration;
    }
    return port;
}

}  // namespace

Node Node::channel_adapter(std::uint64_t guid, std::uint64_t port_guid, unsigned ports,
                           std::string description) {
    Node node;
    node.info.type = kNodeIsCa;
    node.info.ports = ports;
    node.info.system_image_guid = node.info.node_guid = guid;
    node.info.vendor_id = kVendorId;
    node.description = std::move(description);
    node.ports_.emplace_back();
    for (unsigned number = 1; number <= ports; ++number)
        node.ports_.push_back(make_port(port_guid + number - 1, number, true));
    return node;
}

Node Node::of_switch(std::uint64_t guid, unsigned ports, std::string description,
                     net::InternalSwitch& fabric) {
    Node node;
    node.fabric_ = &fabric;
    node.info.type = kNodeIsSwitch;
    node.info.ports = ports;
    node.info.system_image_guid = node.info.node_guid = guid;
    node.info.vendor_id = kVendorId;
    node.description = std::move(description);
    node.switch_info.linear_cap = fabric.tables().linear_cap();
    node.switch_info.multicast_cap = fabric.tables().multicast_cap();
    node.switch_info.life_time = kForEver;
    for (unsigned number = 0; number <= ports; ++number)
        node.ports_.push_back(make_port(guid, number, number == 0));
    node.sl_to_vl_.resize(node.ports_.size() * node.ports_.size());
    // The way to the switch itself is always there.
    PortInfo& own = node.ports_[0].info;
    own.capability_mask |= kIsTrapSupported;
    own.port_state = kStateActive;
    own.physical_state = kPhysicalLinkUp;
    own.neighbor_mtu = own.mtu_cap;
    return node;
}

void Node::set_link(unsigned number, bool up) {
    PortInfo& port = ports_[number].info;
    const Number state = up ? kStateInitialize : kStateDown;
    const bool was_up = port.port_state != kStateDown;
    if (was_up == up) return;
    port.port_state = state;
    port.physical_state = up ? kPhysicalLinkUp : kPhysicalPolling;
    port.operational_vls = 1;
    switch_info.port_state_change = 1;
    changed(number);
}

void Node::set_vl_cap(unsigned number, Number code) {
    PortInfo& port = ports_[number].info;
    port.vl_cap = code;
    const bool several = data_vls(code) > 1;
    port.vl_arbitration_low_cap = port.vl_arbitration_high_cap = several ? 64 : 0;
    ports_[is_switch() ? 0 : number].info.capability_mask |= several ? kIsSlMapping : 0;
}

void Node::set_manager_bit(unsigned port, bool on) {
    Number& mask = end_port(port).info.capability_mask;
    mask = on ? mask | kIsSm : mask & ~kIsSm;
}

}  // namespace uib::management
