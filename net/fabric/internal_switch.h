// The internal switch: joins the ports of one engine's devices by LID, unicast and multicast (IBA 18.2.4).
//
// It decides where a packet goes and counts it at both ports; moving it is the lane's work. Port number p of
// the switch (0 is the switch itself) is port index p - 1 here. Behind a port stands an end port of this
// engine, which answers to the 2^LMC LIDs from its base LID on (7.11) while its link is active, or a link to
// somewhere else, which takes every LID.
//
// Unicast is one look-up in a table by LID that holds what forwarding tables, LinearFDBTop and end ports say
// together; it is made anew where one of them changes. Only a packet without a way is looked at again, to
// tell why. LIDs from kLinearCap on are not subnet management's: ports added with such a LID keep it.
// Multicast packets go to the ports that the multicast table names and to those that have joined by
// themselves (queue pairs were attached behind them).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "net/fabric/forwarding_tables.h"
#include "net/wire/length.h"
#include "net/wire/packet.h"

namespace uib::net {

/// Counters of a port: those of the PortCounters and PortCountersExtended attributes
/// (IBA 16.1.3.5, 16.1.4.11) that the internal fabric can move, and the discards by cause.
struct PortCounters {
    std::uint64_t xmit_words = 0;  ///< PortXmitData: units of 4 bytes
    std::uint64_t rcv_words = 0;
    std::uint64_t xmit_packets = 0;
    std::uint64_t rcv_packets = 0;
    std::uint64_t unicast_xmit_packets = 0;
    std::uint64_t unicast_rcv_packets = 0;
    std::uint64_t multicast_xmit_packets = 0;
    std::uint64_t multicast_rcv_packets = 0;
    std::uint64_t xmit_discards = 0;     ///< no port with that LID
    std::uint64_t rcv_errors = 0;        ///< PortRcvErrors: damaged on the wire
    std::uint64_t unknown_qp_drops = 0;  ///< 9.6: destination QP does not exist on the port
    std::uint64_t multicast_drops = 0;   ///< 9.6.1.1: no GRH, bad DGID, or nobody attached
    std::uint64_t unsteered_frames = 0;  ///< Ethernet frames that no flow rule took
    std::uint64_t inactive_drops = 0;    ///< 7.2: the port's link was not active
    std::uint64_t bad_pkey = 0;
    std::uint64_t qkey_violations = 0;
};

/// Why the switch has no way for a unicast packet.
enum class SwitchDrop : std::uint8_t {
    kNoEntry,       ///< the forwarding table has no port for the LID
    kAboveTop,      ///< the LID is above LinearFDBTop
    kNoSuchPort,    ///< the table names a port that does not exist
    kToSwitch,      ///< the LID is the switch's own, which takes management datagrams only
    kForeignLid,    ///< the port that the table names does not answer to the LID
    kPortInactive,  ///< its link is not active
};
inline constexpr std::size_t kSwitchDropCount = 6;

/// Name for counters, e.g. "above_top".
const char* name_of(SwitchDrop drop);

class InternalSwitch {
  public:
    using PortIndex = std::uint32_t;
    static constexpr PortIndex kNoPort = ~PortIndex{0};
    static constexpr std::uint16_t kLinearCap = 0x8000;
    static constexpr std::uint16_t kMulticastCap = 1024;

    InternalSwitch() : tables_(kLinearCap, kMulticastCap) {}

    /// Adds an end port that has `lid` and is active, and the way to it; returns its index (dense from 0).
    /// LIDs must be unicast and unused.
    PortIndex add_port(Lid lid);
    /// Adds an end port without a LID, whose link is not active.
    PortIndex add_port();
    /// Adds a port with a link to somewhere else.
    PortIndex add_external_port();
    [[nodiscard]] std::size_t ports() const { return ports_.size(); }
    [[nodiscard]] bool external(PortIndex port) const { return ports_[port].external; }

    struct EndPort {
        Lid lid = 0;           ///< base LID; its low `lmc` bits are ignored
        std::uint8_t lmc = 0;  ///< 0 to 7
        bool active = false;
        bool operator==(const EndPort&) const = default;
    };
    /// Of a port that is not external.
    void set_end_port(PortIndex port, const EndPort& end);
    [[nodiscard]] const EndPort& end_port(PortIndex port) const { return ports_[port].end; }

    /// What subnet management sets. False if the table does not reach that far.
    bool set_top(Lid top);
    bool set_linear_block(std::uint32_t block, std::span<const PortNumber, kLinearBlock> ports);
    bool set_multicast_block(std::uint32_t block, unsigned position,
                             std::span<const std::uint16_t, kMulticastBlock> masks);
    void set_default_multicast_port(PortNumber port);
    [[nodiscard]] const ForwardingTables& tables() const { return tables_; }

    [[nodiscard]] PortIndex route(Lid dlid) const {
        return dlid < forwarding_.size() ? forwarding_[dlid] : kNoPort;
    }
    /// Why route() has no port for `dlid`.
    [[nodiscard]] SwitchDrop why_dropped(Lid dlid) const;
    /// Counts a packet that route() had no port for, and the discard at the port that sent it, if its SLID
    /// tells which.
    void count_dropped(const Packet& packet);
    [[nodiscard]] std::uint64_t dropped(SwitchDrop cause) const {
        return drops_[static_cast<std::size_t>(cause)];
    }

    /// Membership counts: a port leaves when it has left as often as it joined.
    void join(Lid mlid, PortIndex port);
    void leave(Lid mlid, PortIndex port);
    /// Ports that packets to `mlid` go to, in ascending order. An external port where the packet came in gets
    /// no copy; an end port does, its own loop-back (7.10.2).
    [[nodiscard]] const std::vector<PortIndex>& members(Lid mlid) const;

    [[nodiscard]] PortCounters& counters(PortIndex port) { return counters_[port]; }
    [[nodiscard]] const PortCounters& counters(PortIndex port) const { return counters_[port]; }

    void count_sent(PortIndex port, const Packet& packet);
    void count_received(PortIndex port, const Packet& packet);

  private:
    struct Port {
        bool external = false;
        EndPort end;
    };
    PortIndex add(const Port& port);
    void refresh(Lid lid);
    void refresh_range(std::size_t first, std::size_t end);
    void refresh_group(Lid mlid);
    [[nodiscard]] static bool answers(const EndPort& end, Lid lid) {
        return end.lid != 0 && end.lid >> end.lmc == lid >> end.lmc;
    }

    ForwardingTables tables_;
    std::vector<Port> ports_;
    std::vector<PortIndex> forwarding_;  ///< by LID
    /// By multicast LID, of those where queue pairs are attached: how often each port has joined.
    std::unordered_map<Lid, std::map<PortIndex, std::uint32_t>> joined_;
    std::unordered_map<Lid, std::vector<PortIndex>> members_;  ///< never empty ones
    std::vector<PortIndex> default_members_;
    std::vector<PortCounters> counters_;
    std::array<std::uint64_t, kSwitchDropCount> drops_{};
};

}  // namespace uib::net
