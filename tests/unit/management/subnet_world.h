// Several engines' parts of one subnet, joined by wires with delay and loss, under a clock of the test's.
//
// Reachability is judged by the switches' fast path: a packet is walked from table to table, as the lanes
// would.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "engine/management/engine_subnet.h"

namespace uib::management {

class SubnetWorld {
  public:
    using PortIndex = net::InternalSwitch::PortIndex;
    struct Engine {
        net::InternalSwitch fabric;
        std::unique_ptr<EngineSubnet> subnet;
        std::uint64_t base_guid = 0;
    };
    struct EngineConfig {
        std::uint64_t guid = 0;  ///< of the first adapter; the others follow, the switch is 0x1000 above
        unsigned adapters = 2;
        unsigned externals = 2;
    };

    explicit SubnetWorld(unsigned seed, double loss = 0) : random_(seed), loss_(loss) {}
    ~SubnetWorld();

    std::size_t add(const EngineConfig& config);
    /// External ports number `a_port` and `b_port` (from 0) of two engines; the link is up at once.
    std::size_t join(std::size_t a, unsigned a_port, std::size_t b, unsigned b_port);
    void set_wire(std::size_t wire, bool up);
    void set_loss(double loss) { loss_ = loss; }
    void start(std::size_t engine, SubnetOptions options = {});

    Engine& operator[](std::size_t engine) { return *engines_[engine]; }
    [[nodiscard]] std::size_t engines() const { return engines_.size(); }
    [[nodiscard]] Time now() const { return now_; }
    void run_for(Time span);
    /// Until nothing is under way in any manager and nobody discovers, at most `span`. True if so.
    bool run_until_settled(Time span);

    /// The engine and fabric port that a packet to `lid` from an adapter of `engine` arrives at; {-1, -1} if
    /// it is dropped or goes round in circles.
    [[nodiscard]] std::pair<int, int> walk(std::size_t engine, net::Lid lid);
    /// How many copies of a packet to `mlid` from a port of `engine` each end port gets.
    std::map<std::pair<std::size_t, PortIndex>, unsigned> flood(std::size_t engine, PortIndex from,
                                                                net::Lid mlid);
    /// EXPECTs that every adapter of `engines` reaches every other and its switches have LIDs, no LID twice.
    void expect_whole(const std::vector<std::size_t>& engines);
    [[nodiscard]] net::Lid lid(std::size_t engine, std::size_t adapter);
    /// Engines whose manager is master.
    [[nodiscard]] std::vector<std::size_t> masters();

  private:
    struct Wire;
    struct End final : SmpLink {
        void transmit(const SmpPacket& packet, Time now) override { world->put(*this, packet, now); }
        SubnetWorld* world = nullptr;
        Wire* wire = nullptr;
        std::size_t engine = 0;
        PortIndex port = 0;
        End* other = nullptr;
    };
    struct Wire {
        bool up = true;
        End ends[2];
    };
    struct Event {
        Time at;
        std::uint64_t order;
        std::function<void()> happen;
        friend bool operator>(const Event& a, const Event& b) {
            return std::pair(a.at, a.order) > std::pair(b.at, b.order);
        }
    };
    void put(End& from, const SmpPacket& packet, Time now);
    [[nodiscard]] End* end_at(std::size_t engine, PortIndex port);
    [[nodiscard]] Time next();
    void step(Time at);

    Time now_ = 0;
    std::uint64_t order_ = 0;
    std::mt19937 random_;
    double loss_;
    std::vector<std::unique_ptr<Engine>> engines_;
    std::vector<std::unique_ptr<Wire>> wires_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace uib::management
