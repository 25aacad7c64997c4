// Engines joined by trunks: links, one subnet, what becomes of it when engines go and come.
#include <set>

#include "net/wire/codec.h"
#include "net/wire/length.h"
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

TEST_F(JoinedEngines, LinksHaveTheLifetimesFiltersAndThresholdsThatManagementSets) {
    Engine& a = add(0x100, 1);
    add(0x200, 2);
    run(3000 * kMillisecond);
    const net::link::LinkPort& link = a.joint->trunk().link(0);
    EXPECT_EQ(link.settings().packet_life, 20) << "for ever, as long as nobody says otherwise";
    Node& node = a.subnet->switch_node().node();
    const unsigned port = a.joint->first() + 1;
    PortInfo& info = node.port(port).info;
    info.hoq_life = 17;
    info.vl_stall_count = 3;
    info.filter_raw_inbound = info.filter_raw_outbound = 1;
    info.vl_high_limit = 9;
    info.local_phy_errors = 4;
    info.overrun_errors = 5;
    node.changed(port);
    step();
    EXPECT_EQ(link.settings().hoq_life, 17);
    // What is the switch's reaches all its links.
    net::Smp smp;
    smp.header.management_class = net::kClassSubnLidRouted;
    smp.header.method = net::MadMethod::kSet;
    smp.header.attribute_id = static_cast<std::uint16_t>(AttributeId::kSwitchInfo);
    SwitchInfo wanted = node.switch_info;
    wanted.life_time = 18;
    encode(wanted, smp.data);
    ASSERT_TRUE(answer(node, port, smp, now_).has_value());
    step();
    EXPECT_EQ(link.settings().packet_life, 18);
    EXPECT_EQ(link.settings().vl_stall_count, 3);
    EXPECT_TRUE(link.settings().filter_raw_inbound && link.settings().filter_raw_outbound);
    EXPECT_EQ(link.settings().vl_high_limit, 9);
    EXPECT_EQ(link.settings().local_phy_errors, 4);
    EXPECT_EQ(link.settings().overrun_errors, 5);
}

// o7-6: rows of the table are those of the ports where packets come into the switch.
TEST_F(JoinedEngines, ServiceLevelsAreMappedByThePortWhereAPacketCameIn) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    Node& node = a.subnet->switch_node().node();
    const unsigned out = a.joint->first() + 1;
    for (unsigned adapter = 0; adapter < kAdapters; ++adapter)
        node.sl_to_vl(adapter + 1, out)[5] = static_cast<std::uint8_t>(adapter + 2);
    node.changed(out);
    step();
    const net::Lid target = lid(b, 0);
    for (unsigned adapter = 0; adapter < kAdapters; ++adapter) {
        net::Packet sent = packet(lid(a, adapter), target, 1, {});
        sent.lrh.sl = 5;
        a.joint->send(a.fabric.route(target), sent, now_);
        EXPECT_EQ(a.joint->trunk().link(0).queued_packets(static_cast<std::uint8_t>(adapter + 2)), 1U);
    }
}

// 18.2.4.3: tables that point at each other would send a packet back and forth for ever.
TEST_F(JoinedEngines, NoPacketGoesBackWhereItCameFrom) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    constexpr net::Lid kNobody = 60;
    for (Engine* engine : {&a, &b}) {
        std::array<net::PortNumber, net::kLinearBlock> block = engine->fabric.tables().linear_block(0);
        block[kNobody] = static_cast<net::PortNumber>(engine->joint->first() + 1);
        ASSERT_TRUE(engine->fabric.set_linear_block(0, block));
        ASSERT_TRUE(engine->fabric.set_top(kNobody));
    }
    net::link::LinkPort& link = b.joint->trunk().link(0);
    const std::uint64_t before = link.counters().total(net::link::PortCounter::kRcvSwitchRelayErrors);
    a.joint->send(a.joint->first(), packet(lid(a, 0), kNobody, 1, {}), now_);
    run(3 * kMillisecond);
    EXPECT_EQ(b.joint->counters().way_back, 1U);
    EXPECT_EQ(link.counters().total(net::link::PortCounter::kRcvSwitchRelayErrors), before + 1);
    EXPECT_EQ(a.joint->counters().way_back, 0U);
    // What has no way at all is an error of the same class.
    a.joint->send(a.joint->first(), packet(lid(a, 0), kNobody + 1, 1, {}), now_);
    run(3 * kMillisecond);
    EXPECT_EQ(b.joint->counters().no_route, 1U);
    EXPECT_EQ(link.counters().total(net::link::PortCounter::kRcvSwitchRelayErrors), before + 2);
}

