#include "engine/management/trunk_joint.h"

#include <algorithm>
#include <array>

#include "net/wire/codec.h"
#include "net/wire/headers.h"
#include "net/wire/mad.h"

namespace uib::management {

namespace {

constexpr std::uint8_t kUdSendOnly = 0x64;
constexpr std::uint8_t kLinkVl15 = 15;
constexpr std::size_t kArbitrationHalf = 32;
/// What a turn of the lane may emit at most into one queue: below it nobody sends (Adapter's burst is
/// smaller).
constexpr std::uint32_t kMaxRoom = 64;

net::link::PortSettings settings_of(const PortInfo& info, const PortInfo& own, const SwitchInfo& of_switch) {
    net::link::PortSettings settings;
    settings.lid = static_cast<net::Lid>(own.lid);
    settings.neighbor_mtu = static_cast<std::uint8_t>(info.neighbor_mtu);
    settings.operational_vls = static_cast<std::uint8_t>(info.operational_vls);
    settings.vl_high_limit = static_cast<std::uint8_t>(info.vl_high_limit);
    settings.local_phy_errors = static_cast<std::uint8_t>(info.local_phy_errors);
    settings.overrun_errors = static_cast<std::uint8_t>(info.overrun_errors);
    settings.hoq_life = static_cast<std::uint8_t>(info.hoq_life);
    settings.packet_life = static_cast<std::uint8_t>(of_switch.life_time);
    settings.vl_stall_count = static_cast<std::uint8_t>(info.vl_stall_count);
    settings.filter_raw_inbound = info.filter_raw_inbound != 0;
    settings.filter_raw_outbound = info.filter_raw_outbound != 0;
    return settings;
}

}  // namespace

TrunkJoint::TrunkJoint(std::unique_ptr<net::IbTrunk> trunk, EngineSubnet& subnet, net::InternalSwitch& fabric,
                       PortIndex first)
    : trunk_(std::move(trunk)), subnet_(subnet), fabric_(fabric), first_(first) {
    for (std::size_t slot = 0; slot < trunk_->slots(); ++slot) {
        slots_.push_back({std::make_unique<Link>(*this, slot)});
        const PortIndex port = first_ + static_cast<PortIndex>(slot);
        subnet_.connect(port, slots_.back().link.get());
        NodePort& node_port = subnet_.switch_node().node().port(port + 1);
        node_port.info.mtu_cap = std::max<std::uint8_t>(trunk_->mtu_code(), 1);
        subnet_.switch_node().node().set_vl_cap(port + 1, trunk_->link(slot).config().vl_cap);
    }
    // The switch's own port holds the LID of all.
    subnet_.on_switch_change([this](unsigned port) {
        for (std::size_t slot = 0; slot < slots_.size(); ++slot)
            if (port == 0 || port == first_ + slot + 1) slots_[slot].stale = true;
    });
}

bool TrunkJoint::receive(Time now, const Deliver& deliver) {
    bool any = trunk_->receive(now);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        follow(slot, now);
        take_trigger(slot, now);
    }
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (!slots_[slot].up) continue;
        take_smps(slot, now);
        take_data(slot, now, deliver);
    }
    any |= !turn_.empty();
    return any;
}

// The link's state and the switch port's go together: a link that is down or has started anew makes the port
// go down and up, and what management sets at the port is commanded until the link has followed (it may have
// to hear its peer first).
void TrunkJoint::follow(std::size_t slot, Time now) {
    net::link::LinkPort& link = trunk_->link(slot);
    const PortIndex port = first_ + static_cast<PortIndex>(slot);
    const NodePort& node_port = subnet_.switch_node().node().port(port + 1);
    using State = net::link::PortState;
    const bool up = trunk_->physically_up(slot) && link.state() != State::kDown;
    const bool anew =
        up && slots_[slot].up && link.state() == State::kInit && node_port.info.port_state == kStateActive;
    if (slots_[slot].up && (!up || anew)) {
        slots_[slot].up = false;
        subnet_.set_external_link(port, false, now);
    }
    if (up && !slots_[slot].up) {
        slots_[slot].up = true;
        subnet_.set_external_link(port, true, now);
    }
    if (!up) return;
    if (slots_[slot].stale) take_settings(slot, now);
    const Number wanted = node_port.info.port_state;
    if ((wanted == kStateArmed || wanted == kStateActive) && link.state() == State::kInit)
        link.command(static_cast<std::uint8_t>(kStateArmed), now);
    if (wanted == kStateActive && link.state() == State::kArm)
        link.command(static_cast<std::uint8_t>(kStateActive), now);
}

// Before the packet goes on, so that no port that is Armed loses it (C7-1.a1).
void TrunkJoint::take_trigger(std::size_t slot, Time now) {
    if ((trunk_->link(slot).take_events() & net::link::kActiveTriggered) == 0) return;
    subnet_.active_trigger();
    for (std::size_t other = 0; other < slots_.size(); ++other) trunk_->link(other).active_trigger(now);
}

