// One direction of a wire between two adapters: how long a packet takes, and what may befall it.
//
// Loss is independent a packet, or comes in bursts (two states, Gilbert's model), or is total while the link
// is partitioned. A packet may be repeated, and delayed so that others overtake it. A damaged one is encoded,
// has bits flipped and is decoded again, which must refuse it.
#pragma once

#include <vector>

#include "engine/transport/types.h"
#include "net/wire/packet.h"
#include "tests/simulation/random.h"

namespace uib::simulation {

using transport::Time;

struct LinkFaults {
    double loss = 0;
    double repeat = 0;
    double delay = 0;  ///< chance of an extra delay
    Time longest_delay = 20'000;
    double damage = 0;
    double burst = 0;        ///< chance that a burst of losses starts with a packet
    double burst_end = 0.3;  ///< chance that it ends with a packet
    struct Partition {
        Time from;
        Time to;
    };
    std::vector<Partition> partitions;

    [[nodiscard]] bool none() const {
        return loss == 0 && repeat == 0 && delay == 0 && damage == 0 && burst == 0 && partitions.empty();
    }
    /// Losses that a retry counter of 7 may not outlast.
    [[nodiscard]] bool harsh() const { return loss > 0.05 || burst > 0 || !partitions.empty(); }
};

class Link {
  public:
    enum class Fate { kArrives, kLost, kDamaged, kPartitioned };

    static constexpr Time kFlightTime = 2'000;

    LinkFaults faults;
    /// Picoseconds a byte takes on the wire; 0: none.
    Time byte_time = 0;

    Fate fate(Random& random, Time now);
    /// When a packet of `bytes` that is sent now arrives.
    Time arrival(Random& random, Time now, std::size_t bytes);

  private:
    bool in_burst_ = false;
    Time busy_until_ = 0;  ///< picoseconds
};

/// True when the packet's wire form, with bits flipped, is still taken for a packet.
bool survives_damage(Random& random, const net::Packet& packet);

}  // namespace uib::simulation
