// A simulated world: pairs of connected queue pairs, a wire that loses, repeats and reorders packets, and the
// clock; everything from one seed, so that a run can be repeated.
//
// Time moves from event to event: the arrival of a packet or a timer. Each endpoint runs when it has
// something to do. Payloads are copied when a packet is sent. A trace of the last events is kept for failing
// seeds.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>

#include "tests/unit/transport/station.h"

namespace uib::simulation {

using transport::Time;
using transport::testing::SentPacket;
using transport::testing::Station;

struct WireFaults {
    double loss = 0;
    double repeat = 0;
    double delay = 0;  ///< chance of an extra delay, which reorders
};

class World {
  public:
    World(std::uint64_t seed, WireFaults faults) : random_(seed), faults_(faults) {}

    Station& add(transport::Service service, std::uint32_t number, bool lend);
    /// Runs until nothing happens any more, or `limit` events. False if the limit was reached. Calls
    /// `clients` between events.
    bool run(std::size_t limit, const std::function<void()>& clients);

    std::mt19937_64& random() { return random_; }
    /// Uniform in [low, high].
    std::uint64_t draw(std::uint64_t low, std::uint64_t high) {
        return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
    }
    bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }
    [[nodiscard]] std::string trace() const;

  private:
    struct Flight {
        Time at;
        std::uint64_t order;
        Station* to;
        std::shared_ptr<SentPacket> packet;
        bool operator>(const Flight& other) const {
            return at != other.at ? at > other.at : order > other.order;
        }
    };
    void run_stations();
    void carry(Station& from);
    void launch(const std::shared_ptr<SentPacket>& packet, Station& to);
    void note(const char* what, const Station& station, const SentPacket* packet);

    std::mt19937_64 random_;
    WireFaults faults_;
    Time clock_ = 1'000'000;
    std::uint64_t order_ = 0;
    std::vector<std::unique_ptr<Station>> stations_;
    std::priority_queue<Flight, std::vector<Flight>, std::greater<>> wire_;
    std::deque<std::string> trace_;
};

}  // namespace uib::simulation
