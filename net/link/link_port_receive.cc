// The receiving half of a port: packet receiver, checks, buffers, flow control (7.3 to 7.5, 7.9, 7.12).
#include <algorithm>

#include "net/link/link_port.h"
#include "net/wire/length.h"

namespace uib::net::link {

void LinkPort::on_frame(const Frame& frame, Time now) {
    advance(now);
    if (!state_.enables().link_packets) {  // LinkDown, LinkActDefer
        ++receive_discards_.state;
        return;
    }
    switch (receiver_.on(frame)) {
        case Received::kNothing:
            return;
        case Received::kDataPacket:
            return on_data_packet(frame.bytes, now);
        case Received::kLinkPacket:
            return on_link_packet(frame.bytes, now);
        case Received::kBadPacket:
        case Received::kBadPacketDiscard:
            ++receive_discards_.bad_packets;
            counters_.add(PortCounter::kRcvErrors);
            return watch_integrity(true, now);
        case Received::kMarkedBadPacket:
            ++receive_discards_.marked_bad;
            counters_.add(PortCounter::kRcvRemotePhysicalErrors);
            return watch_integrity(false, now);
    }
}

void LinkPort::watch_integrity(bool local_physical_error, Time now) {
    if (!integrity_.on_packet(local_physical_error, settings_.local_phy_errors)) return;
    counters_.add(PortCounter::kLocalLinkIntegrityErrors);
    events_ |= kLocalLinkIntegrityError;
    retrain(now);
}

void LinkPort::on_data_packet(std::span<const std::byte> bytes, Time now) {
    const bool on_vl15 = !bytes.empty() && std::to_integer<unsigned>(bytes[0]) >> 4 == kVl15;
    if (!on_vl15 && !state_.enables().data_receive) {
        ++receive_discards_.state;
        return;
    }
    counters_.add(PortCounter::kRcvPkts);
    counters_.add(PortCounter::kRcvData, bytes.size() / 4);
    LrhFields lrh;
    const PacketError error = check_data_packet({.role = config_.role,
                                                 .mtu_cap = config_.mtu_cap,
                                                 .data_vls = operational_vls(),
                                                 .lid = settings_.lid,
                                                 .lmc = settings_.lmc},
                                                bytes, lrh);
    const bool passed_vcrc = error != PacketError::kVcrc && bytes.size() >= kLrhBytes + kVcrcBytes;
    if (passed_vcrc && !on_vl15) {
        if (config_.role == PortRole::kSwitch) events_ |= kActiveTriggered;
        active_trigger(now);
    }
    if (error == PacketError::kNone) {
        deliver(bytes, lrh, now);
    } else {
        count_packet_error(error);
        // The sender has counted it among its blocks (C7-62).
        if (passed_vcrc && lrh.lrh.vl < lanes_.size())
            lanes_[lrh.lrh.vl].credits_in.on_received(blocks_of(lrh.words));
    }
    watch_integrity(is_local_physical(error), now);
}

void LinkPort::count_packet_error(PacketError error) {
    ++receive_discards_.checks[static_cast<std::size_t>(error)];
    if (error != PacketError::kDlid) {
        counters_.add(PortCounter::kRcvErrors);
    } else if (config_.role == PortRole::kSwitch) {
        counters_.add(PortCounter::kRcvSwitchRelayErrors);
    }
}

void LinkPort::deliver(std::span<const std::byte> bytes, const LrhFields& lrh, Time now) {
    const bool on_vl15 = lrh.lrh.vl == kVl15;
    PacketRing& buffer = on_vl15 ? vl15_buffer_ : lanes_[lrh.lrh.vl].buffer;
    const std::span<std::byte> room = buffer.reserve(lrh.words);
    if (room.empty()) {
        if (!on_vl15) return on_overrun(now);
        counters_.add(PortCounter::kVl15Dropped);
        return;
    }
    if (!on_vl15) lanes_[lrh.lrh.vl].credits_in.on_received(blocks_of(lrh.words));
    if (is_raw(lrh.next) && settings_.filter_raw_inbound && config_.role == PortRole::kSwitch) {
        ++receive_discards_.raw_filter;
        counters_.add(PortCounter::kRcvConstraintErrors);
        return;
    }
    std::copy(bytes.begin(), bytes.end(), room.begin());
    buffer.commit(lrh.words, now);
    counters_.add(is_multicast(lrh.lrh.dlid) ? PortCounter::kMulticastRcvPkts : PortCounter::kUnicastRcvPkts);
}

void LinkPort::on_overrun(Time now) {
    ++receive_discards_.buffer_overrun;
    counters_.add(PortCounter::kRcvErrors);
    if (!overruns_.on_overrun(now, settings_.overrun_errors)) return;
    counters_.add(PortCounter::kExcessiveBufferOverrunErrors);
    events_ |= kExcessiveBufferOverrun;
    retrain(now);
}

void LinkPort::on_link_packet(std::span<const std::byte> bytes, Time now) {
    FlowControlPacket packet;
    const LinkPacketError error = parse_link_packet(bytes, packet);
    if (error != LinkPacketError::kNone) {
        ++receive_discards_.link_checks[static_cast<std::size_t>(error)];
        counters_.add(PortCounter::kRcvErrors);
    } else if (packet.vl >= lanes_.size() && state_.state() == PortState::kActive) {
        ++receive_discards_.link_vl;
        counters_.add(PortCounter::kRcvErrors);
    } else {
        on_flow_control(packet, now);
    }
    watch_integrity(error == LinkPacketError::kLpcrc, now);
}

void LinkPort::on_flow_control(const FlowControlPacket& packet, Time now) {
    move(now, [&] { return state_.on_flow_control(packet.operand); });
    if (packet.vl >= lanes_.size()) return;
    DataLane& lane = lanes_[packet.vl];
    lane.watchdog = now + kWatchdogSymbols * config_.symbol_time;
    lane.credits_out.on_limit(packet.fccl);
    // ABR stays zero in LinkInitialize (C7-60).
    if (state_.state() != PortState::kInit) lane.credits_in.on_sender_count(packet.fctbs);
}

}  // namespace uib::net::link
