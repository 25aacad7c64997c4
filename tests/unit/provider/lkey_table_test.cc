#include "provider/lkey_table.h"

#include <gtest/gtest.h>

namespace uib::provider {
namespace {

LkeyTable::Region region(std::uint32_t lkey, std::uint32_t pd = 1) {
    return {lkey, pd, RegionPlace::kHere, true, 0x1000, 0x100, 0x7000};
}

TEST(LkeyTable, finds_live_keys_of_the_same_domain_only) {
    LkeyTable table;
    EXPECT_EQ(table.find(0x12345678, 1), nullptr);
    table.insert(region(0x12345678));
    ASSERT_NE(table.find(0x12345678, 1), nullptr);
    EXPECT_EQ(table.find(0x12345678, 2), nullptr);
    EXPECT_EQ(table.find(0x12345679, 1), nullptr);  // another variant
    EXPECT_EQ(table.find(0x12345778, 1), nullptr);  // another index
    table.erase(0x12345678);
    EXPECT_EQ(table.find(0x12345678, 1), nullptr);
}

TEST(LkeyTable, erasing_an_outdated_variant_changes_nothing) {
    LkeyTable table;
    table.insert(region(0x12345678));
    table.insert(region(0x12345679));
    table.erase(0x12345678);
    EXPECT_NE(table.find(0x12345679, 1), nullptr);
}

TEST(LkeyTable, locates_within_bounds_without_wrapping) {
    LkeyTable table;
    table.insert(region(0x100));
    const LkeyTable::Entry* entry = table.find(0x100, 1);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->locate(0x1000, 0x100), 0x7000U);
    EXPECT_EQ(entry->locate(0x10ff, 1), 0x70ffU);
    EXPECT_EQ(entry->locate(0x10ff, 2), 0U);
    EXPECT_EQ(entry->locate(0xfff, 1), 0U);
    EXPECT_EQ(entry->locate(0x1001, UINT64_MAX), 0U);
}

TEST(LkeyTable, holds_many_keys) {
    LkeyTable table;
    for (std::uint32_t i = 0; i < 20'000; ++i) table.insert(region(i * 2654435761U & ~0xffU));
    for (std::uint32_t i = 0; i < 20'000; ++i) EXPECT_NE(table.find(i * 2654435761U & ~0xffU, 1), nullptr);
}

}  // namespace
}  // namespace uib::provider
