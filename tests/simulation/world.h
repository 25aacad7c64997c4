// A simulated world: adapters, the links between them, and the clock; everything from one seed, so that a run
// can be repeated and two runs of one seed are alike to the last packet.
//
// Time moves from event to event: an arrival, a timer, something that a client does. Each queue pair runs
// when it has something to do, now and then late. Payloads are copied when a packet is sent. The first thing
// that goes wrong is kept and ends the run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>

#include "tests/simulation/adapter.h"
#include "tests/simulation/link.h"
#include "tests/simulation/trace.h"

namespace uib::simulation {

class World {
  public:
    explicit World(std::uint64_t seed) : random(seed) {}

    Adapter& add(std::size_t memory_bytes, bool lend);
    Link& link(net::Lid from, net::Lid to) { return links_[{from, to}]; }
    /// Calls `what` at `when`, or at once if that has passed.
    void at(Time when, std::function<void()> what);
    /// Runs until nothing happens any more, or something is wrong.
    void run();
    void fail(const std::string& wrong) {
        if (wrong_.empty()) wrong_ = wrong;
    }
    [[nodiscard]] bool failed() const { return !wrong_.empty(); }
    [[nodiscard]] const std::string& wrong() const { return wrong_; }
    [[nodiscard]] Time now() const { return clock_; }

    // For adapters.
    void carry(const Adapter& from, const net::Packet& packet);
    void note_completion(Happening what, const Qp& qp, const transport::Completion& completion);
    void note_state(Happening what, const Qp& qp, std::uint64_t value);

    Random random;
    Trace trace;
    Watcher* watcher = nullptr;
    /// Chance that a queue pair with work to do waits for the next event.
    double laziness = 0.3;
    std::uint64_t event_limit = 400'000;
    std::deque<Adapter> adapters;
    std::uint64_t packets = 0;  ///< given to the wire

  private:
    struct Flight {
        net::Packet packet;
        std::vector<std::byte> payload;
        net::Lid from = 0;
    };
    struct Event {
        Time at;
        std::uint64_t order;
        std::shared_ptr<Flight> flight;  ///< an arrival at `to`, or
        Adapter* to;
        std::function<void()> action;
        bool operator>(const Event& other) const {
            return at != other.at ? at > other.at : order > other.order;
        }
    };
    void run_queue_pairs();
    void fire_timers();
    void send_to(const std::shared_ptr<Flight>& flight, Adapter& to);
    void note_packet(Happening what, const Flight& flight, net::Lid to);
    [[nodiscard]] Time next_time() const;

    std::map<std::pair<net::Lid, net::Lid>, Link> links_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    Time clock_ = 1'000'000;
    std::uint64_t order_ = 0;
    std::string wrong_;
};

}  // namespace uib::simulation
