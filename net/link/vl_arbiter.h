// Arbitration among data VLs (7.6.9.2): two weighted tables and the limit of high priority.
//
// Sizes are PktLen words (4 bytes); an entry's weight is 64 bytes each, the limit 4096 bytes each. After
// every packet: the high table is active if some entry of it can send and HighPriCounter is not below zero;
// otherwise the counter is loaded anew and the low table is active. A table that cannot send although it is
// active leaves the turn to the other. Within a table an entry sends until its weight is used up (the last
// packet may overdraw it) or it has nothing to send; then the next is loaded with its weight.
// A VL that stands in neither table is sent when nothing else can be.
#pragma once

#include <optional>
#include <vector>

#include "net/link/link_types.h"

namespace uib::net::link {

struct ArbitrationEntry {
    std::uint8_t vl = 0;
    std::uint8_t weight = 0;  ///< units of 64 bytes; 0: as if the entry were not there

    bool operator==(const ArbitrationEntry&) const = default;
};

/// VLArbitrationTable; up to 64 entries a list.
struct ArbitrationTables {
    std::vector<ArbitrationEntry> high;
    std::vector<ArbitrationEntry> low;
};

/// PktLen of the packet at the head of each VL if there are credits for it, else 0.
using ReadyWords = std::array<std::uint32_t, kDataVlsMax>;

class VlArbiter {
  public:
    void set_tables(const ArbitrationTables& tables);
    void set_limit(std::uint8_t limit);

    /// The VL to send from next, with its packet accounted; nothing if no VL is ready.
    std::optional<std::uint8_t> next(const ReadyWords& ready);

  private:
    struct Table {
        Table() = default;
        explicit Table(const std::vector<ArbitrationEntry>& list);
        [[nodiscard]] bool is_ready(const ReadyWords& ready) const;
        std::optional<std::uint8_t> pick(const ReadyWords& ready);

        std::vector<ArbitrationEntry> entries;  ///< those that can send: no weight of 0, no VL15
        std::size_t index = 0;
        std::int64_t available = 0;  ///< words
    };

    std::optional<std::uint8_t> pick_high(const ReadyWords& ready);

    Table high_;
    Table low_;
    std::uint8_t limit_ = 0;
    std::int64_t high_counter_ = 0;  ///< HighPriCounter, words
    std::size_t unlisted_ = 0;       ///< where the next turn among VLs of no table begins
};

}  // namespace uib::net::link