void TrunkJoint::take_settings(std::size_t slot, Time now) {
    slots_[slot].stale = false;
    net::link::LinkPort& link = trunk_->link(slot);
    Node& node = subnet_.switch_node().node();
    const unsigned port = static_cast<unsigned>(first_ + slot) + 1;
    link.configure(settings_of(node.port(port).info, node.port(0).info, node.switch_info), now);
    for (unsigned in = 0; in < std::min(link.config().input_ports, node.ports() + 1); ++in)
        link.set_sl_to_vl(in, node.sl_to_vl(in, port));
    net::link::ArbitrationTables tables;
    const auto append = [](const VlArbitrationBlock& block, auto& list) {
        for (std::size_t i = 0; i < kArbitrationHalf; ++i)
            if (block[i].weight != 0) list.push_back({block[i].vl, block[i].weight});
    };
    append(node.port(port).vl_arbitration[0], tables.low);
    append(node.port(port).vl_arbitration[1], tables.low);
    append(node.port(port).vl_arbitration[2], tables.high);
    append(node.port(port).vl_arbitration[3], tables.high);
    if (!tables.low.empty() || !tables.high.empty()) link.set_arbitration(tables);
}

void TrunkJoint::take_smps(std::size_t slot, Time now) {
    net::link::LinkPort& link = trunk_->link(slot);
    for (std::span<const std::byte> bytes = link.front(kLinkVl15); !bytes.empty();
         bytes = link.front(kLinkVl15)) {
        net::Packet packet;
        SmpPacket smp;
        const bool good =
            net::decode(bytes, packet, {.icrc = true, .vcrc = false}) == net::DecodeError::kNone &&
            net::parse_smp(packet.payload, smp.smp) == net::MadError::kNone;
        smp.slid = packet.lrh.slid;
        smp.dlid = packet.lrh.dlid;
        link.pop(kLinkVl15);
        if (!good) {
            ++counters_.bad_smp;
            continue;
        }
        subnet_.receive(first_ + static_cast<PortIndex>(slot), smp, now);
    }
}

void TrunkJoint::take_data(std::size_t slot, Time now, const Deliver& deliver) {
    net::link::LinkPort& link = trunk_->link(slot);
    const auto lanes = static_cast<std::uint8_t>(link.operational_vls());
    for (std::uint8_t vl = 0; vl < lanes; ++vl) {
        for (std::span<const std::byte> bytes = link.front(vl); !bytes.empty(); bytes = link.front(vl)) {
            if (const PortIndex to = way_on(slot, bytes); to != net::InternalSwitch::kNoPort) {
                if (pass_on(to, slot, bytes, now) == net::link::Enqueued::kFull) break;
                link.pop(vl);
                continue;
            }
            // Copied out, so that its buffer is credit again while the packet is still being looked at.
            std::vector<std::byte> copy;
            if (!spare_.empty()) {
                copy = std::move(spare_.back());
                spare_.pop_back();
            }
            copy.assign(bytes.begin(), bytes.end());
            link.pop(vl);
            turn_.push_back(std::move(copy));
            forward(slot, turn_.back(), now, deliver);
        }
    }
}

void TrunkJoint::forward(std::size_t slot, std::span<const std::byte> bytes, Time now,
                         const Deliver& deliver) {
    net::Packet packet;
    const net::DecodeError error = net::decode(bytes, packet, {.icrc = true, .vcrc = false});
    if (error != net::DecodeError::kNone) {
        ++(error == net::DecodeError::kIcrc ? counters_.icrc_errors : counters_.malformed);
        return;
    }
    if (packet.lrh.dlid >= net::kMulticastLidFirst) {
        forward_multicast(slot, bytes, packet, now, deliver);
        return;
    }
    const PortIndex port = way_of(packet.lrh.dlid);
    if (port == net::InternalSwitch::kNoPort) {
        drop(slot, counters_.no_route);
        fabric_.count_dropped(packet);
        return;
    }
    if (port == first_ + slot) {
        drop(slot, counters_.way_back);
        return;
    }
    deliver(port, packet);
}

TrunkJoint::PortIndex TrunkJoint::way_of(net::Lid dlid) {
    const PortIndex port = fabric_.route(dlid);
    return port == net::InternalSwitch::kNoPort ? subnet_.triggered_way(dlid) : port;
}

/// The port of a link to another engine, if the packet goes to one. A switch looks at the LRH only: the rest
/// is between the ends.
TrunkJoint::PortIndex TrunkJoint::way_on(std::size_t slot, std::span<const std::byte> bytes) {
    const net::Lid dlid = net::parse_lrh(bytes.first<net::kLrhBytes>()).lrh.dlid;
    if (dlid >= net::kMulticastLidFirst) return net::InternalSwitch::kNoPort;
    const PortIndex port = way_of(dlid);
    const bool on = port != net::InternalSwitch::kNoPort && port != first_ + slot && fabric_.external(port);
    return on ? port : net::InternalSwitch::kNoPort;
}

