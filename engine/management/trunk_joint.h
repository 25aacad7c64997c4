// Joins the links of a trunk (net/encap) to the engine's switch: what arrives on a link is an SMP for subnet
// management, a packet for an end port of this engine, or one that goes on through another link; what the
// switch sends out of an external port goes onto its link.
//
// The link follows what subnet management has set at the switch's port (state, MTU, lanes, arbitration), and
// management is told when a link comes up or goes down. A packet of this engine that finds its link's queue
// full waits here; room() is 0 until it has gone. One that goes on to another engine waits where it came in,
// whose credits hold the sender back. So nothing is lost between engines, but for copies to a group. Driven
// by the lane: receive(), then sends, then end_turn(), until which payloads of received packets stay valid.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/management/engine_subnet.h"
#include "net/encap/ib_trunk.h"
#include "net/fabric/internal_switch.h"

namespace uib::management {

class TrunkJoint {
  public:
    using PortIndex = net::InternalSwitch::PortIndex;
    /// A packet for an end port of this engine.
    using Deliver = std::function<void(PortIndex port, net::Packet& packet)>;

    /// The trunk's slots are external ports `first` and on of `fabric`.
    TrunkJoint(std::unique_ptr<net::IbTrunk> trunk, EngineSubnet& subnet, net::InternalSwitch& fabric,
               PortIndex first);
    TrunkJoint(const TrunkJoint&) = delete;
    TrunkJoint& operator=(const TrunkJoint&) = delete;

    /// Another trunk of this engine: packets go on from the links of the one to those of the other.
    void meet(TrunkJoint& other) { others_.push_back(&other); }

    [[nodiscard]] net::IbTrunk& trunk() { return *trunk_; }
    [[nodiscard]] PortIndex first() const { return first_; }
    [[nodiscard]] bool owns(PortIndex port) const {
        return port >= first_ && port < first_ + trunk_->slots();
    }

    /// True if anything arrived.
    bool receive(Time now, const Deliver& deliver);
    /// A packet of this engine leaves through `port`.
    void send(PortIndex port, const net::Packet& packet, Time now);
    /// Packets that send() takes without having to keep any back.
    [[nodiscard]] std::uint32_t room() const;
    void end_turn(Time now);
    [[nodiscard]] Time next_deadline() const { return trunk_->next_deadline(); }

    struct Counters {
        std::uint64_t icrc_errors = 0;  ///< good on the link, damaged before it
        std::uint64_t malformed = 0;    ///< no packet, by another check of the codec
        std::uint64_t no_route = 0;     ///< the switch has no way
        std::uint64_t way_back = 0;     ///< its way is the link where it came from (18.2.4.3)
        std::uint64_t bad_smp = 0;
        std::uint64_t discarded = 0;  ///< the link may not carry it (state, MTU, lane)
        std::uint64_t waited = 0;     ///< found its link's queue full
    };
    [[nodiscard]] const Counters& counters() const { return counters_; }

  private:
    /// Puts SMPs onto the link of one slot.
    class Link final : public SmpLink {
      public:
        Link(TrunkJoint& joint, std::size_t slot) : joint_(joint), slot_(slot) {}
        void transmit(const SmpPacket& packet, Time now) override { joint_.send_smp(slot_, packet, now); }

      private:
        TrunkJoint& joint_;
        std::size_t slot_;
    };
    struct Slot {
        std::unique_ptr<Link> link;
        bool up = false;    ///< as management was told
        bool stale = true;  ///< management has set something that the link does not have yet
    };
    struct Kept {
        PortIndex port = 0;
        net::Packet packet;
        std::vector<std::byte> payload;
    };

    void follow(std::size_t slot, Time now);
    void take_trigger(std::size_t slot, Time now);
    void take_settings(std::size_t slot, Time now);
    void take_smps(std::size_t slot, Time now);
    void take_data(std::size_t slot, Time now, const Deliver& deliver);
    [[nodiscard]] PortIndex way_of(net::Lid dlid);
    [[nodiscard]] PortIndex way_on(std::size_t slot, std::span<const std::byte> bytes);
    void forward(std::size_t slot, std::span<const std::byte> bytes, Time now, const Deliver& deliver);
    void forward_multicast(std::size_t slot, std::span<const std::byte> bytes, const net::Packet& packet,
                           Time now, const Deliver& deliver);
    void drop(std::size_t slot, std::uint64_t& cause);
    [[nodiscard]] unsigned input_of(PortIndex port, const net::link::LinkPort& link) const;
    net::link::Enqueued pass_on(PortIndex to, std::size_t from, std::span<const std::byte> bytes, Time now);
    net::link::Enqueued take_over(PortIndex to, PortIndex from, std::span<const std::byte> bytes, Time now);
    net::link::Enqueued enqueue(PortIndex to, const net::Packet& packet, Time now);
    void send_smp(std::size_t slot, const SmpPacket& packet, Time now);
    void retry_kept(Time now);

    std::unique_ptr<net::IbTrunk> trunk_;
    EngineSubnet& subnet_;
    net::InternalSwitch& fabric_;
    PortIndex first_;
    std::vector<TrunkJoint*> others_;
    std::vector<Slot> slots_;
    std::deque<Kept> kept_;
    std::deque<std::vector<std::byte>> turn_;  ///< packets received in this turn
    std::vector<std::vector<std::byte>> spare_;
    Counters counters_;
};

}  // namespace uib::management
