// Two ports joined by a simulated wire, in simulated time.
//
// Each direction carries one frame at a time, at `byte_time` a byte, and delivers it `delay` later, in order
// unless `faults` says otherwise. Actors are called at every step and say when they want to be called again:
// they fill queues, take what has arrived and check it.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "net/link/link_port.h"
#include "tests/simulation/random.h"

namespace uib::net::link {

/// Probabilities for each frame.
struct WireFaults {
    double loss = 0;
    double duplicate = 0;
    double damage = 0;  ///< one bit is flipped
};

struct Wire {
    Time delay = 5000;
    Time byte_time = 1;  ///< ns; about 8 Gb/s
    WireFaults faults{};
};

class JoinedPorts {
  public:
    using Actor = std::function<Time(Time now)>;

    JoinedPorts(const LinkConfig& config, const PortSettings& settings, const Wire& wire,
                std::uint64_t seed = 1);

    [[nodiscard]] LinkPort& port(int end) { return ports_[end]; }
    [[nodiscard]] Time now() const { return now_; }
    void set_faults(const WireFaults& faults) { wire_.faults = faults; }
    void add_actor(Actor actor) { actors_.push_back(std::move(actor)); }

    /// Both physical links up, both ports armed and active.
    void bring_up();
    void run_until(Time end);
    void run_for(Time duration) { run_until(now_ + duration); }

    /// Frames put on the wire, link packets included.
    std::uint64_t frames = 0;

  private:
    struct Flight {
        Time arrives;
        FrameStart start;
        std::vector<std::byte> bytes;
    };
    struct Direction {
        Time free_at = 0;
        std::deque<Flight> flights;
    };

    Time step();
    void transmit(int from);
    void carry(Direction& direction, const Frame& frame);
    void deliver(int to);

    Wire wire_;
    simulation::Random random_;
    Time now_ = 0;
    std::array<LinkPort, 2> ports_;
    std::array<Direction, 2> directions_;  ///< by the end that sends
    std::vector<Actor> actors_;
    std::vector<std::byte> out_;
};

/// An actor that keeps the queue of a service level full of packets, numbered by their PSN.
JoinedPorts::Actor keep_sending(LinkPort& port, std::uint8_t sl, std::size_t payload);
/// An actor that takes a packet of the VL each `interval`; 0: as they come. Counts in `words`.
JoinedPorts::Actor keep_taking(LinkPort& port, std::uint8_t vl, Time interval, std::uint64_t& words);

}  // namespace uib::net::link
