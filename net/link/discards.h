// What a port discards, by the check that said so: the standard counters sum over several of these.
#pragma once

#include <array>
#include <cstdint>

#include "net/link/packet_check.h"
#include "net/wire/link_packet.h"

namespace uib::net::link {

/// Received.
struct ReceiveDiscards {
    std::array<std::uint64_t, kPacketErrorCount> checks{};  ///< by PacketError
    std::array<std::uint64_t, kLinkPacketErrorCount> link_checks{};
    std::uint64_t link_vl = 0;         ///< flow control packets of a VL that is not supported, in LinkActive
    std::uint64_t bad_packets = 0;     ///< no proper delimiters, or a code error
    std::uint64_t marked_bad = 0;      ///< damaged before the local link
    std::uint64_t state = 0;           ///< the port's state lets them not pass
    std::uint64_t buffer_overrun = 0;  ///< no room, on a data VL
    std::uint64_t raw_filter = 0;

    [[nodiscard]] std::uint64_t of(PacketError error) const {
        return checks[static_cast<std::size_t>(error)];
    }
    [[nodiscard]] std::uint64_t of(LinkPacketError error) const {
        return link_checks[static_cast<std::size_t>(error)];
    }
};

/// Submitted for transmission.
struct SendDiscards {
    std::uint64_t state = 0;       ///< the port's state lets them not pass
    std::uint64_t too_long = 0;    ///< beyond the smaller of MTUCap and NeighborMTU
    std::uint64_t vl_mapping = 0;  ///< the SL is mapped to VL15 or to a VL that is not configured
    std::uint64_t vl15_form = 0;   ///< no packet for VL15: too long, raw, multicast, or with a GRH
    std::uint64_t raw_filter = 0;
    std::uint64_t hoq_life = 0;     ///< too long at the head of its queue
    std::uint64_t packet_life = 0;  ///< too long in the switch
    std::uint64_t vl_stalled = 0;
};

}  // namespace uib::net::link
