// The sending half of a port: VL mapping, queues, schedule, flow control packets (7.6, 7.9).
#include <algorithm>

#include "net/link/link_port.h"
#include "net/wire/codec.h"
#include "net/wire/crc.h"
#include "net/wire/length.h"

namespace uib::net::link {
namespace {

/// A flow control packet leaves this much before it must (7.9.4), so that an owner that comes late is in
/// time.
constexpr Time kUpdateDueSymbols = kUpdateSymbols / 4 * 3;
/// And this long after the one before while a packet waits for credits: if packets were lost, the peer's
/// credits lack until it has got FCTBS.
constexpr Time kWaitingUpdateSymbols = kUpdateSymbols / 64;

}  // namespace

std::optional<std::uint8_t> LinkPort::lane_for(const LrhFields& lrh, unsigned input_port, bool is_smp,
                                               Time now) {
    const auto discard = [&](std::uint64_t& cause) {
        ++cause;
        counters_.add(PortCounter::kXmitDiscards);
        return std::nullopt;
    };
    const PortEnables enables = state_.enables();
    if (is_smp ? !enables.smp : !enables.data_send) return discard(send_discards_.state);
    if (is_smp) {
        if (lrh.next != LinkNextHeader::kLocal || lrh.words > kMaxVl15Words || is_multicast(lrh.lrh.dlid))
            return discard(send_discards_.vl15_form);
        return kVl15;
    }
    if (is_raw(lrh.next) && settings_.filter_raw_outbound && config_.role == PortRole::kSwitch) {
        ++send_discards_.raw_filter;
        counters_.add(PortCounter::kXmitConstraintErrors);
        return std::nullopt;
    }
    if (lrh.words > max_packet_words(std::min(config_.mtu_cap, settings_.neighbor_mtu)))
        return discard(send_discards_.too_long);
    const std::uint8_t vl = sl_to_vl_[input_port][lrh.lrh.sl & 0xF];
    if (vl >= operational_vls()) return discard(send_discards_.vl_mapping);
    if (now < lanes_[vl].stalled_until) return discard(send_discards_.vl_stalled);
    return vl;
}

template <typename Write>
Enqueued LinkPort::put(std::uint8_t vl, std::uint32_t words, Time now, Write write) {
    PacketRing& queue = vl == kVl15 ? vl15_queue_ : lanes_[vl].queue;
    const std::span<std::byte> room = queue.reserve(words);
    if (room.empty()) return Enqueued::kFull;
    if (vl != kVl15 && queue.empty()) lanes_[vl].head_since = now;
    write(room);
    queue.commit(words, now);
    return Enqueued::kQueued;
}

Enqueued LinkPort::enqueue(const Packet& packet, Time now, unsigned input_port) {
    const bool is_smp = packet.kind == PacketKind::kTransport && packet.bth.dest_qp == 0;
    const std::uint32_t words = packet_bytes(packet) / 4;
    const LrhFields lrh{
        .lrh = packet.lrh, .next = next_header_of(packet), .words = static_cast<std::uint16_t>(words)};
    const auto vl = lane_for(lrh, input_port, is_smp, now);
    if (!vl) return Enqueued::kDiscarded;
    return put(*vl, words, now, [&](std::span<std::byte> room) {
        Packet sent = packet;
        sent.lrh.vl = *vl;
        if (is_smp) sent.lrh.sl = 0;
        encode(sent, room);
    });
}

Enqueued LinkPort::forward(std::span<const std::byte> packet, unsigned input_port, Time now) {
    const LrhFields lrh = parse_lrh(packet.first<kLrhBytes>());
    const auto vl = lane_for(lrh, input_port, lrh.lrh.vl == kVl15, now);
    if (!vl) return Enqueued::kDiscarded;
    return put(*vl, lrh.words, now, [&](std::span<std::byte> room) {
        std::copy_n(packet.begin(), room.size(), room.begin());
        room[0] = (room[0] & std::byte{0x0F}) | static_cast<std::byte>(*vl << 4);
        store_vcrc(vcrc(room.first(room.size() - kVcrcBytes)), room.last<kVcrcBytes>());
    });
}

Frame LinkPort::next_frame(Time now, std::span<std::byte> out) {
    advance(now);
    waiting_since_ = kNoDeadline;
    const PortEnables enables = state_.enables();
    if (!enables.smp) return {};
    if (!vl15_queue_.empty()) return send_packet(vl15_queue_, out);
    for (unsigned vl = 0; vl < update_lanes(); ++vl)
        if (wants_update(lanes_[vl], now)) return send_update(static_cast<std::uint8_t>(vl), now, out);
    if (!enables.data_send) return {};
    if (config_.role == PortRole::kSwitch)
        for (DataLane& lane : lanes_) expire_lifetimes(lane, now);
    const auto vl = choose_lane();
    if (!vl) {
        const bool waits = std::any_of(lanes_.begin(), lanes_.end(),
                                       [](const DataLane& lane) { return !lane.queue.empty(); });
        if (waits) waiting_since_ = now;
        return {};
    }
    DataLane& lane = lanes_[*vl];
    lane.credits_out.on_sent(blocks_of(lane.queue.front_words()));
    lane.head_since = now;
    lane.hoq_losses = 0;
    return send_packet(lane.queue, out);
}

unsigned LinkPort::update_lanes() const {
    // While the link starts, the number of VLs may not be set yet.
    return state_.state() == PortState::kInit ? supported_vls() : operational_vls();
}

bool LinkPort::wants_update(const DataLane& lane, Time now) const {
    if (now >= lane.update_due) return true;
    const std::uint32_t gain = lane.credits_in.unpromised(lane.buffer.free_blocks());
    if (gain == 0) return false;
    const std::uint32_t quarter = std::min(lane.buffer.capacity(), kMaxCredit) / 4;
    return gain >= quarter || lane.credits_in.left() < blocks_of(max_packet_words(config_.mtu_cap));
}

Frame LinkPort::send_update(std::uint8_t vl, Time now, std::span<std::byte> out) {
    DataLane& lane = lanes_[vl];
    const std::uint16_t fccl = lane.credits_in.limit(lane.buffer.free_blocks());
    const FlowControlPacket packet{
        .operand = state_.state() == PortState::kInit ? kFlowControlInitialize : kFlowControlNormal,
        .vl = vl,
        .fctbs = lane.credits_out.sent(),
        .fccl = fccl};
    build_link_packet(packet, out.first<kLinkPacketBytes>());
    lane.credits_in.on_promised(fccl);
    lane.update_sent = now;
    lane.update_due = now + kUpdateDueSymbols * config_.symbol_time;
    return {.start = FrameStart::kLink, .bytes = out.first<kLinkPacketBytes>()};
}

Frame LinkPort::send_packet(PacketRing& queue, std::span<std::byte> out) {
    const std::span<const std::byte> packet = queue.front();
    std::copy(packet.begin(), packet.end(), out.begin());
    counters_.add(PortCounter::kXmitPkts);
    counters_.add(PortCounter::kXmitData, queue.front_words());
    const Lid dlid = parse_lrh(packet.first<kLrhBytes>()).lrh.dlid;
    counters_.add(is_multicast(dlid) ? PortCounter::kMulticastXmitPkts : PortCounter::kUnicastXmitPkts);
    queue.pop();
    return {.start = FrameStart::kData, .bytes = out.first(packet.size())};
}

std::optional<std::uint8_t> LinkPort::choose_lane() {
    ReadyWords ready{};
    for (unsigned vl = 0; vl < operational_vls(); ++vl) {
        DataLane& lane = lanes_[vl];
        if (lane.queue.empty()) continue;
        if (lane.credits_out.covers(blocks_of(lane.queue.front_words()))) {
            ready[vl] = lane.queue.front_words();
        } else {
            lane.update_due =
                std::min(lane.update_due, lane.update_sent + kWaitingUpdateSymbols * config_.symbol_time);
        }
    }
    if (operational_vls() > 1) return arbiter_.next(ready);
    return ready[0] != 0 ? std::optional<std::uint8_t>(0) : std::nullopt;
}

void LinkPort::drop_head(DataLane& lane, std::uint64_t& cause, Time now) {
    lane.queue.pop();
    lane.head_since = now;
    ++cause;
    counters_.add(PortCounter::kXmitDiscards);
}

void LinkPort::expire_lifetimes(DataLane& lane, Time now) {
    const Time hoq = lifetime(settings_.hoq_life);
    const Time life = lifetime(settings_.packet_life);
    while (!lane.queue.empty() && now - lane.queue.front_time() >= life)
        drop_head(lane, send_discards_.packet_life, now);
    if (lane.queue.empty() || now - lane.head_since < hoq) return;
    drop_head(lane, send_discards_.hoq_life, now);
    if (settings_.vl_stall_count == 0 || ++lane.hoq_losses < settings_.vl_stall_count) return;
    // 18.2.5.4: the lane discards what it has and gets until the stall is over.
    constexpr Time kStall = 8;
    lane.hoq_losses = 0;
    lane.stalled_until = now + kStall * hoq;
    while (!lane.queue.empty()) drop_head(lane, send_discards_.vl_stalled, now);
}

void LinkPort::count_wait(Time now) {
    if (waiting_since_ == kNoDeadline) return;
    waited_ += now - waiting_since_;
    waiting_since_ = now;
    counters_.add(PortCounter::kXmitWait, waited_ / config_.symbol_time);
    waited_ %= config_.symbol_time;
}

}  // namespace uib::net::link