void TrunkJoint::forward_multicast(std::size_t slot, std::span<const std::byte> bytes,
                                   const net::Packet& packet, Time now, const Deliver& deliver) {
    bool anyone = false;
    for (const PortIndex port : fabric_.members(packet.lrh.dlid)) {
        if (port == first_ + slot) continue;
        anyone = true;
        if (fabric_.external(port)) {
            // Where one has no room, the others do not wait.
            if (pass_on(port, slot, bytes, now) == net::link::Enqueued::kFull) ++counters_.discarded;
        } else {
            net::Packet own = packet;
            deliver(port, own);
        }
    }
    if (!anyone) drop(slot, counters_.no_route);
}

// An error of switch routing (7.12.1).
void TrunkJoint::drop(std::size_t slot, std::uint64_t& cause) {
    ++cause;
    trunk_->link(slot).counters().add(net::link::PortCounter::kRcvSwitchRelayErrors);
}

/// The row of the SL-to-VL table for packets that came into the switch through `port`.
unsigned TrunkJoint::input_of(PortIndex port, const net::link::LinkPort& link) const {
    const unsigned number = port == net::InternalSwitch::kNoPort ? 0 : port + 1;
    return number < link.config().input_ports ? number : 0;
}

/// From link `from` of this trunk onto the link of `to`, of whichever trunk.
net::link::Enqueued TrunkJoint::pass_on(PortIndex to, std::size_t from, std::span<const std::byte> bytes,
                                        Time now) {
    const PortIndex input = first_ + static_cast<PortIndex>(from);
    if (owns(to)) return take_over(to, input, bytes, now);
    const auto owner = std::find_if(others_.begin(), others_.end(),
                                    [&](const TrunkJoint* other) { return other->owns(to); });
    if (owner != others_.end()) return (*owner)->take_over(to, input, bytes, now);
    drop(from, counters_.no_route);
    return net::link::Enqueued::kDiscarded;
}

net::link::Enqueued TrunkJoint::take_over(PortIndex to, PortIndex from, std::span<const std::byte> bytes,
                                          Time now) {
    net::link::LinkPort& link = trunk_->link(to - first_);
    // Behind those of this engine that wait, or they would wait for ever.
    if (!kept_.empty()) return net::link::Enqueued::kFull;
    const net::link::Enqueued result = link.forward(bytes, input_of(from, link), now);
    if (result == net::link::Enqueued::kDiscarded) ++counters_.discarded;
    return result;
}

net::link::Enqueued TrunkJoint::enqueue(PortIndex to, const net::Packet& packet, Time now) {
    net::link::LinkPort& link = trunk_->link(to - first_);
    return link.enqueue(packet, now, input_of(fabric_.route(packet.lrh.slid), link));
}

void TrunkJoint::send(PortIndex port, const net::Packet& packet, Time now) {
    const net::link::Enqueued result =
        kept_.empty() ? enqueue(port, packet, now) : net::link::Enqueued::kFull;
    if (result == net::link::Enqueued::kDiscarded) ++counters_.discarded;
    if (result != net::link::Enqueued::kFull) return;
    ++counters_.waited;
    kept_.push_back({port, packet, {packet.payload.begin(), packet.payload.end()}});
    kept_.back().packet.payload = kept_.back().payload;
}

void TrunkJoint::retry_kept(Time now) {
    while (!kept_.empty()) {
        Kept& first = kept_.front();
        first.packet.payload = first.payload;
        const net::link::Enqueued result = enqueue(first.port, first.packet, now);
        if (result == net::link::Enqueued::kFull) return;
        if (result == net::link::Enqueued::kDiscarded) ++counters_.discarded;
        kept_.pop_front();
    }
}

void TrunkJoint::send_smp(std::size_t slot, const SmpPacket& smp, Time now) {
    std::array<std::byte, net::kMadBytes> mad{};
    net::build_smp(smp.smp, mad);
    net::Packet packet;
    packet.lrh.dlid = smp.dlid;
    packet.lrh.slid = smp.slid;
    packet.bth.opcode = kUdSendOnly;
    packet.bth.dest_qp = 0;
    packet.payload = mad;
    if (trunk_->link(slot).enqueue(packet, now) != net::link::Enqueued::kQueued) ++counters_.discarded;
}

std::uint32_t TrunkJoint::room() const {
    return kept_.empty() ? kMaxRoom : 0;
}

void TrunkJoint::end_turn(Time now) {
    retry_kept(now);
    trunk_->send(now);
    retry_kept(now);
    trunk_->end_turn();
    for (std::vector<std::byte>& bytes : turn_) spare_.push_back(std::move(bytes));
    turn_.clear();
}

}  // namespace uib::management
