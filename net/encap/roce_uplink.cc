#include "net/encap/roce_uplink.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "net/encap/port_4791.h"
#include "net/wire/gid.h"

namespace uib::net {
namespace {

/// IP (the longer one), UDP, BTH, the longest extension headers, ICRC, a tag.
constexpr std::uint32_t kOverhead = 40 + 8 + 12 + 28 + 4 + 4;
constexpr std::uint8_t kEcnMask = 3;
constexpr std::uint8_t kDefaultHopLimit = 64;
constexpr std::uint16_t kVlanMask = 0xFFF;

bool reaches(const std::vector<Gid>& gids, const Gid& to) {
    return std::find(gids.begin(), gids.end(), to) != gids.end();
}

}  // namespace

RoceUplink::RoceUplink(std::unique_ptr<FramePort> port, const std::string& interface,
                       std::optional<std::uint16_t> vlan)
    : udp_port_(hold_roce_port()),
      port_(std::move(port)),
      network_(interface),
      memberships_(interface),
      vlan_(vlan) {
    refresh_addresses();
    active_ = port_->link_up();
    mtu_ = ib_mtu_within(port_->mtu(), kOverhead);
    changes_ = 0;
}

void RoceUplink::refresh_addresses() {
    gids_.clear();
    for (const HostAddress& address : network_.addresses()) gids_.push_back(address.gid);
    ingress_.cover(network_.index(), gids_);
    changes_ |= kUplinkAddresses;
}

void RoceUplink::check_host(Time now) {
    next_check_ = now + kCheckInterval;
    if (network_.poll()) refresh_addresses();
    if (now >= next_forget_) {
        next_forget_ = now + kForgetInterval;
        network_.forget();
    }
    last_known_ = false;
    port_->refresh();
    if (const bool up = port_->link_up(); up != active_) {
        active_ = up;
        changes_ |= kUplinkState;
        // An interface that came back has forgotten its groups; one that was down only joins them again.
        if (up) join_refused_ += memberships_.join_again();
    }
    if (const std::uint32_t mtu = ib_mtu_within(port_->mtu(), kOverhead); mtu != mtu_) {
        mtu_ = mtu;
        changes_ |= kUplinkMtu;
    }
}

bool RoceUplink::receive(Time now, PacketSink& sink) {
    now_ = now;
    if (now >= next_check_) check_host(now);
    if (now >= next_retry_) retry_pending(now);
    const auto frames = port_->receive();
    for (const std::span<const std::byte> frame : frames) {
        Packet packet;
        RoceEnvelope envelope;
        DecodeError detail{};
        const RoceError error = decode_roce(frame, packet, envelope, detail);
        if (error != RoceError::kNone) {
            ++errors_[static_cast<std::size_t>(error)];
            continue;
        }
        if ((vlan_.has_value() || envelope.vlan.value_or(0) != 0) &&
            (envelope.vlan.value_or(0) & kVlanMask) != (vlan_.value_or(0) & kVlanMask)) {
            ++other_host_;
            continue;
        }
        // An interface in promiscuous mode hears what is for others.
        if (!is_multicast(envelope.destination) && !reaches(gids_, packet.grh.dgid)) {
            ++other_host_;
            continue;
        }
        if (ecn_of(packet) == Ecn::kCongested) ++congested_;
        if (listener_ != nullptr) listener_->on_received(frame, packet);
        sink.on_packet(packet);
    }
    return !frames.empty();
}

RoceEnvelope RoceUplink::envelope_for(const Packet& packet, const MacAddress& to) const {
    RoceEnvelope envelope;
    envelope.destination = to;
    envelope.source = port_->mac();
    envelope.vlan = vlan_;
    envelope.udp_source = roce_source_port(packet.grh.flow_label, packet.bth.dest_qp, packet.deth.source_qp);
    return envelope;
}

void RoceUplink::join(const Gid& group) {
    if (!memberships_.join(group)) ++join_refused_;
}

bool RoceUplink::waits_for(const Gid& to) const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [&](const Pending& pending) { return pending.to == to; });
}

// The kernel is asked once for a destination, not for each packet: questions are system calls of the lane's.
// And a packet does not overtake those that wait for the same neighbour.
bool RoceUplink::find(const Gid& to, const Packet& packet) {
    last_known_ = false;
    if (waits_for(to)) {
        hold(packet);
        return false;
    }
    if (to == unreachable_ && now_ < ask_again_) {
        ++no_route_;
        return false;
    }
    switch (network_.resolve(to, last_mac_)) {
        case HostNetwork::Resolution::kUnreachable:
            unreachable_ = to;
            ask_again_ = now_ + kCheckInterval;
            ++no_route_;
            return false;
        case HostNetwork::Resolution::kPending:
            hold(packet);
            return false;
        case HostNetwork::Resolution::kReady:
            break;
    }
    last_known_ = true;
    last_to_ = to;
    return true;
}

