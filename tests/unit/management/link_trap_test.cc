// Changes of links that the master's own switch does not see: traps tell it, long before it looks.
#include <gtest/gtest.h>

#include "tests/unit/management/subnet_world.h"

namespace uib::management {
namespace {

constexpr Time kSecond = 1'000'000'000;
constexpr Time kMillisecond = 1'000'000;

/// Three engines in a row, the master at the first, which looks only once in an hour.
class Traps : public ::testing::Test {
  protected:
    Traps() {
        for (unsigned i = 0; i < 3; ++i)
            world_.add({.guid = 0x10ULL * (i + 1), .adapters = 2, .externals = 2});
        world_.join(0, 0, 1, 0);
        far_ = world_.join(1, 1, 2, 0);
        world_.start(0, {.sweep_interval = 3600 * kSecond});
        world_.run_for(30 * kSecond);
        world_.expect_whole({0, 1, 2});
    }
    const SubnetManager& manager() { return *world_[0].subnet->manager(); }
    std::uint64_t sent(std::size_t engine) { return world_[engine].subnet->link_trap().sent(); }

    SubnetWorld world_{5};
    std::size_t far_ = 0;
};

TEST_F(Traps, ALinkFarFromTheMasterGoesAndComesBack) {
    const std::uint64_t first = sent(1);
    world_.set_wire(far_, false);
    world_.run_for(100 * kMillisecond);
    EXPECT_EQ(manager().topology().find(0x30), kNoNode) << "the master knows that it is gone";
    EXPECT_EQ(world_.walk(0, world_.lid(2, 0)), std::pair(-1, -1));
    EXPECT_EQ(sent(1), first + 1);
    world_.run_for(10 * kSecond);
    EXPECT_EQ(sent(1), first + 1) << "repressed";
    world_.set_wire(far_, true);
    world_.run_for(100 * kMillisecond);
    world_.expect_whole({0, 1, 2});
    EXPECT_EQ(sent(1), first + 2);
    EXPECT_EQ(world_[0].subnet->adapter(0).drops().unexpected, 0U);
}

TEST_F(Traps, AnAdaptersPortIsActiveAgainAtOnce) {
    const std::uint64_t first = sent(2);
    world_[2].subnet->set_adapter_link(1, false, world_.now());
    world_.run_for(100 * kMillisecond);
    EXPECT_EQ(manager().topology().find(0x31), kNoNode);
    EXPECT_EQ(manager().topology().nodes().size(), 8U) << "all others are there";
    const net::Lid lid = world_.lid(2, 1);
    world_[2].subnet->set_adapter_link(1, true, world_.now());
    EXPECT_EQ(world_[2].subnet->port_of(1).info.port_state, kStateInitialize);
    EXPECT_EQ(sent(2), first + 1) << "one in each SubnetTimeOut";
    world_.run_for(2 * kSecond);
    EXPECT_EQ(sent(2), first + 2);
    EXPECT_EQ(world_.lid(2, 1), lid);
    world_.expect_whole({0, 1, 2});
}

TEST_F(Traps, NewsThatComeBeforeTheAnswerAreToldAfterIt) {
    const std::uint64_t first = sent(2);
    for (const bool up : {false, true}) world_[2].subnet->set_adapter_link(1, up, world_.now());
    EXPECT_EQ(sent(2), first + 1);
    world_.run_for(5 * kSecond);
    EXPECT_EQ(sent(2), first + 2);
    world_.expect_whole({0, 1, 2});
}

TEST_F(Traps, LostOnesAreRepeatedUntilTheyAreRepressed) {
    world_.set_loss(0.3);
    for (int i = 0; i < 5; ++i) {
        world_.set_wire(far_, i % 2 != 0);
        world_.run_for(20 * kSecond);
    }
    const std::uint64_t repeated = sent(1);
    EXPECT_GT(repeated, 5U);
    world_.run_for(60 * kSecond);
    EXPECT_EQ(sent(1), repeated);
}

TEST_F(Traps, WithoutAMasterTheyEnd) {
    world_[0].subnet->stop_manager();
    const std::uint64_t first = sent(1);
    world_.set_wire(far_, false);
    world_.run_for(60 * kSecond);
    EXPECT_EQ(sent(1), first + LinkTrap::kAttempts);
    EXPECT_EQ(world_[0].subnet->adapter(0).drops().unexpected, LinkTrap::kAttempts);
}

}  // namespace
}  // namespace uib::management
