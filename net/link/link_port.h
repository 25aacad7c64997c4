// One end of a point-to-point InfiniBand link (IBA chapter 7).
//
// The owner drives it with its own clock: on_frame() for what the wire brings, next_frame() again and again
// until it gives nothing, after whatever it did to the port and when next_deadline() has come. The port makes
// link packets, schedules (VL15, flow control, then data VLs by arbitration) and holds packets while their VL
// has no credits.
//
//     enqueue(), forward() -> [send queue per VL] -> next_frame() ~wire~ on_frame() -> [buffer per VL]
//     -> front(), pop()
//
// Credits are the buffers' free blocks: pop() makes them, a flow control packet takes them to the peer, at
// the latest three quarters of the 65536 symbol times after the one before, at once if the peer may be
// waiting. A port that waits for credits itself sends its own more often, so that what was lost is made good
// soon.
//
// Whatever a packet is discarded for has a counter: the port's of chapter 16, and one for each check.
//
// An error that asks for it (7.12.2) makes the link retrain: for LinkConfig::training_time it is as if the
// physical link were down. The peer is not told; what it sends meanwhile is lost and counts as such.
//
// One thread. Nothing is allocated after construction but by set_arbitration(). Times given never fall.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "net/link/credits.h"
#include "net/link/discards.h"
#include "net/link/error_watch.h"
#include "net/link/packet_check.h"
#include "net/link/packet_receiver.h"
#include "net/link/packet_ring.h"
#include "net/link/port_counters.h"
#include "net/link/port_state.h"
#include "net/link/vl_arbiter.h"

namespace uib::net::link {

/// 7.9.4: at most this many symbol times between two flow control packets of a VL.
inline constexpr Time kUpdateSymbols = 65536;
/// 7.12.1: and the peer's are missed after this many.
inline constexpr Time kWatchdogSymbols = 400'000;

enum class Enqueued : std::uint8_t {
    kQueued,
    kFull,       ///< not taken: try again later
    kDiscarded,  ///< may not be sent; counted
};

/// What has happened at a port; bits. The three errors go into traps 129 to 131.
enum PortEvent : std::uint8_t {
    kStateChanged = 1 << 0,
    kLocalLinkIntegrityError = 1 << 1,
    kExcessiveBufferOverrun = 1 << 2,
    kFlowControlUpdateError = 1 << 3,
    kActiveTriggered = 1 << 4,  ///< a switch passes it to its other ports: active_trigger()
};

class LinkPort {
  public:
    explicit LinkPort(const LinkConfig& config);

    // Management.
    /// Settings outside their range are taken as PortInfo says: see PortSettings.
    void configure(const PortSettings& settings, Time now);
    [[nodiscard]] const PortSettings& settings() const { return settings_; }
    [[nodiscard]] const LinkConfig& config() const { return config_; }
    /// False if there is no such input port.
    bool set_sl_to_vl(unsigned input_port, const SlToVl& row);
    [[nodiscard]] const SlToVl& sl_to_vl(unsigned input_port) const { return sl_to_vl_[input_port]; }
    /// False if a list has more than 64 entries.
    bool set_arbitration(const ArbitrationTables& tables);
    [[nodiscard]] const ArbitrationTables& arbitration() const { return arbitration_; }
    /// PortInfo:PortState of a Set. False if it has no effect.
    bool command(std::uint8_t port_state, Time now);
    void active_trigger(Time now);
    void reset(Time now);
    [[nodiscard]] PortState state() const { return state_.state(); }
    /// PortEvent bits since the last call.
    std::uint8_t take_events();
    [[nodiscard]] PortCounters& counters() { return counters_; }
    [[nodiscard]] const PortCounters& counters() const { return counters_; }
    [[nodiscard]] const ReceiveDiscards& receive_discards() const { return receive_discards_; }
    [[nodiscard]] const SendDiscards& send_discards() const { return send_discards_; }

    // The wire.
    void set_physical_link(bool up, Time now);
    void on_frame(const Frame& frame, Time now);
    /// The next frame to put on the wire, written to `out`, which has room for max_frame_bytes(). Without
    /// bytes: nothing may be sent now.
    Frame next_frame(Time now, std::span<std::byte> out);
    [[nodiscard]] std::size_t max_frame_bytes() const;
    /// When next_frame() must be called although nothing happens.
    [[nodiscard]] Time next_deadline() const;