void RoceUplink::send(const Packet& packet) {
    if (is_ipv4(packet.grh.sgid) != is_ipv4(packet.grh.dgid)) {
        ++mixed_families_;
        return;
    }
    if ((!last_known_ || packet.grh.dgid != last_to_) && !find(packet.grh.dgid, packet)) return;
    const std::span<std::byte> frame = port_->allocate(roce_frame_bytes(packet, vlan_.has_value()));
    if (frame.empty()) return;
    const Packet out = completed(packet);
    encode_roce(out, envelope_for(out, last_mac_), frame);
    commit(frame, out);
}

Packet RoceUplink::completed(const Packet& packet) {
    Packet out = packet;
    // A17.9: what may be marked on congestion says so; notifications themselves are not.
    const Ecn ecn = out.bth.opcode == kCnpOpcode ? Ecn::kNotCapable : Ecn::kCapable0;
    out.grh.traffic_class =
        static_cast<std::uint8_t>((out.grh.traffic_class & ~kEcnMask) | static_cast<unsigned>(ecn));
    if (out.grh.hop_limit == 0) out.grh.hop_limit = kDefaultHopLimit;
    return out;
}

void RoceUplink::commit(std::span<const std::byte> frame, const Packet& packet) {
    if (listener_ != nullptr) listener_->on_sent(frame, packet);
    port_->commit();
}

void RoceUplink::hold(const Packet& packet) {
    if (pending_.size() >= kPendingMax) {
        ++unresolved_;
        return;
    }
    Pending pending;
    pending.to = packet.grh.dgid;
    pending.expires = now_ + kPendingTime;
    pending.frame.resize(roce_frame_bytes(packet, vlan_.has_value()));
    pending.packet = completed(packet);
    encode_roce(pending.packet, envelope_for(pending.packet, {}), pending.frame);
    pending.packet.payload = {};
    pending_.push_back(std::move(pending));
    next_retry_ = std::min(next_retry_, now_ + kPendingRetry);
}

void RoceUplink::retry_pending(Time now) {
    network_.poll();
    std::deque<Pending> waiting;
    waiting.swap(pending_);
    std::map<Gid, std::pair<HostNetwork::Resolution, MacAddress>> answers;
    for (Pending& pending : waiting) {
        auto [answer, asked] = answers.try_emplace(pending.to);
        if (asked) answer->second.first = network_.resolve(pending.to, answer->second.second);
        const auto& [resolution, mac] = answer->second;
        if (resolution == HostNetwork::Resolution::kPending && now < pending.expires) {
            pending_.push_back(std::move(pending));
            continue;
        }
        if (resolution != HostNetwork::Resolution::kReady) {
            ++unresolved_;
            continue;
        }
        const std::span<std::byte> frame = port_->allocate(pending.frame.size());
        if (frame.empty()) continue;
        std::copy(pending.frame.begin(), pending.frame.end(), frame.begin());
        std::memcpy(frame.data(), mac.data(), mac.size());
        commit(frame, pending.packet);
    }
    next_retry_ = pending_.empty() ? kNoDeadline : now + kPendingRetry;
}

void RoceUplink::end_turn() {
    port_->flush();
    port_->release();
}

Time RoceUplink::next_deadline() const {
    return port_->unsent() ? 0 : next_retry_;
}

std::vector<int> RoceUplink::wake_descriptors() const {
    std::vector<int> out{network_.descriptor()};
    if (port_->wake_descriptor() >= 0) out.push_back(port_->wake_descriptor());
    return out;
}

void RoceUplink::watch(bool asleep) {
    port_->watch(asleep);
    if (!asleep) next_check_ = 0;  // the kernel's news may be what woke us
}

std::vector<Uplink::Counter> RoceUplink::counters() {
    const FramePortCounters& port = port_->counters();
    std::vector<Counter> out;
    for (const FramePortCounterName& counter : kFramePortCounterNames)
        out.emplace_back(counter.name, port.*counter.member);
    const std::vector<Counter> own = {
        {"tx_no_route", no_route_},
        {"tx_unresolved", unresolved_},
        {"tx_mixed_families", mixed_families_},
        {"join_refused", join_refused_},
        {"rx_other_host", other_host_},
        {"rx_congested", congested_},
    };
    out.insert(out.end(), own.begin(), own.end());
    for (std::size_t i = 1; i < errors_.size(); ++i)
        out.emplace_back(std::string("rx_") + name_of(static_cast<RoceError>(i)), errors_[i]);
    return out;
}

}  // namespace uib::net
