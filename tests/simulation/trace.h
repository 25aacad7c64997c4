// What happened in a world, in order: packets and their fate, posts, completions, events, timers.
//
// Every entry goes into a hash, so that two runs can be compared without keeping their text; the entries
// themselves are kept in compact form and become lines for people only when a seed fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/transport/types.h"

namespace uib::simulation {

enum class Happening : std::uint8_t {
    kSent,
    kLost,
    kDamaged,
    kPartitioned,
    kDelivered,
    kPost,
    kPostReceive,
    kSendDone,
    kReceiveDone,
    kEvent,
    kTimer,
    kState
};

struct TraceEntry {
    transport::Time at = 0;
    std::uint64_t id = 0;  ///< request number, event or state
    Happening what{};
    std::uint8_t opcode = 0;  ///< BTH or work opcode
    std::uint8_t status = 0;  ///< completion status, or AETH syndrome
    bool ack_req = false;
    std::uint16_t lid = 0;  ///< of the adapter where it happened (packets: the sender)
    std::uint16_t peer_lid = 0;
    std::uint32_t qp = 0;  ///< packets: the destination
    std::uint32_t psn = 0;
    std::uint32_t length = 0;
};

class Trace {
  public:
    void note(const TraceEntry& entry);
    [[nodiscard]] std::uint64_t hash() const { return hash_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    /// The last `lines` entries as text.
    [[nodiscard]] std::string text(std::size_t lines) const;

  private:
    void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3ULL; }

    std::vector<TraceEntry> entries_;
    std::uint64_t hash_ = 0xCBF29CE484222325ULL;
};

/// Names for people; numbers in hexadecimal for unknown ones.
std::string packet_name(std::uint8_t bth_opcode);
std::string work_name(std::uint8_t opcode);

}  // namespace uib::simulation
