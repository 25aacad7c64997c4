// The internal switch: joins the ports of one engine's devices by LID, unicast and multicast (IBA 18.2.4).
//
// It decides where a packet goes and counts it at both ports; moving it is the lane's work. Forwarding is by
// destination LID alone: a unicast LID names one port, a multicast LID the ports that have joined. A packet
// to an unknown LID is dropped and counted at the port that sent it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

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
    std::uint64_t bad_pkey = 0;
    std::uint64_t qkey_violations = 0;
};

class InternalSwitch {
  public:
    using PortIndex = std::uint32_t;
    static constexpr PortIndex kNoPort = ~PortIndex{0};

    /// Adds a port with `lid`; returns its index (dense from 0). LIDs must be unicast and unused.
    PortIndex add_port(Lid lid);

    [[nodiscard]] PortIndex route(Lid dlid) const {
        return dlid < forwarding_.size() ? forwarding_[dlid] : kNoPort;
    }

    /// Membership counts: a port leaves when it has left as often as it joined.
    void join(Lid mlid, PortIndex port);
    void leave(Lid mlid, PortIndex port);
    /// Ports that are members, in ascending order; empty when there are none.
    [[nodiscard]] const std::vector<PortIndex>& members(Lid mlid) const;

    [[nodiscard]] PortCounters& counters(PortIndex port) { return counters_[port]; }
    [[nodiscard]] const PortCounters& counters(PortIndex port) const { return counters_[port]; }

    void count_sent(PortIndex port, const Packet& packet);
    void count_received(PortIndex port, const Packet& packet);

  private:
    struct Group {
        std::vector<PortIndex> ports;
        std::vector<std::uint32_t> joined;  ///< parallel to ports
    };
    std::vector<PortIndex> forwarding_;  ///< by LID
    std::unordered_map<Lid, Group> groups_;
    std::vector<PortCounters> counters_;
};

}  // namespace uib::net
