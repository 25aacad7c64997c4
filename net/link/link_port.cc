// Set-up, management, states and timers of a port.
#include "net/link/link_port.h"

#include <algorithm>
#include <utility>

#include "net/wire/length.h"

namespace uib::net::link {
namespace {

constexpr std::size_t kMaxArbitrationEntries = 64;

}  // namespace

LinkPort::LinkPort(const LinkConfig& config)
    : config_(config),
      state_(config.role, config.forward_in_arm),
      vl15_queue_(config.vl15_packets * blocks_of(kMaxVl15Words), kMaxVl15Words),
      vl15_buffer_(config.vl15_packets * blocks_of(kMaxVl15Words), kMaxVl15Words),
      sl_to_vl_(config.input_ports),
      overruns_(kUpdateSymbols * config.symbol_time) {
    const std::uint32_t max_words = max_packet_words(config.mtu_cap);
    for (unsigned vl = 0; vl < data_vls(config.vl_cap); ++vl)
        lanes_.push_back(
            {PacketRing(config.send_blocks, max_words), PacketRing(config.receive_blocks, max_words)});
}

void LinkPort::configure(const PortSettings& settings, Time now) {
    const std::uint8_t before = settings_.operational_vls;
    settings_ = settings;
    settings_.neighbor_mtu = std::clamp<std::uint8_t>(settings.neighbor_mtu, 1, 5);
    settings_.operational_vls =
        settings.operational_vls == 0 ? before : std::min(settings.operational_vls, config_.vl_cap);
    arbiter_.set_limit(settings.vl_high_limit);
    const unsigned fewer = operational_vls();
    for (unsigned vl = data_vls(before); vl < fewer; ++vl) {
        lanes_[vl].update_due = now;
        lanes_[vl].watchdog = now + kWatchdogSymbols * config_.symbol_time;
    }
    for (unsigned vl = fewer; vl < lanes_.size(); ++vl)
        while (!lanes_[vl].queue.empty()) drop_head(lanes_[vl], send_discards_.vl_mapping, now);
}

bool LinkPort::set_sl_to_vl(unsigned input_port, const SlToVl& row) {
    if (input_port >= sl_to_vl_.size()) return false;
    sl_to_vl_[input_port] = row;
    return true;
}

bool LinkPort::set_arbitration(const ArbitrationTables& tables) {
    if (tables.high.size() > kMaxArbitrationEntries || tables.low.size() > kMaxArbitrationEntries)
        return false;
    arbitration_ = tables;
    arbiter_.set_tables(tables);
    return true;
}

bool LinkPort::command(std::uint8_t port_state, Time now) {
    advance(now);
    return move(now, [&] { return state_.command(port_state); });
}

void LinkPort::active_trigger(Time now) {
    move(now, [&] { return state_.active_trigger(); });
}

void LinkPort::reset(Time now) {
    move(now, [&] { return state_.reset(); });
}

std::uint8_t LinkPort::take_events() {
    return std::exchange(events_, std::uint8_t{0});
}

void LinkPort::set_physical_link(bool up, Time now) {
    advance(now);
    physical_up_ = up;
    if (training_until_ != kNoDeadline) return;
    move(now, [&] { return state_.set_physical_link(up, now); });
}

void LinkPort::retrain(Time now) {
    training_until_ = now + config_.training_time;
    move(now, [&] { return state_.set_physical_link(false, now); });
}

void LinkPort::after_move(PortState before, Time now) {
    const PortState state = state_.state();
    events_ |= kStateChanged;
    if (before == PortState::kActDefer && state == PortState::kActive)
        counters_.add(PortCounter::kLinkErrorRecovery);
    if (state == PortState::kDown && before != PortState::kDown) counters_.add(PortCounter::kLinkDowned);
    const bool starts = state == PortState::kInit || state == PortState::kArm;
    const bool resumes = before == PortState::kActDefer && state == PortState::kActive;
    for (DataLane& lane : lanes_) {
        if (state == PortState::kInit || state == PortState::kDown) {
            lane.credits_out = {};
            lane.credits_in = {};
            lane.hoq_losses = 0;
            lane.stalled_until = 0;
        }
        if (starts || resumes) lane.update_due = now;
        if (state == PortState::kArm || resumes) lane.watchdog = now + kWatchdogSymbols * config_.symbol_time;
    }
    flush_queues();
}

void LinkPort::flush_queues() {
    // What was queued before LinkActDefer goes on after it.
    const bool keeps_data = state_.enables().data_send || state_.state() == PortState::kActDefer;
    const auto flush = [&](PacketRing& queue) {
        for (; !queue.empty(); queue.pop()) {
            ++send_discards_.state;
            counters_.add(PortCounter::kXmitDiscards);
        }
    };
    if (state_.state() == PortState::kDown) flush(vl15_queue_);
    if (keeps_data) return;
    for (DataLane& lane : lanes_) flush(lane.queue);
}

void LinkPort::advance(Time now) {
    count_wait(now);
    move(now, [&] { return state_.expire(now); });
    if (now >= training_until_) {
        training_until_ = kNoDeadline;
        move(now, [&] { return state_.set_physical_link(physical_up_, now); });
    }
    check_watchdogs(now);
}

void LinkPort::check_watchdogs(Time now) {
    if (state_.state() != PortState::kArm && state_.state() != PortState::kActive) return;
    for (unsigned vl = 0; vl < operational_vls(); ++vl) {
        if (now < lanes_[vl].watchdog) continue;
        events_ |= kFlowControlUpdateError;
        retrain(now);
        return;
    }
}

Time LinkPort::next_deadline() const {
    Time next = std::min(state_.deadline(), training_until_);
    if (!state_.enables().link_packets) return next;
    const bool watches = state_.state() != PortState::kInit;
    for (unsigned vl = 0; vl < update_lanes(); ++vl) {
        const DataLane& lane = lanes_[vl];
        next = std::min(next, lane.update_due);
        if (watches && vl < operational_vls()) next = std::min(next, lane.watchdog);
        if (config_.role != PortRole::kSwitch || lane.queue.empty()) continue;
        if (const Time life = lifetime(settings_.hoq_life); life != kNoDeadline)
            next = std::min(next, lane.head_since + life);
        if (const Time life = lifetime(settings_.packet_life); life != kNoDeadline)
            next = std::min(next, lane.queue.front_time() + life);
    }
    return next;
}

std::size_t LinkPort::max_frame_bytes() const {
    return std::size_t{std::max(max_packet_words(config_.mtu_cap), kMaxVl15Words)} * 4 + kVcrcBytes;
}

std::span<const std::byte> LinkPort::front(std::uint8_t vl) const {
    if (vl != kVl15 && vl >= lanes_.size()) return {};
    const PacketRing& buffer = buffer_of(vl);
    return buffer.empty() ? std::span<const std::byte>{} : buffer.front();
}

void LinkPort::pop(std::uint8_t vl) {
    (vl == kVl15 ? vl15_buffer_ : lanes_[vl].buffer).pop();
}

}  // namespace uib::net::link
