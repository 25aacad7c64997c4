// Where packets go: onto the internal wire or out of the engine, and from there to queue pairs, by way of
// what listens at the ports and disturbs them.
#include <algorithm>
#include <cerrno>

#include "engine/verbs/adapter.h"
#include "engine/verbs/qp.h"
#include "net/wire/codec.h"
#include "net/wire/gid.h"
#include "net/wire/opcode_table.h"

namespace uib::verbs {

namespace {

/// Only datagrams tell on the wire whose they are; an uplink's choice of a UDP port and a capture want to
/// know it of all packets. So the place in the DETH is filled where there is none, too, unless a fault rule
/// had held the packet: it knows already, and the sender is another now.
void name_source(const Qp* sender, net::Packet& packet) {
    if (sender == nullptr || packet.deth.source_qp != 0) return;
    if ((net::kOpcodes[packet.bth.opcode].headers & net::kDeth) == 0)
        packet.deth.source_qp = sender->number();
}

}  // namespace

std::uint32_t Adapter::send_room() const {
    auto room = static_cast<std::uint32_t>(kQueueDepth - std::min<std::size_t>(wire_.size(), kQueueDepth));
    if (running_ != nullptr && running_->device().uplink() != nullptr)
        room = std::min(room, running_->device().uplink()->room());
    // Ethernet devices do not use the links.
    if (running_ == nullptr || !running_->device().ethernet())
        for (const auto& joint : joints_) room = std::min(room, joint->room());
    return room;
}

void Adapter::send(const net::Packet& packet) {
    ++progress_;
    put_on_wire(running_->device(), packet);
}

void Adapter::put_on_wire(Device& device, const net::Packet& packet) {
    if (taps_.faults == nullptr) {
        leave(device, packet);
        return;
    }
    net::Packet own = packet;
    name_source(running_, own);
    taps_.faults->pass(now_, device.port(), true, own,
                       [&](const net::Packet& passed) { leave(device, passed); });
}

// Out of the port: packets to ports of this engine stay on the internal wire, the rest takes the uplink.
void Adapter::leave(Device& device, const net::Packet& packet) {
    if (!device.ethernet() && !device.active()) {  // 7.2: a link that is not active carries no data
        ++fabric_.counters(device.port()).xmit_discards;
        return;
    }
    wire_.push_back(packet);
    net::Packet& out = wire_.back();
    ethernet_paths_.resolve(device.ethernet(), out);
    out.subnet = device.subnet_number();
    if (has_general(device) && out.lrh.dlid >= net::kMulticastLidFirst) out.lrh.dlid = mlid_on_wire(out);
    if (router_ != nullptr && out.has_grh) address_router(device, out);
    fabric_.count_sent(device.port(), out);
    const bool multicast = out.lrh.dlid >= net::kMulticastLidFirst;
    const bool outside = device.uplink() != nullptr && (multicast || out.lrh.dlid == 0);
    if (outside || taps_.capture != nullptr) name_source(running_, out);
    // Of what goes outside the uplink tells, with the frame, once there is one.
    if (taps_.capture != nullptr && !outside)
        taps_.record(device.port(), net::CaptureDirection::kOutbound, now_, out, out.deth.source_qp);
    if (!outside) return;
    ++statistics_.packets;
    if (device.active()) device.uplink()->send(out);
    if (!multicast) wire_.pop_back();
}

bool Adapter::deliver() {
    release_held();
    if (wire_.empty()) return false;
    statistics_.packets += wire_.size();
    for (const net::Packet& packet : wire_) {
        if (packet.kind == net::PacketKind::kEthernet)
            deliver_frame(packet);
        else if (packet.lrh.dlid >= net::kMulticastLidFirst)
            deliver_multicast(packet);
        else
            deliver_unicast(packet);
    }
    wire_.clear();
    return true;
}

void Adapter::deliver_frame(const net::Packet& packet) {
    for (const std::uint32_t index : ethernet_switch_.route(packet.payload)) {
        Device& device = *devices_[index];
        // What comes back to its sender's port unwanted was never on its wire.
        if (device.lid() == packet.lrh.slid) {
            device.flows().match(packet.payload, receivers_);
            if (receivers_.empty()) continue;
        }
        enter(device, packet);
    }
}

void Adapter::take_frame(Device& device, const net::Packet& packet) {
    device.flows().match(packet.payload, receivers_);
    fabric_.count_received(device.port(), packet);
    if (receivers_.empty()) ++fabric_.counters(device.port()).unsteered_frames;
    for (Qp* qp : receivers_) deliver_to(*qp, packet);
}

void Adapter::deliver_unicast(const net::Packet& packet) {
    net::InternalSwitch& fabric = *subnets_[packet.subnet].fabric;
    auto port = fabric.route(packet.lrh.dlid);
    if (const auto& nodes = subnets_[packet.subnet].nodes;
        port == net::InternalSwitch::kNoPort && nodes != nullptr)
        port = nodes->triggered_way(packet.lrh.dlid);
    if (port == net::InternalSwitch::kNoPort) {
        fabric.count_dropped(packet);
        const auto source = fabric.route(packet.lrh.slid);
        if (&fabric != &fabric_ && source < devices_.size()) ++fabric_.counters(source).xmit_discards;
        return;
    }
    if (port == router_port_) {
        pass_router(packet);
        return;
    }
    if (port >= devices_.size()) {
        send_through(port, packet);
        return;
    }
    enter(*devices_[port], packet);
}

// Into a port, from inside.
void Adapter::enter(Device& device, const net::Packet& packet) {
    if (taps_.capture != nullptr) taps_.record(device.port(), net::CaptureDirection::kInbound, now_, packet);
    pass_in(device, packet);
}

// Into a port, captured already.
void Adapter::pass_in(Device& device, const net::Packet& packet) {
    if (taps_.faults == nullptr) {
        arrive(device, packet);
        return;
    }
    taps_.faults->pass(now_, device.port(), false, packet,
                       [&](const net::Packet& passed) { arrive(device, passed); });
}

void Adapter::arrive(Device& device, const net::Packet& packet) {
    if (packet.damaged_bit != 0 && taps_.damaged(packet)) {
        ++fabric_.counters(device.port()).rcv_errors;
        return;
    }
    if (packet.kind == net::PacketKind::kEthernet) {
        take_frame(device, packet);
        return;
    }
    // A packet to a group comes to every port of it, in whatever state that is (7.2).
    if (!device.ethernet() && !device.active()) {
        if (!subnets_[device.subnet_number()].nodes->triggers_end_port(device.port())) {
            ++fabric_.counters(device.port()).inactive_drops;
            return;
        }
    }
    fabric_.count_received(device.port(), packet);
    if (packet.bth.dest_qp == net::kMulticastQp && packet.has_grh && net::is_multicast(packet.grh.dgid)) {
        const net::Lid mlid = has_general(device) ? MulticastGroups::kAnyLid : packet.lrh.dlid;
        multicast_.find_members(packet.grh.dgid, mlid, device, receivers_);
        if (receivers_.empty()) ++fabric_.counters(device.port()).multicast_drops;
        for (Qp* qp : receivers_) deliver_to(*qp, packet);
        return;
    }
    if (packet.bth.dest_qp == management::kGeneralServicesQp && has_general(device)) {
        take_general(device, packet);
        return;
    }
    Qp* qp = qp_numbered(packet.bth.dest_qp);
    if (qp == nullptr || &qp->device() != &device) {
        ++fabric_.counters(device.port()).unknown_qp_drops;
        return;
    }
    deliver_to(*qp, packet);
}

void Adapter::deliver_multicast(const net::Packet& packet) {
    // IBA 9.6.1.1: a multicast packet needs a GRH, a multicast DGID, and at least one QP attached.
    const bool valid =
        packet.has_grh && net::is_multicast(packet.grh.dgid) && packet.bth.dest_qp == net::kMulticastQp;
    const bool ethernet = packet.lrh.slid >= EthernetPaths::kFirstLid;
    const bool by_gid = general_ != nullptr && !ethernet && packet.subnet == 0;
    const net::Lid mlid = by_gid ? MulticastGroups::kAnyLid : packet.lrh.dlid;
    const bool members = valid && multicast_.has_members(packet.grh.dgid, mlid);
    bool onward = false;
    // Also to the QP that sent it, if it is attached (IBA 7.10.2, o7-13.1.1 rule 13). Neither link layer
    // reaches the other.
    for (const auto port : fabric_.members(packet.lrh.dlid)) {
        if (port >= devices_.size()) {
            // Nothing without its GRH (o7-13.1.1/10): no port has been told how to treat it.
            if (ethernet || packet.subnet != 0 || !valid) continue;
            send_through(port, packet);
            onward = true;
            continue;
        }
        Device& device = *devices_[port];
        if (device.ethernet() != ethernet || device.subnet_number() != packet.subnet) continue;
        if (members) {
            enter(device, packet);
        } else {
            fabric_.count_received(port, packet);
        }
    }
    if (members || onward) return;
    const auto source = subnets_[packet.subnet].fabric->route(packet.lrh.slid);
    if (source != net::InternalSwitch::kNoPort) ++fabric_.counters(source).multicast_drops;
}

void Adapter::deliver_to(Qp& qp, const net::Packet& packet) {
    transport::QueuePair& machine = qp.machine();
    const std::uint64_t bad_pkey = machine.counters().dropped_pkey;
    const std::uint64_t bad_qkey = machine.counters().dropped_qkey;
    machine.on_packet(packet);
    net::PortCounters& port = fabric_.counters(qp.device().port());
    port.bad_pkey += machine.counters().dropped_pkey - bad_pkey;
    port.qkey_violations += machine.counters().dropped_qkey - bad_qkey;
    if (machine.wants_run()) activate(qp);
    after_event(qp);
}

// What fault rules hold, once its time has come.
void Adapter::release_held() {
    if (taps_.faults == nullptr) return;
    taps_.faults->release(now_, [&](std::uint32_t port, bool outbound, const net::Packet& packet) {
        if (outbound) {
            leave(*devices_[port], packet);
        } else {
            arrive(*devices_[port], packet);
        }
    });
    if (taps_.faults->empty()) drop_faults_ = true;
}

}  // namespace uib::verbs