    // Above the link layer.
    /// A packet that starts here, no Ethernet frame. SMPs (transport packets to QP0) go to VL15, others by
    /// their SL and, in a switch, the port where it came in: 0 is the switch itself.
    Enqueued enqueue(const Packet& packet, Time now, unsigned input_port = 0);
    /// What front() of another port of the switch gave; only its VL and VCRC change.
    Enqueued forward(std::span<const std::byte> packet, unsigned input_port, Time now);
    /// LRH to VCRC of the oldest packet received on the VL (0 to 15); empty if there is none. Valid until it
    /// is popped.
    [[nodiscard]] std::span<const std::byte> front(std::uint8_t vl) const;
    void pop(std::uint8_t vl);

    // For people and tests.
    [[nodiscard]] unsigned supported_vls() const { return static_cast<unsigned>(lanes_.size()); }
    [[nodiscard]] unsigned operational_vls() const { return data_vls(settings_.operational_vls); }
    [[nodiscard]] const SendCredits& send_credits(std::uint8_t vl) const { return lanes_[vl].credits_out; }
    [[nodiscard]] const ReceiveCredits& receive_credits(std::uint8_t vl) const {
        return lanes_[vl].credits_in;
    }
    [[nodiscard]] std::uint32_t queued_packets(std::uint8_t vl) const { return queue_of(vl).packets(); }
    [[nodiscard]] std::uint32_t free_receive_blocks(std::uint8_t vl) const {
        return buffer_of(vl).free_blocks();
    }

  private:
    struct DataLane {
        PacketRing queue;
        PacketRing buffer;
        SendCredits credits_out{};
        ReceiveCredits credits_in{};
        Time update_sent = 0;
        Time update_due = kNoDeadline;
        Time watchdog = kNoDeadline;
        Time head_since = 0;  ///< since when the queue's head has been it
        std::uint32_t hoq_losses = 0;
        Time stalled_until = 0;
    };

    // link_port.cc
    /// Gives the state machine an input. True if it moved.
    template <typename Input>
    bool move(Time now, Input input) {
        const PortState before = state_.state();
        if (!input()) return false;
        after_move(before, now);
        return true;
    }
    void after_move(PortState before, Time now);
    void flush_queues();
    void advance(Time now);
    void check_watchdogs(Time now);
    void retrain(Time now);
    [[nodiscard]] const PacketRing& queue_of(std::uint8_t vl) const {
        return vl == kVl15 ? vl15_queue_ : lanes_[vl].queue;
    }
    [[nodiscard]] const PacketRing& buffer_of(std::uint8_t vl) const {
        return vl == kVl15 ? vl15_buffer_ : lanes_[vl].buffer;
    }

    // link_port_receive.cc
    void on_data_packet(std::span<const std::byte> bytes, Time now);
    void count_packet_error(PacketError error);
    void deliver(std::span<const std::byte> bytes, const LrhFields& lrh, Time now);
    void on_overrun(Time now);
    void on_link_packet(std::span<const std::byte> bytes, Time now);
    void on_flow_control(const FlowControlPacket& packet, Time now);
    void watch_integrity(bool local_physical_error, Time now);

    // link_port_send.cc
    std::optional<std::uint8_t> lane_for(const LrhFields& lrh, unsigned input_port, bool is_smp, Time now);
    template <typename Write>
    Enqueued put(std::uint8_t vl, std::uint32_t words, Time now, Write write);
    [[nodiscard]] bool wants_update(const DataLane& lane, Time now) const;
    [[nodiscard]] unsigned update_lanes() const;
    Frame send_update(std::uint8_t vl, Time now, std::span<std::byte> out);
    Frame send_packet(PacketRing& queue, std::span<std::byte> out);
    void expire_lifetimes(DataLane& lane, Time now);
    void drop_head(DataLane& lane, std::uint64_t& cause, Time now);
    std::optional<std::uint8_t> choose_lane();
    void count_wait(Time now);

    LinkConfig config_;
    PortSettings settings_;
    PortStateMachine state_;
    PacketReceiver receiver_;
    std::vector<DataLane> lanes_;  ///< supported data VLs
    PacketRing vl15_queue_;
    PacketRing vl15_buffer_;
    std::vector<SlToVl> sl_to_vl_;  ///< by input port
    ArbitrationTables arbitration_;
    VlArbiter arbiter_;
    LocalLinkIntegrity integrity_;
    BufferOverruns overruns_;
    PortCounters counters_;
    ReceiveDiscards receive_discards_;
    SendDiscards send_discards_;
    std::uint8_t events_ = 0;
    bool physical_up_ = false;           ///< as the owner says, whether or not the link trains
    Time training_until_ = kNoDeadline;  ///< kNoDeadline: it does not
    Time waiting_since_ = kNoDeadline;   ///< data that have no credits; kNoDeadline: none wait
    Time waited_ = 0;                    ///< what makes no whole tick yet
};

}  // namespace uib::net::link
