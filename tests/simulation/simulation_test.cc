// Seeds: random work over a faulty wire, both directions at once, checked by the model.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>

#include "tests/simulation/model.h"

namespace uib::simulation {
namespace {

using transport::Service;

constexpr std::size_t kEventLimit = 2'000'000;

struct Case {
    const char* name;
    Service service;
    WireFaults faults;
    bool lend;

    friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

class Seeds : public ::testing::TestWithParam<Case> {};

void prepare(World& world, Station& station) {
    transport::QpParameters& p = station.parameters;
    constexpr std::uint32_t kMtus[] = {256, 512, 1024, 2048, 4096};
    p.mtu_bytes = kMtus[world.draw(0, 4)];
    p.retry_count = 7;
    p.rnr_retry = 7;
    p.timeout = 8;
    p.min_rnr_timer = 1;
    p.max_rd_atomic = p.max_dest_rd_atomic = static_cast<std::uint8_t>(world.draw(1, 8));
    p.sq_psn = static_cast<std::uint32_t>(world.chance(0.5) ? world.draw(0xFFFF80, 0xFFFFFF)
                                                            : world.draw(0, 0xFFFFFF));
}

/// What the faults of a case must have led to, summed over its seeds.
struct Totals {
    std::uint64_t resent = 0, timeouts = 0, sequence_naks = 0, implied_naks = 0, rnr_naks = 0, duplicates = 0;

    void add(const transport::QpCounters& c) {
        resent += c.retransmitted_packets;
        timeouts += c.timeouts;
        sequence_naks += c.sequence_naks_sent;
        implied_naks += c.implied_naks;
        rnr_naks += c.rnr_naks_sent;
        duplicates += c.duplicate_requests;
    }
};

/// A connection and its work both ways.
struct Connection {
    Connection(World& world, const Case& one, std::uint32_t number)
        : a(world.add(one.service, number, one.lend)), b(world.add(one.service, number + 1, one.lend)) {
        prepare(world, a);
        b.parameters = a.parameters;
        b.parameters.sq_psn = static_cast<std::uint32_t>(world.draw(0, 0xFFFFFF));
        b.parameters.rq_psn = a.parameters.sq_psn;
        a.parameters.rq_psn = b.parameters.sq_psn;
        const bool reliable = one.service == Service::kRc;
        if (reliable && world.chance(0.3)) a.receive_queue.is_shared = b.receive_queue.is_shared = true;
        a.connect(number + 1);
        b.connect(number);
        directions.push_back(std::make_unique<Direction>(world, a, b, 0, reliable));
        directions.push_back(std::make_unique<Direction>(world, b, a, Direction::kShare, reliable));
    }
    Station& a;
    Station& b;
    std::vector<std::unique_ptr<Direction>> directions;

    /// The send queues are drained and set going again, now and then.
    void drain_or_resume(World& world, double drain, double resume) {
        for (Station* station : {&a, &b}) {
            const transport::QpState state = station->qp->state();
            if (state == transport::QpState::kRts && world.chance(drain))
                station->qp->apply(transport::QpState::kSqd, station->parameters, true);
            if (state == transport::QpState::kSqd && world.chance(resume))
                station->qp->apply(transport::QpState::kRts, station->parameters, false);
        }
    }
};

std::string run_seed(const Case& one, std::uint64_t seed, Totals& totals) {
    World world(seed, one.faults);
    std::vector<Connection> connections;
    const std::uint64_t count = world.draw(1, 3);
    for (std::uint64_t i = 0; i < count; ++i)
        connections.emplace_back(world, one, static_cast<std::uint32_t>(0x11 + 2 * i));
    const auto for_each = [&](const auto& visit) {
        for (Connection& connection : connections)
            for (const auto& direction : connection.directions) visit(*direction);
    };
    const auto trickle = [&] {
        for_each([&](Direction& direction) {
            if (world.chance(0.02)) direction.trickle();
        });
    };
    const auto clients = [&] {
        for (Connection& connection : connections) connection.drain_or_resume(world, 0.002, 0.1);
        trickle();
    };
    for (int wave = 0; wave < 3; ++wave) {
        for_each([&](Direction& direction) {
            const bool late = one.service == Service::kRc && wave < 2 && world.chance(0.3);
            direction.post(static_cast<unsigned>(world.draw(0, 12)), late);
        });
        if (!world.run(kEventLimit, clients)) return "does not come to rest\n" + world.trace();
        for (Connection& connection : connections) connection.drain_or_resume(world, 0, 1);
        if (!world.run(kEventLimit, trickle)) return "does not come to rest\n" + world.trace();
    }
    std::string wrong;
    for_each([&](Direction& direction) {
        if (wrong.empty()) wrong = direction.check();
    });
    for (const Connection& connection : connections) {
        totals.add(connection.a.count());
        totals.add(connection.b.count());
    }
    return wrong.empty() ? "" : wrong + '\n' + world.trace();
}

/// A hundred by default; more for a longer search.
std::uint64_t seeds() {
    const char* wanted = std::getenv("UIB_SIMULATION_SEEDS");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 100;
}

TEST_P(Seeds, keep_the_promises_of_the_service) {
    Totals totals;
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        const std::string wrong = run_seed(GetParam(), seed, totals);
        ASSERT_TRUE(wrong.empty()) << "seed " << seed << ": " << wrong;
    }
    if (GetParam().service != Service::kRc) return;
    const WireFaults& faults = GetParam().faults;
    EXPECT_GT(totals.rnr_naks, 0U);
    if (faults.loss > 0) {
        EXPECT_GT(totals.timeouts, 0U);
    } else if (faults.delay == 0) {
        EXPECT_EQ(totals.timeouts, 0U);
    }
    if (faults.loss > 0 || faults.delay > 0) {
        EXPECT_GT(totals.sequence_naks, 0U);
        EXPECT_GT(totals.implied_naks, 0U);
    }
    if (faults.loss > 0 || faults.repeat > 0) {
        EXPECT_GT(totals.duplicates, 0U);
    }
    std::printf(
        "resent %llu timeouts %llu sequence NAKs %llu implied NAKs %llu RNR NAKs %llu duplicates %llu\n",
        static_cast<unsigned long long>(totals.resent), static_cast<unsigned long long>(totals.timeouts),
        static_cast<unsigned long long>(totals.sequence_naks),
        static_cast<unsigned long long>(totals.implied_naks),
        static_cast<unsigned long long>(totals.rnr_naks), static_cast<unsigned long long>(totals.duplicates));
}

INSTANTIATE_TEST_SUITE_P(Wire, Seeds,
                         ::testing::Values(Case{"rc_lossless", Service::kRc, {}, true},
                                           Case{"rc_loss", Service::kRc, {0.03, 0, 0}, true},
                                           Case{"rc_repeat", Service::kRc, {0, 0.1, 0}, true},
                                           Case{"rc_reorder", Service::kRc, {0, 0, 0.05}, true},
                                           Case{"rc_all", Service::kRc, {0.03, 0.05, 0.05}, true},
                                           Case{"rc_all_copied", Service::kRc, {0.02, 0.05, 0.05}, false},
                                           Case{"uc_lossless", Service::kUc, {}, true},
                                           Case{"uc_all", Service::kUc, {0.05, 0, 0.05}, false}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace uib::simulation