// C7-1.1.1/10 and /11, C7-1.a1: one packet of a data VL makes everything Active on its way that is Armed.
TEST_F(JoinedEngines, TheFirstPacketThroughArmedPortsMakesThemActiveAndArrives) {
    Engine& a = add(0x100, 1);
    Engine& b = add(0x200, 2);
    run(3000 * kMillisecond);
    Node& node = a.subnet->switch_node().node();
    const auto arm = [](Node& of, unsigned port) {
        of.port(port).info.port_state = kStateArmed;
        of.changed(port);
    };
    for (unsigned port = 1; port <= kAdapters + 1; ++port) arm(node, port);
    for (unsigned i = 0; i < kAdapters; ++i) arm(a.subnet->adapter(i).node(), 1);
    ASSERT_TRUE(a.joint->trunk().link(0).command(kStateArmed, now_));
    ASSERT_EQ(a.fabric.route(lid(a, 0)), net::InternalSwitch::kNoPort);
    b.joint->send(b.fabric.route(lid(a, 0)), packet(lid(b, 0), lid(a, 0), 8, {}), now_);
    run(3 * kMillisecond);
    ASSERT_EQ(a.arrived.size(), 1U);
    EXPECT_EQ(a.arrived[0].psn, 8U);
    EXPECT_EQ(a.joint->trunk().link(0).state(), net::link::PortState::kActive);
    for (unsigned port = 1; port <= kAdapters + 1; ++port)
        EXPECT_EQ(node.port(port).info.port_state, kStateActive) << "switch port " << port;
    EXPECT_TRUE(active(a, 0));
    EXPECT_FALSE(active(a, 1)) << "nothing came to it";
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

TEST_F(JoinedEngines, TwoTrunksOfAnEngineJoinTheEnginesBehindThem) {
    Engine& a = add(0x100, 1, {0});
    Engine& between = add(0x200, 2, {0, 1});
    Engine& b = add(0x300, 3, {1});
    run(4000 * kMillisecond);
    EXPECT_EQ(a.subnet->manager()->state(), SmState::kMaster) << "of all three";
    expect_reachable(a, 0, b, 1);
    expect_reachable(b, 1, a, 0);
    expect_reachable(b, 0, between, 0);
    EXPECT_TRUE(between.arrived.size() == 1) << "only what is for it";
}

// What has no way on waits where it came in, and its sender for credits. A switch does not look behind the
// LRH: a damaged ICRC is for the end port to find.
TEST_F(JoinedEngines, NothingIsLostOnTheWayThroughAnEngineWhoseNextLinkIsSlower) {
    Engine& a = add(0x100, 1, {0});
    Engine& between = add(0x200, 2, {0, 1});
    Engine& b = add(0x300, 3, {1});
    run(4000 * kMillisecond);
    between.cables[1].frames->depth = 3;
    const net::Lid target = lid(b, 1);
    const std::vector<std::byte> payload(2048, std::byte{7});
    std::uint32_t psn = 0;
    while (psn < 2000) {
        for (std::uint32_t i = std::min(a.joint->room(), 2000 - psn); i > 0; --i)
            a.joint->send(a.fabric.route(target), packet(lid(a, 0), target, psn++, payload), now_);
        step();
        now_ += kMillisecond / 2;
    }
    run(500 * kMillisecond);
    ASSERT_EQ(b.arrived.size(), 2000U);
    for (std::uint32_t i = 0; i < 2000; ++i) EXPECT_EQ(b.arrived[i].psn, i);
    EXPECT_GT(a.joint->trunk().link(0).counters().total(net::link::PortCounter::kXmitWait), 0U);
    for (const Cable& cable : between.cables) EXPECT_EQ(cable.joint->counters().discarded, 0U);

    const net::Packet whole = packet(lid(a, 0), target, 1, payload);
    std::vector<std::byte> damaged(net::packet_bytes(whole) + net::kVcrcBytes);
    net::encode(whole, damaged);
    damaged[100] ^= std::byte{1};
    net::link::LinkPort& link = a.joint->trunk().link(0);
    ASSERT_EQ(link.forward(damaged, 0, now_), net::link::Enqueued::kQueued) << "with a good VCRC";
    run(3 * kMillisecond);
    EXPECT_EQ(between.joint->counters().icrc_errors, 0U);
    EXPECT_EQ(b.joint->counters().icrc_errors, 1U);
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
