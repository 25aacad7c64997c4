#include "net/link/port_counters.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <utility>

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

// Table of 16.1.3.5.
TEST(PortCounters, have_the_width_of_the_attribute) {
    using C = PortCounter;
    const std::array widths{
        std::pair{C::kSymbolErrors, 16},
        std::pair{C::kLinkErrorRecovery, 8},
        std::pair{C::kLinkDowned, 8},
        std::pair{C::kRcvErrors, 16},
        std::pair{C::kRcvRemotePhysicalErrors, 16},
        std::pair{C::kRcvSwitchRelayErrors, 16},
        std::pair{C::kXmitDiscards, 16},
        std::pair{C::kXmitConstraintErrors, 8},
        std::pair{C::kRcvConstraintErrors, 8},
        std::pair{C::kLocalLinkIntegrityErrors, 4},
        std::pair{C::kExcessiveBufferOverrunErrors, 4},
        std::pair{C::kVl15Dropped, 16},
        std::pair{C::kXmitData, 32},
        std::pair{C::kRcvData, 32},
        std::pair{C::kXmitPkts, 32},
        std::pair{C::kRcvPkts, 32},
        std::pair{C::kXmitWait, 32},
        std::pair{C::kUnicastXmitPkts, 64},
        std::pair{C::kUnicastRcvPkts, 64},
        std::pair{C::kMulticastXmitPkts, 64},
        std::pair{C::kMulticastRcvPkts, 64},
    };
    ASSERT_EQ(widths.size(), kPortCounterCount);
    std::set<std::string> names;
    for (const auto& [counter, bits] : widths) {
        const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits);
        EXPECT_EQ(largest_value(counter), most) << name_of(counter);
        PortCounters counters;
        counters.add(counter, most);
        EXPECT_EQ(counters.value(counter), most);
        if (bits < 64) counters.add(counter, 1);
        EXPECT_EQ(counters.value(counter), most) << name_of(counter) << " sticks";
        names.insert(name_of(counter));
    }
    EXPECT_EQ(names.size(), kPortCounterCount);
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
