#include "net/link/port_counters.h"

#include <gtest/gtest.h>

namespace uib::net::link {
namespace {

TEST(PortCounters, stick_at_their_largest_value_until_they_are_set) {
    PortCounters counters;
    counters.add(PortCounter::kLocalLinkIntegrityErrors, 20);
    EXPECT_EQ(counters.value(PortCounter::kLocalLinkIntegrityErrors), 15U);
    EXPECT_EQ(counters.total(PortCounter::kLocalLinkIntegrityErrors), 20U);
    counters.set(PortCounter::kLocalLinkIntegrityErrors, 0);
    EXPECT_EQ(counters.value(PortCounter::kLocalLinkIntegrityErrors), 0U);
    counters.add(PortCounter::kLocalLinkIntegrityErrors);
    EXPECT_EQ(counters.value(PortCounter::kLocalLinkIntegrityErrors), 1U);
    counters.add(PortCounter::kRcvErrors, 70'000);
    EXPECT_EQ(counters.value(PortCounter::kRcvErrors), 0xFFFFU);
    counters.add(PortCounter::kXmitData, 0x1'0000'0005);
    EXPECT_EQ(counters.value(PortCounter::kXmitData), 0xFFFFFFFFU);
    EXPECT_EQ(counters.extended(PortCounter::kXmitData), 0x1'0000'0005U);
}

TEST(PortCounters, take_the_value_of_a_set_that_is_above_what_was_counted) {
    PortCounters counters;
    counters.set(PortCounter::kXmitPkts, 100);
    counters.add(PortCounter::kXmitPkts, 3);
    EXPECT_EQ(counters.value(PortCounter::kXmitPkts), 103U);
    counters.set(PortCounter::kLinkDowned, 1000);
    EXPECT_EQ(counters.value(PortCounter::kLinkDowned), 255U);
}

TEST(PortCounters, are_cleared_apart_from_the_extended_ones) {
    PortCounters counters;
    counters.add(PortCounter::kRcvPkts, 7);
    counters.set(PortCounter::kRcvPkts, 0);
    EXPECT_EQ(counters.extended(PortCounter::kRcvPkts), 7U);
    counters.set_extended(PortCounter::kRcvPkts, 2);
    counters.add(PortCounter::kRcvPkts);
    EXPECT_EQ(counters.extended(PortCounter::kRcvPkts), 3U);
    EXPECT_EQ(counters.value(PortCounter::kRcvPkts), 1U);
}

}  // namespace
}  // namespace uib::net::link
