// Engines joined by trunks: links, one subnet, what becomes of it when engines go and come.
#include <set>

#include "tests/unit/management/joined_engines.h"

namespace uib::management {
namespace {

TEST_F(JoinedEngines, TwoEnginesBecomeOneSubnet) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    std::set<net::Lid> lids;
    for (Engine* engine : {&a, &b}) {
        for (unsigned i = 0; i < kAdapters; ++i) {
            EXPECT_TRUE(active(*engine, i));
            EXPECT_TRUE(lids.insert(lid(*engine, i)).second) << "LID twice";
        }
    }
    EXPECT_EQ(a.subnet->manager()->state(), SmState::kMaster) << "the lower GUID";
    EXPECT_EQ(b.subnet->manager()->state(), SmState::kStandby);
    for (unsigned i = 0; i < kAdapters; ++i)
        for (unsigned k = 0; k < kAdapters; ++k) {
            expect_reachable(a, i, b, k);
            expect_reachable(b, k, a, i);
        }
}

// The manager sets lanes, then the tables that spread service levels over them: the link has both in the end.
TEST_F(JoinedEngines, LinksHaveTheLanesAndTablesThatManagementSets) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    for (Engine* engine : {&a, &b}) {
        const net::link::LinkPort& link = engine->joint->trunk().link(0);
        ASSERT_EQ(link.operational_vls(), 4U);
        for (unsigned sl = 0; sl < kServiceLevels; ++sl)
            EXPECT_EQ(link.sl_to_vl(0)[sl], sl % 4) << "SL " << sl;
        ASSERT_EQ(link.arbitration().low.size(), 4U);
        for (unsigned vl = 0; vl < 4; ++vl) EXPECT_EQ(link.arbitration().low[vl].vl, vl);
    }
    const net::Lid target = lid(b, 0);
    const auto port = a.fabric.route(target);
    net::Packet onto_third = packet(lid(a, 0), target, 1, {});
    onto_third.lrh.sl = 6;
    a.joint->send(port, onto_third, now_);
    EXPECT_EQ(a.joint->trunk().link(0).queued_packets(2), 1U);
    run(3 * kMillisecond);
    EXPECT_EQ(b.arrived.size(), 1U);
}

TEST_F(JoinedEngines, NothingIsLostWhenTheSenderIsFasterThanTheLink) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    const net::Lid target = lid(b, 1);
    const auto port = a.fabric.route(target);
    ASSERT_NE(port, net::InternalSwitch::kNoPort);
    a.frames->depth = 3;
    const std::vector<std::byte> payload(2048, std::byte{7});
    std::uint32_t psn = 0;
    while (psn < 500) {
        for (std::uint32_t i = std::min(a.joint->room(), 500 - psn); i > 0; --i)
            a.joint->send(port, packet(lid(a, 0), target, psn++, payload), now_);
        step();
        now_ += kMillisecond / 2;
    }
    run(500 * kMillisecond);
    ASSERT_EQ(b.arrived.size(), 500U);
    for (std::uint32_t i = 0; i < 500; ++i) EXPECT_EQ(b.arrived[i].psn, i);
    EXPECT_GT(a.joint->counters().waited, 0U);
    EXPECT_EQ(a.joint->counters().discarded, 0U);
}

TEST_F(JoinedEngines, TheSubnetHealsWhenAnEngineComesBack) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    const net::Lid before = lid(b, 0);
    a.silent = true;
    run(4000 * kMillisecond);
    EXPECT_EQ(b.subnet->manager()->state(), SmState::kMaster) << "took over";
    EXPECT_TRUE(active(b, 0));
    a.silent = false;
    run(6000 * kMillisecond);
    EXPECT_NE(lid(a, 0), lid(b, 0));
    EXPECT_EQ(lid(b, 0), before) << "LIDs are kept";
    expect_reachable(a, 0, b, 0);
    expect_reachable(b, 1, a, 1);
}

// The others' links have nothing to do with the one that is gone: traffic goes on, and there is no end of
// sweeping.
TEST_F(JoinedEngines, OneOfThreeGoesAndTheOthersGoOn) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    Engine& c = add(0x300, 3);
    run(4000 * kMillisecond);
    expect_reachable(a, 0, c, 0);
    c.silent = true;
    for (int i = 0; i < 60; ++i) {
        run(50 * kMillisecond);
        expect_reachable(a, 0, b, 1);
        expect_reachable(b, 1, a, 0);
    }
    const std::uint64_t before = a.subnet->manager()->sweeps();
    run(10'000 * kMillisecond);
    EXPECT_LT(a.subnet->manager()->sweeps() - before, 10U);
    EXPECT_EQ(a.subnet->manager()->state(), SmState::kMaster);
    EXPECT_EQ(b.subnet->manager()->state(), SmState::kStandby);
}

TEST_F(JoinedEngines, ALossyWireBecomesASubnetToo) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    std::uint32_t state = 5;
    lose = [&state] {
        state = state * 1664525 + 1013904223;
        return (state >> 24) < 13;  // 5 %
    };
    run(10'000 * kMillisecond);
    lose = nullptr;
    run(1000 * kMillisecond);
    expect_reachable(a, 0, b, 0);
    expect_reachable(b, 0, a, 0);
}

}  // namespace
}  // namespace uib::management
