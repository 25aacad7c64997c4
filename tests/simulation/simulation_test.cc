// Seeds: random work over a faulty wire, both directions at once, checked by the model.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

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

std::string run_seed(const Case& one, std::uint64_t seed, Totals& totals) {
    World world(seed, one.faults);
    Station& a = world.add(one.service, 0x11, one.lend);
    Station& b = world.add(one.service, 0x12, one.lend);
    prepare(world, a);
    b.parameters = a.parameters;
    b.parameters.sq_psn = static_cast<std::uint32_t>(world.draw(0, 0xFFFFFF));
    b.parameters.rq_psn = a.parameters.sq_psn;
    a.parameters.rq_psn = b.parameters.sq_psn;
    if (one.service == Service::kRc && world.chance(0.3))
        a.receive_queue.is_shared = b.receive_queue.is_shared = true;
    a.connect(0x12);
    b.connect(0x11);
    const bool reliable = one.service == Service::kRc;
    Direction there(world, a, b, 0, reliable);
    Direction back(world, b, a, Direction::kShare, reliable);
    for (int wave = 0; wave < 3; ++wave) {
        const bool late = reliable && wave < 2 && world.chance(0.3);
        there.post(static_cast<unsigned>(world.draw(1, 12)), late);
        back.post(static_cast<unsigned>(world.draw(0, 8)), late);
        const auto clients = [&] {
            if (world.chance(0.02)) there.trickle();
            if (world.chance(0.02)) back.trickle();
        };
        if (!world.run(kEventLimit, clients)) return "does not come to rest\n" + world.trace();
    }
    totals.add(a.count());
    totals.add(b.count());
    for (Direction* direction : {&there, &back}) {
        const std::string wrong = direction->check();
        if (!wrong.empty()) return wrong + '\n' + world.trace();
    }
    return "";
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
