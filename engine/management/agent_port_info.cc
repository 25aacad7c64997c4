// Get and Set of PortInfo (IBA 14.2.5.6): which components a port has, which values are refused, and what a
// commanded port state does. A refused component keeps its value; the others are set.
#include <utility>

#include "engine/management/agent.h"

namespace uib::management {
namespace {

constexpr Number kMtuCodeLast = 5;
constexpr Number kWidthIsSupported = 255;
constexpr Number kSpeedIsSupported = 15;

/// The attribute modifier's port, or the port of the request; -1 if there is none.
int port_of(const Node& node, const Request& request) {
    if (request.modifier == 0) return node.is_switch() ? 0 : static_cast<int>(request.port);
    return request.modifier <= node.ports() ? static_cast<int>(request.modifier) : -1;
}

/// Takes one wanted component over. False if the value is refused.
bool take_component(PortInfo& held, const PortInfo& wanted, Number PortInfo::*member) {
    const Number value = wanted.*member;
    const auto none_or = [&](Number supported, Number all, Number PortInfo::*target) {
        if (value == 0) return true;
        if (value != all && (value & ~supported) != 0) return false;
        held.*target = value == all ? supported : value;
        return true;
    };
    if (member == &PortInfo::port_state || member == &PortInfo::physical_state) return true;  // set at last
    if (member == &PortInfo::link_width_enabled)
        return none_or(held.link_width_supported, kWidthIsSupported, member);
    if (member == &PortInfo::link_speed_enabled)
        return none_or(held.link_speed_supported, kSpeedIsSupported, member);
    if (member == &PortInfo::lid || member == &PortInfo::master_sm_lid) {
        if (value > kUnicastLidLast) return false;
    } else if (member == &PortInfo::link_down_default) {
        if (value == 0) return true;
        if (value > kPhysicalPolling) return false;
    } else if (member == &PortInfo::neighbor_mtu) {
        if (value == 0 || value > kMtuCodeLast) return false;
    } else if (member == &PortInfo::operational_vls) {
        if (value == 0) return true;
        if (value > held.vl_cap) return false;
    } else if (member == &PortInfo::mkey_violations || member == &PortInfo::pkey_violations ||
               member == &PortInfo::qkey_violations) {
        if (value != 0) return true;  // can only be cleared
    }
    held.*member = value;
    return true;
}

/// PortState and PortPhysicalState (7.2.6, 14.2.5.6). False if the command is unknown or impossible now.
bool command_state(Node& node, unsigned number, Number state, Number physical) {
    PortInfo& port = node.port(number).info;
    if (state > kStateActive || state == kStateInitialize || physical > kPhysicalDisabled) return false;
    if (physical != 0) {
        if (state > kStateDown) return false;
        if (physical == kPhysicalDisabled) {
            node.set_link(number, false);
            port.physical_state = kPhysicalDisabled;
            return true;
        }
        if (port.physical_state == kPhysicalDisabled) port.physical_state = physical;
    }
    switch (state) {
        case kStateDown:
            if (port.port_state != kStateDown) port.port_state = kStateInitialize;  // the link trains anew
            return true;
        case kStateArmed:
            if (port.port_state < kStateInitialize) return false;
            port.port_state = kStateArmed;
            return true;
        case kStateActive:
            if (port.port_state < kStateArmed) return false;
            port.port_state = kStateActive;
            return true;
        default:
            return true;
    }
}

bool set_port(Node& node, unsigned number, ConstData data, Number& reregister) {
    PortInfo& held = node.port(number).info;
    PortInfo wanted = decode_port_info(data);
    reregister = std::exchange(wanted.client_reregister, 0);
    const bool own_port = node.is_switch() && number == 0;
    const unsigned access = node.is_switch() && number != 0 ? kSetAtExternal : kSetAtEnd;
    bool good = true;
    for (const Component<PortInfo>& component : port_info_components())
        if ((component.access & access) != 0 && !(own_port && (component.access & kOfLink) != 0))
            good = take_component(held, wanted, component.member) && good;
    if (!own_port) good = command_state(node, number, wanted.port_state, wanted.physical_state) && good;
    return good;
}

}  // namespace

std::uint16_t port_info(Node& node, const Request& request, Data data) {
    const int number = port_of(node, request);
    if (number < 0) return net::kMadInvalidValue;
    const auto port = static_cast<unsigned>(number);
    std::uint16_t status = 0;
    Number reregister = 0;
    if (request.set) {
        // A CA's port is set through itself only.
        if (!node.is_switch() && port != request.port) return net::kMadInvalidValue;
        if (!set_port(node, port, data, reregister)) status = net::kMadInvalidValue;
        node.port(port).reregistrations += static_cast<std::uint32_t>(reregister);
        node.changed(port);
    }
    PortInfo shown = node.port(port).info;
    shown.local_port = request.port;
    shown.client_reregister = reregister;
    encode(shown, data);
    return status;
}

}  // namespace uib::management
