// The tables by which a switch forwards (IBA 18.2.4.3): linear for unicast LIDs, masks of ports for multicast
// LIDs. They hold what subnet management has written, in the blocks in which it writes
// (14.2.5.10, 14.2.5.12).
//
// Values only: which ports there are and what stands behind them is the switch's affair.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/packet.h"

namespace uib::net {

/// A switch's port number; 0 is the switch itself.
using PortNumber = std::uint8_t;
inline constexpr PortNumber kNoRoute = 0xFF;
inline constexpr std::size_t kLinearBlock = 64;
inline constexpr std::size_t kMulticastBlock = 32;
inline constexpr unsigned kPortsPerPosition = 16;

/// Bit p stands for port p.
using PortMask = std::bitset<256>;

class ForwardingTables {
  public:
    /// LIDs from 0 to `linear_cap` - 1 and `multicast_cap` multicast LIDs from 0xC000 on have entries.
    ForwardingTables(std::uint16_t linear_cap, std::uint16_t multicast_cap);

    [[nodiscard]] std::uint16_t linear_cap() const { return static_cast<std::uint16_t>(linear_.size()); }
    [[nodiscard]] std::uint16_t multicast_cap() const {
        return static_cast<std::uint16_t>(multicast_.size());
    }

    /// LinearFDBTop: LIDs above are not forwarded. False if the table does not reach that far.
    bool set_top(Lid top);
    [[nodiscard]] Lid top() const { return top_; }
    /// False if there is no such block.
    bool set_linear_block(std::uint32_t block, std::span<const PortNumber, kLinearBlock> ports);
    [[nodiscard]] std::array<PortNumber, kLinearBlock> linear_block(std::uint32_t block) const;
    /// What the table holds for `lid`, whatever the top.
    [[nodiscard]] PortNumber entry(Lid lid) const { return lid < linear_.size() ? linear_[lid] : kNoRoute; }

    /// The ports 16 * `position` to 16 * `position` + 15 of 32 multicast LIDs. False if there is no such
    /// block.
    bool set_multicast_block(std::uint32_t block, unsigned position,
                             std::span<const std::uint16_t, kMulticastBlock> masks);
    [[nodiscard]] std::array<std::uint16_t, kMulticastBlock> multicast_block(std::uint32_t block,
                                                                             unsigned position) const;
    /// Where packets to multicast LIDs go that the table does not hold; kNoRoute: nowhere.
    void set_default_multicast_port(PortNumber port) { default_multicast_ = port; }
    [[nodiscard]] PortNumber default_multicast_port() const { return default_multicast_; }
    /// The ports that a packet to `mlid` goes to, the one where it came in included.
    [[nodiscard]] PortMask multicast(Lid mlid) const;

    static constexpr unsigned kPositions = 256 / kPortsPerPosition;

  private:
    std::vector<PortNumber> linear_;
    std::vector<PortMask> multicast_;
    Lid top_ = 0;
    PortNumber default_multicast_ = kNoRoute;
};

}  // namespace uib::net
