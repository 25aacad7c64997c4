// The subnet manager over several engines' switches and adapters, joined by wires that may lose packets.
#include <gtest/gtest.h>

#include "tests/conformance/rows.h"
#include "tests/unit/management/subnet_world.h"

namespace uib::management {
namespace {

constexpr Time kSecond = 1'000'000'000;

McMemberRecord full_member_of(const net::Gid& group) {
    McMemberRecord record;
    record.group = group;
    record.join_state = kFullMember;
    return record;
}

TEST(Subnet, OneEngineIsReadyWhenItsManagerHasStarted) {
    SubnetWorld world(1);
    world.add({.guid = 0x10, .adapters = 3, .externals = 0});
    world.start(0, {.sweep_interval = 0});
    EXPECT_TRUE(world[0].subnet->manager()->settled());
    EXPECT_EQ(world[0].subnet->manager()->state(), SmState::kMaster);
    EXPECT_EQ(world[0].subnet->manager()->next_deadline(), kNever);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(world.lid(0, i), i + 1);
        EXPECT_EQ(world[0].subnet->port_of(i).info.master_sm_lid, 1U);
        EXPECT_EQ(world[0].subnet->port_of(i).info.neighbor_mtu, 5U);
    }
    world.expect_whole({0});
}

TEST(Subnet, AManagerMayRunAtASwitch) {
    SubnetWorld world(1);
    world.add({.guid = 0x10, .adapters = 0, .externals = 1});
    world.add({.guid = 0x20});
    world.join(0, 0, 1, 0);
    world.start(0);
    ASSERT_TRUE(world.run_until_settled(10 * kSecond));
    EXPECT_EQ(world.lid(1, 0), 1);
    EXPECT_EQ(world[1].subnet->port_of(0).info.master_sm_lid,
              world[0].subnet->switch_node().node().port(0).info.lid);
    world.expect_whole({0, 1});
}

TEST(Subnet, ANewManagerTakesThePlaceOfTheOld) {
    SubnetWorld world(1);
    world.add({.guid = 0x10, .adapters = 2, .externals = 0});
    world.start(0);
    world.start(0, {.lmc = 1});
    EXPECT_NE(world[0].subnet->port_of(0).info.capability_mask & kIsSm, 0U);
    EXPECT_EQ(world[0].subnet->port_of(1).info.lmc, 1U);
    world.expect_whole({0});
}

TEST(Subnet, MaskControlGivesEachPortARange) {
    SubnetWorld world(1);
    world.add({.guid = 0x10, .adapters = 3, .externals = 0});
    world.start(0, {.lmc = 2});
    EXPECT_EQ(world.lid(0, 0), 4);
    EXPECT_EQ(world.lid(0, 1), 8);
    EXPECT_EQ(world.lid(0, 2), 12);
    EXPECT_EQ(world.walk(0, 7), std::pair(0, 0));
    world.expect_whole({0});
}

TEST(Subnet, TheGidPrefixAndTheManagersLidAreEverywhere) {
    SubnetWorld world(1);
    world.add({.guid = 0x10});
    world.add({.guid = 0x20});
    world.join(0, 0, 1, 0);
    world.start(0, {.gid_prefix = 0xFEC0000000000042});
    ASSERT_TRUE(world.run_until_settled(10 * kSecond));
    for (std::size_t engine = 0; engine < 2; ++engine)
        for (std::size_t adapter = 0; adapter < 2; ++adapter) {
            EXPECT_EQ(world[engine].subnet->port_of(adapter).info.gid_prefix, 0xFEC0000000000042U);
            EXPECT_EQ(world[engine].subnet->port_of(adapter).info.master_sm_lid, world.lid(0, 0));
        }
    world.expect_whole({0, 1});
}

TEST(Subnet, BothSidesStartAtOnceAndTheLowerGuidIsMaster) {
    for (const double loss : {0.0, 0.2})
        for (unsigned seed = 0; seed < 10; ++seed) {
            SubnetWorld world(seed, loss);
            world.add({.guid = 0x20});
            world.add({.guid = 0x10});
            world.join(0, 0, 1, 0);
            world.start(0);
            world.start(1);
            world.run_for(120 * kSecond);
            EXPECT_EQ(world.masters(), std::vector<std::size_t>{1}) << "seed " << seed << " loss " << loss;
            world.expect_whole({0, 1});
        }
}

TEST(Subnet, PriorityComesBeforeTheGuid) {
    SubnetWorld world(3);
    world.add({.guid = 0x10});
    world.add({.guid = 0x20});
    world.join(0, 0, 1, 0);
    world.start(0);
    world.start(1, {.priority = 5});
    world.run_for(120 * kSecond);
    EXPECT_EQ(world.masters(), std::vector<std::size_t>{1});
    world.expect_whole({0, 1});
}

TEST(Subnet, AMasterHandsOverToABetterManagerThatComesLater) {
    SubnetWorld world(3);
    world.add({.guid = 0x10});
    world.add({.guid = 0x20});
    world.join(0, 0, 1, 0);
    world.start(0);
    world.run_for(5 * kSecond);
    ASSERT_EQ(world.masters(), std::vector<std::size_t>{0});
    const net::Lid before = world.lid(1, 1);
    world.start(1, {.priority = 1});
    world.run_for(120 * kSecond);
    EXPECT_EQ(world.masters(), std::vector<std::size_t>{1});
    EXPECT_EQ(world.lid(1, 1), before);
    EXPECT_EQ(world[0].subnet->port_of(0).info.master_sm_lid, world.lid(1, 0));
    world.expect_whole({0, 1});
}

TEST(Subnet, ASquareOfSwitchesWithOneLinkToSpare) {
    for (unsigned seed = 0; seed < 5; ++seed) {
        SubnetWorld world(seed, 0.03);
        for (unsigned i = 0; i < 4; ++i)
            world.add({.guid = 0x10ULL * (4 - i), .adapters = 2, .externals = 3});
        std::vector<std::size_t> wires;
        for (unsigned i = 0; i < 4; ++i) wires.push_back(world.join(i, 0, (i + 1) % 4, 1));
        for (unsigned i = 0; i < 4; ++i) world.start(i);
        world.run_for(200 * kSecond);
        EXPECT_EQ(world.masters(), std::vector<std::size_t>{3});
        world.expect_whole({0, 1, 2, 3});
        std::vector<net::Lid> lids;
        for (unsigned i = 0; i < 4; ++i) lids.push_back(world.lid(i, 0));
        for (const std::size_t wire : wires) {
            world.set_wire(wire, false);
            world.run_for(100 * kSecond);
            world.expect_whole({0, 1, 2, 3});
            world.set_wire(wire, true);
            world.run_for(100 * kSecond);
            world.expect_whole({0, 1, 2, 3});
        }
        for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(world.lid(i, 0), lids[i]);
    }
}

TEST(Subnet, AStandbyTakesOverWhenTheMasterIsGone) {
    SubnetWorld world(7, 0.05);
    for (unsigned i = 0; i < 3; ++i) world.add({.guid = 0x10ULL * (i + 1)});
    world.join(0, 0, 1, 0);
    world.join(1, 1, 2, 0);
    for (unsigned i = 0; i < 3; ++i) world.start(i);
    world.run_for(100 * kSecond);
    ASSERT_EQ(world.masters(), std::vector<std::size_t>{0});
    const net::Lid before = world.lid(2, 1);
    world[0].subnet->stop_manager();
    world.run_for(100 * kSecond);
    EXPECT_EQ(world.masters(), std::vector<std::size_t>{1});
    EXPECT_EQ(world.lid(2, 1), before);
    EXPECT_EQ(world[2].subnet->port_of(0).info.master_sm_lid, world.lid(1, 0));
    world.expect_whole({0, 1, 2});
}

TEST(Subnet, ACutSubnetIsTwoAndOneAgainWhenTheLinkIsBack) {
    SubnetWorld world(9);
    for (unsigned i = 0; i < 2; ++i) world.add({.guid = 0x10ULL * (i + 1)});
    const std::size_t wire = world.join(0, 0, 1, 0);
    for (unsigned i = 0; i < 2; ++i) world.start(i);
    world.run_for(60 * kSecond);
    ASSERT_EQ(world.masters(), std::vector<std::size_t>{0});
    world.set_wire(wire, false);
    world.run_for(60 * kSecond);
    EXPECT_EQ(world.masters(), (std::vector<std::size_t>{0, 1}));
    world.expect_whole({0});
    world.expect_whole({1});
    EXPECT_EQ(world.walk(0, world.lid(1, 0)), std::pair(-1, -1));
    world.set_wire(wire, true);
    world.run_for(60 * kSecond);
    EXPECT_EQ(world.masters(), std::vector<std::size_t>{0});
    world.expect_whole({0, 1});
}

TEST(Subnet, TwoSubnetsThatGrewApartGetDistinctLidsWhenJoined) {
    SubnetWorld world(9);
    for (unsigned i = 0; i < 2; ++i) world.add({.guid = 0x10ULL * (i + 1), .adapters = 3});
    for (unsigned i = 0; i < 2; ++i) world.start(i);
    world.run_for(60 * kSecond);
    ASSERT_EQ(world.lid(0, 0), world.lid(1, 0));
    world.join(0, 0, 1, 0);
    world.run_for(60 * kSecond);
    EXPECT_EQ(world.masters(), std::vector<std::size_t>{0});
    EXPECT_EQ(world.lid(0, 0), 1);
    world.expect_whole({0, 1});
}

TEST(Subnet, MulticastReachesEachMemberOnce) {
    ROWS("o7-13.1.1", "o7-13.1.1/1", "o7-13.1.1/2", "o7-13.1.1/8");
    SubnetWorld world(11);
    for (unsigned i = 0; i < 4; ++i) world.add({.guid = 0x10ULL * (i + 1), .adapters = 3, .externals = 3});
    for (unsigned i = 0; i < 4; ++i) world.join(i, 0, (i + 1) % 4, 1);
    const std::size_t diagonal = world.join(0, 2, 2, 2);
    world.start(0);
    world.run_for(20 * kSecond);
    SubnetManager& manager = *world[0].subnet->manager();
    net::Gid group{};
    group[0] = 0xFF;
    net::Gid other = group;
    other[15] = 1;
    const net::Lid mlid = manager.join(full_member_of(group), 0x11, world.now());
    ASSERT_GE(mlid, net::kMulticastLidFirst);
    EXPECT_EQ(manager.join(full_member_of(group), 0x30, world.now()), mlid);
    EXPECT_EQ(manager.join(full_member_of(group), 0x42, world.now()), mlid);
    EXPECT_NE(manager.join(full_member_of(other), 0x42, world.now()), mlid);
    world.run_for(kSecond);
    using Copies = std::map<std::pair<std::size_t, SubnetWorld::PortIndex>, unsigned>;
    const Copies members = {{{0, 1}, 1}, {{2, 0}, 1}, {{3, 2}, 1}};
    for (std::size_t from = 0; from < 4; ++from) EXPECT_EQ(world.flood(from, 0, mlid), members) << from;
    world.set_wire(diagonal, false);
    world.run_for(60 * kSecond);
    for (std::size_t from = 0; from < 4; ++from) EXPECT_EQ(world.flood(from, 0, mlid), members) << from;
    EXPECT_TRUE(manager.leave(group, 0x30, kFullMember, world.now()));
    world.run_for(kSecond);
    EXPECT_EQ(world.flood(0, 0, mlid), (Copies{{{0, 1}, 1}, {{3, 2}, 1}}));
}

// Whoever was a member in its earlier term may have left since: only those who register anew are.
TEST(Subnet, AManagerThatBecomesMasterAgainStartsWithoutMembers) {
    SubnetWorld world(12);
    world.add({.guid = 0x10});
    world.add({.guid = 0x20});
    world.join(0, 0, 1, 0);
    world.start(0);
    world.run_for(5 * kSecond);
    net::Gid group{};
    group[0] = 0xFF;
    const net::Lid mlid = world[0].subnet->manager()->join(full_member_of(group), 0x21, world.now());
    world.run_for(kSecond);
    ASSERT_EQ(world.flood(0, 0, mlid).size(), 1U);
    world.start(1, {.priority = 1});
    world.run_for(60 * kSecond);
    ASSERT_EQ(world.masters(), std::vector<std::size_t>{1});
    EXPECT_TRUE(world.flood(0, 0, mlid).empty());
    const std::uint32_t before = world[1].subnet->port_of(1).reregistrations;
    world[1].subnet->stop_manager();
    world.run_for(60 * kSecond);
    ASSERT_EQ(world.masters(), std::vector<std::size_t>{0});
    EXPECT_TRUE(world.flood(0, 0, mlid).empty());
    EXPECT_EQ(world[1].subnet->port_of(1).reregistrations, before + 1) << "ports were told, once";
}

TEST(Subnet, PortsWithSeveralVirtualLanesGetTablesForThem) {
    ROWS("U7-4");
    SubnetWorld world(13);
    for (unsigned i = 0; i < 2; ++i) world.add({.guid = 0x10ULL * (i + 1), .adapters = 1, .externals = 1});
    Node& a = world[0].subnet->switch_node().node();
    Node& b = world[1].subnet->switch_node().node();
    a.set_vl_cap(2, 4);
    b.set_vl_cap(2, 3);
    // Whatever the tables held: they are set before the port carries data (7.6.7).
    a.sl_to_vl(1, 2).fill(15);
    bool armed = false;
    world[0].subnet->on_switch_change([&](unsigned port) {
        if (port != 2 || a.port(2).info.port_state != kStateArmed) return;
        armed = true;
        for (unsigned sl = 0; sl < 16; ++sl) EXPECT_EQ(a.sl_to_vl(1, 2)[sl], sl % 4);
        EXPECT_EQ(a.port(2).vl_arbitration[0][3], (VlWeight{3, 64}));
    });
    world.join(0, 0, 1, 0);
    world.start(0);
    world.run_for(20 * kSecond);
    EXPECT_TRUE(armed);
    EXPECT_EQ(a.port(2).info.operational_vls, 3U);
    EXPECT_EQ(b.port(2).info.operational_vls, 3U);
    for (unsigned sl = 0; sl < 16; ++sl) EXPECT_EQ(a.sl_to_vl(1, 2)[sl], sl % 4);
    EXPECT_EQ(b.port(2).vl_arbitration[0][3], (VlWeight{3, 64}));
    EXPECT_EQ(b.port(2).vl_arbitration[0][4], (VlWeight{0, 0}));
    EXPECT_EQ(a.port(1).info.operational_vls, 1U);
}

TEST(Subnet, ASweepWithoutChangesSetsNothing) {
    SubnetWorld world(15);
    world.add({.guid = 0x10, .adapters = 2, .externals = 1});
    world.start(0);
    world.run_for(kSecond);
    const std::uint64_t first = world[0].subnet->manager()->requests().sent();
    world.run_for(5 * kSecond);
    EXPECT_EQ(world[0].subnet->manager()->requests().sent(), first);
    world.run_for(200 * kSecond);
    EXPECT_GT(world[0].subnet->manager()->sweeps(), 2U);
    const std::uint64_t looks = world[0].subnet->manager()->requests().sent() - first;
    // One Get a look; a sweep asks the switch and three nodes' ports.
    EXPECT_LT(looks, 80U);
}

}  // namespace
}  // namespace uib::management
