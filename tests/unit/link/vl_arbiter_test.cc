#include "net/link/vl_arbiter.h"

#include <gtest/gtest.h>

#include "tests/simulation/random.h"

namespace uib::net::link {
namespace {

/// The VLs of the next `count` packets if each VL always has one of these sizes.
std::vector<int> order(VlArbiter& arbiter, const ReadyWords& ready, int count) {
    std::vector<int> vls;
    for (int i = 0; i < count; ++i) {
        const auto vl = arbiter.next(ready);
        vls.push_back(vl ? int{*vl} : -1);
    }
    return vls;
}

TEST(VlArbiter, gives_nothing_when_nothing_is_ready) {
    VlArbiter arbiter;
    arbiter.set_tables({.high = {{1, 5}}, .low = {{0, 5}}});
    EXPECT_EQ(arbiter.next({}), std::nullopt);
}

TEST(VlArbiter, begins_with_the_first_entry_and_spends_its_weight) {
    VlArbiter arbiter;
    arbiter.set_tables({.high = {}, .low = {{0, 2}, {1, 1}}});
    // 32 words for VL0: one packet of 20 leaves 12, the next may overdraw them.
    EXPECT_EQ(order(arbiter, {20, 20}, 6), (std::vector{0, 0, 1, 0, 0, 1}));
}

TEST(VlArbiter, serves_lanes_of_no_table_when_nothing_else_is_ready) {
    VlArbiter arbiter;
    arbiter.set_tables({.high = {}, .low = {{0, 1}}});
    EXPECT_EQ(order(arbiter, {10, 10, 10}, 2), (std::vector{0, 0}));
    EXPECT_EQ(order(arbiter, {0, 10, 10}, 4), (std::vector{1, 2, 1, 2}));
}

TEST(VlArbiter, sends_one_high_packet_between_low_ones_at_limit_zero) {
    VlArbiter arbiter;
    arbiter.set_tables({.high = {{1, 255}}, .low = {{0, 255}}});
    arbiter.set_limit(0);
    EXPECT_EQ(order(arbiter, {10, 10}, 5), (std::vector{1, 0, 1, 0, 1}));
    // The low table has nothing: the high one goes on at once.
    EXPECT_EQ(order(arbiter, {0, 10}, 3), (std::vector{1, 1, 1}));
}

}  // namespace
}  // namespace uib::net::link
