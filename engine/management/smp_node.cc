#include "engine/management/smp_node.h"

#include <utility>

#include "engine/management/management_key.h"

namespace uib::management {

SmiNode SmpNode::smi_node() const {
    return {node_.is_switch(), static_cast<std::uint8_t>(node_.ports()),
            static_cast<net::Lid>(node_.is_switch() ? node_.port(0).info.lid : 0)};
}

void SmpNode::run_manager(unsigned port, SmpManager* manager) {
    manager_port_ = port;
    manager_ = manager;
    node_.set_manager_bit(port, manager != nullptr);
}

bool SmpNode::owns(unsigned port, net::Lid lid) const {
    const PortInfo& info = node_.end_port(port).info;
    return info.lid != 0 && Number{lid} >> info.lmc == info.lid >> info.lmc;
}

void SmpNode::receive(unsigned port, const SmpPacket& packet, Time now) {
    // Accepted in every state from Initialize up (7.2).
    if (node_.port(port).info.port_state < kStateInitialize) {
        ++drops_.link_down;
        return;
    }
    // A directed route SMP whose directed part is elsewhere is under way by LIDs.
    const bool under_way =
        node_.is_switch() && packet.dlid != net::kPermissiveLid && !owns(port, packet.dlid);
    if (packet.smp.is_directed() && !under_way) {
        directed(port, packet, now);
    } else if (packet.dlid != net::kPermissiveLid && !owns(port, packet.dlid) &&
               way_to(packet.dlid) == port) {
        // Tables that point at each other would send it back and forth for ever (18.2.4.3).
        ++drops_.lid;
    } else {
        by_lid(port, packet, now);
    }
}

net::PortNumber SmpNode::way_to(net::Lid dlid) const {
    return node_.is_switch() && dlid <= node_.switch_info.linear_top ? node_.fabric().tables().entry(dlid)
                                                                     : net::kNoRoute;
}

void SmpNode::directed(unsigned port, SmpPacket packet, Time now) {
    const SmiResult result = smi_arrival(packet, smi_node(), static_cast<std::uint8_t>(port));
    go(result, port, packet, now);
}

void SmpNode::by_lid(unsigned port, const SmpPacket& packet, Time now) {
    if (packet.dlid == net::kPermissiveLid || owns(port, packet.dlid)) {
        deliver(port, packet, now);
        return;
    }
    const net::PortNumber out = way_to(packet.dlid);
    if (out == 0 || out == net::kNoRoute) {
        ++drops_.lid;
        return;
    }
    send(out, packet, now);
}

void SmpNode::go(const SmiResult& result, unsigned port, const SmpPacket& packet, Time now) {
    switch (result.step) {
        case SmiStep::kDrop:
            ++drops_.route;
            return;
        case SmiStep::kDeliver:
            deliver(port, packet, now);
            return;
        case SmiStep::kSend:
            send(result.port, packet, now);
            return;
        case SmiStep::kRoute:
            if (node_.is_switch()) {
                by_lid(port, packet, now);
            } else {
                send(port, packet, now);
            }
            return;
    }
}

void SmpNode::send(unsigned port, const SmpPacket& packet, Time now) {
    if (port >= links_.size() || links_[port] == nullptr) {
        ++drops_.route;
        return;
    }
    if (node_.port(port).info.port_state < kStateInitialize) {
        ++drops_.link_down;
        return;
    }
    links_[port]->transmit(packet, now);
}

void SmpNode::deliver(unsigned port, const SmpPacket& packet, Time now) {
    const net::MadHeader& header = packet.smp.header;
    const bool manager = manager_ != nullptr && (node_.is_switch() || port == manager_port_);
    if (header.method == net::MadMethod::kTrap)
        return take_trap(port, packet, manager ? manager_ : nullptr, now);
    if (header.method == net::MadMethod::kTrapRepress) return take_repress(port, packet, now);
    if (header.is_response()) {
        if (manager) {
            manager_->on_response(packet, now);
        } else {
            ++drops_.unexpected;
        }
        return;
    }
    const bool for_manager = manager && header.attribute_id == static_cast<unsigned>(AttributeId::kSmInfo);
    std::optional<net::Smp> reply = for_manager ? std::optional(manager_->on_sm_info(packet.smp, now))
                                                : answer(node_, port, packet.smp, now);
    if (!reply) {
        ++drops_.management_key;
        return;
    }
    SmpPacket out{*reply, packet.dlid, packet.slid};
    if (!out.smp.is_directed()) {
        go({SmiStep::kRoute, 0}, port, out, now);
        return;
    }
    out.smp.route = packet.smp.route;
    out.smp.route.returning = true;
    const SmiResult result = smi_departure(out, smi_node());
    go(result, port, out, now);
}

// A trap that came by LID is repressed the way back; by a directed route none comes.
void SmpNode::take_trap(unsigned port, const SmpPacket& packet, SmpManager* manager, Time now) {
    if (manager == nullptr || packet.smp.is_directed() || !manager->on_trap(packet.smp, now)) {
        ++drops_.unexpected;
        return;
    }
    SmpPacket out{packet.smp, packet.dlid, packet.slid};
    out.smp.header.method = net::MadMethod::kTrapRepress;
    go({SmiStep::kRoute, 0}, port, out, now);
}

void SmpNode::take_repress(unsigned port, const SmpPacket& packet, Time now) {
    if (check_management_key(node_.end_port(port), packet.smp, now) == KeyCheck::kFail) {
        ++drops_.management_key;
        return;
    }
    if (repress_listener_) repress_listener_(packet.smp.header.transaction_id);
}

void SmpNode::originate(unsigned port, SmpPacket packet, Time now) {
    if (!packet.smp.is_directed()) {
        if (owns(port, packet.dlid)) {
            deliver(port, packet, now);
        } else {
            go({SmiStep::kRoute, 0}, port, packet, now);
        }
        return;
    }
    const SmiResult result = smi_departure(packet, smi_node());
    go(result, port, packet, now);
}

}  // namespace uib::management
