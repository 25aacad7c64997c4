// A first-in first-out store of whole packets, measured in blocks of 64 bytes as flow control counts them.
//
// A packet takes exactly the blocks of its PktLen (blocks_of), so free_blocks() is what can be promised as
// credit whatever the packet sizes. Each lies in one piece: one that begins near the end runs into an
// overhang behind the last block, and the next begins where it would have ended in a ring. Made once,
// allocates nothing later.
#pragma once

#include <vector>

#include "net/link/link_types.h"

namespace uib::net::link {

class PacketRing {
  public:
    /// Holds `blocks` blocks, in packets of up to `max_packet_words`; `blocks` is raised to one such packet.
    PacketRing(std::uint32_t blocks, std::uint32_t max_packet_words);

    [[nodiscard]] bool empty() const { return packets_ == 0; }
    [[nodiscard]] std::uint32_t packets() const { return packets_; }
    [[nodiscard]] std::uint32_t capacity() const { return blocks_; }
    [[nodiscard]] std::uint32_t free_blocks() const { return blocks_ - used_; }

    /// Room for a packet of PktLen `words` and its VCRC, at the end; empty if there is none, or if no packet
    /// may be that long.
    std::span<std::byte> reserve(std::uint32_t words);
    /// Keeps the packet for which room was just reserved; `now` stays with it.
    void commit(std::uint32_t words, Time now);

    /// LRH to VCRC of the oldest packet; valid until it is popped. There must be one.
    [[nodiscard]] std::span<const std::byte> front() const;
    [[nodiscard]] std::uint32_t front_words() const { return entries_[first_].words; }
    [[nodiscard]] Time front_time() const { return entries_[first_].at; }
    void pop();

  private:
    struct Entry {
        Time at = 0;
        std::uint32_t words = 0;
    };

    [[nodiscard]] std::uint32_t wrapped(std::uint32_t index) const {
        return index < blocks_ ? index : index - blocks_;
    }

    std::uint32_t max_packet_words_;
    std::uint32_t blocks_;
    std::uint32_t head_ = 0;  ///< block of the oldest packet
    std::uint32_t used_ = 0;
    std::uint32_t first_ = 0;  ///< entry of the oldest packet
    std::uint32_t packets_ = 0;
    std::vector<std::byte> bytes_;
    std::vector<Entry> entries_;  ///< no more packets than blocks
};

}  // namespace uib::net::link
