// KeyTable: keys and the checks of regions, in the order in which they are made.
#include "engine/memory/key_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "engine/memory/buffer_space.h"

namespace uib::memory {
namespace {

constexpr PdId kPd = 7;
constexpr PdId kOtherPd = 8;
constexpr std::uint32_t kQp = 0x11;
constexpr std::uint32_t kAllRights =
    ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic;

class KeyTableTest : public testing::Test {
  protected:
    RegionInit init(std::uint32_t access = kAllRights, std::uint64_t iova = 0x1000,
                    std::uint64_t length = 0x100) {
        RegionInit result;
        result.pd = kPd;
        result.access = access;
        result.iova = iova;
        result.length = length;
        result.space = space_;
        result.space_address = 0x500;
        return result;
    }
    AccessError local(const Region* region, std::uint64_t address, std::uint64_t length, bool write = false) {
        return table_.check_local(kPd, region->key(), address, length, write).error;
    }
    AccessError remote(const Region* region, std::uint64_t address, std::uint64_t length,
                       std::uint32_t rights) {
        return table_.check_remote(kPd, kQp, region->key(), address, length, rights).error;
    }

    std::shared_ptr<BufferSpace> space_ = std::make_shared<BufferSpace>(0x1000);
    KeyTable table_{0x5EED};
};

TEST_F(KeyTableTest, a_good_access_gives_the_slice) {
    Region* const region = table_.add_region(init());
    const Checked checked = table_.check_local(kPd, region->key(), 0x1010, 0x20, true);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked.slice.region, region);
    EXPECT_EQ(checked.slice.offset, 0x10U);
    EXPECT_EQ(checked.slice.length, 0x20U);
    EXPECT_EQ(region->space_address(checked.slice.offset), 0x510U);
}

TEST_F(KeyTableTest, unknown_keys_and_other_variants_are_refused) {
    Region* const region = table_.add_region(init());
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
        const std::uint32_t key = region->key() ^ (1U << bit);
        EXPECT_EQ(table_.check_local(kPd, key, 0x1000, 1, false).error, AccessError::kKey) << bit;
        EXPECT_EQ(table_.check_remote(kPd, kQp, key, 0x1000, 1, ipc::kAccessRemoteRead).error,
                  AccessError::kKey)
            << bit;
    }
}

TEST_F(KeyTableTest, checks_are_made_in_the_order_key_pd_bounds_rights_state) {
    RegionInit closed = init(0);
    closed.may_be_invalidated = true;
    Region* const region = table_.add_region(closed);
    ASSERT_EQ(table_.local_invalidate(kPd, kQp, region->key()), AccessError::kNone);

    // Each call repairs the fault that the one before was refused for.
    const auto check = [&](PdId pd, std::uint32_t key, std::uint64_t address, std::uint32_t rights) {
        return table_.check_remote(pd, kQp, key, address, 1, rights).error;
    };
    const std::uint32_t key = region->key();
    EXPECT_EQ(check(kOtherPd, key ^ 1, 0, ipc::kAccessRemoteRead), AccessError::kKey);
    EXPECT_EQ(check(kOtherPd, key, 0, ipc::kAccessRemoteRead), AccessError::kPd);
    EXPECT_EQ(check(kPd, key, 0, ipc::kAccessRemoteRead), AccessError::kBounds);
    EXPECT_EQ(check(kPd, key, 0x1000, ipc::kAccessRemoteRead), AccessError::kRights);
    EXPECT_EQ(check(kPd, key, 0x1000, 0), AccessError::kState);

    EXPECT_EQ(table_.check_local(kOtherPd, key ^ 1, 0, 1, true).error, AccessError::kKey);
    EXPECT_EQ(table_.check_local(kOtherPd, key, 0, 1, true).error, AccessError::kPd);
    EXPECT_EQ(table_.check_local(kPd, key, 0, 1, true).error, AccessError::kBounds);
    EXPECT_EQ(table_.check_local(kPd, key, 0x1000, 1, true).error, AccessError::kRights);
    EXPECT_EQ(table_.check_local(kPd, key, 0x1000, 1, false).error, AccessError::kState);
}

TEST_F(KeyTableTest, bounds_hold_to_the_byte) {
    Region* const region = table_.add_region(init());
    EXPECT_EQ(local(region, 0x1000, 0x100), AccessError::kNone);
    EXPECT_EQ(local(region, 0x10FF, 1), AccessError::kNone);
    EXPECT_EQ(local(region, 0x1100, 0), AccessError::kNone);
    EXPECT_EQ(local(region, 0x0FFF, 1), AccessError::kBounds);
    EXPECT_EQ(local(region, 0x0FFF, 2), AccessError::kBounds);
    EXPECT_EQ(local(region, 0x1000, 0x101), AccessError::kBounds);
    EXPECT_EQ(local(region, 0x10FF, 2), AccessError::kBounds);
    EXPECT_EQ(local(region, 0x1100, 1), AccessError::kBounds);
    EXPECT_EQ(local(region, 0x1101, 0), AccessError::kBounds);
}

TEST_F(KeyTableTest, ranges_that_wrap_are_refused) {
    Region* const low = table_.add_region(init());
    EXPECT_EQ(local(low, 0x1080, ~std::uint64_t{0}), AccessError::kBounds);
    EXPECT_EQ(local(low, ~std::uint64_t{0}, 0x1100), AccessError::kBounds);

    Region* const high = table_.add_region(init(kAllRights, ~std::uint64_t{0} - 0xFF, 0x200));
    EXPECT_EQ(local(high, ~std::uint64_t{0} - 0xFF, 0x100), AccessError::kNone);
    EXPECT_EQ(local(high, ~std::uint64_t{0}, 1), AccessError::kNone);
    EXPECT_EQ(local(high, ~std::uint64_t{0}, 2), AccessError::kBounds);
    EXPECT_EQ(local(high, ~std::uint64_t{0} - 0xFF, 0x101), AccessError::kBounds);
}

TEST_F(KeyTableTest, an_implicit_region_spans_all_addresses) {
    RegionInit all = init(kAllRights, 0, ~std::uint64_t{0});
    all.space_address = 0;
    Region* const region = table_.add_region(all);
    const Checked checked = table_.check_local(kPd, region->key(), 0x7FFF12345678, 4096, true);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(region->space_address(checked.slice.offset), 0x7FFF12345678U);
    EXPECT_EQ(local(region, 0, 1), AccessError::kNone);
    EXPECT_EQ(local(region, ~std::uint64_t{0} - 1, 1), AccessError::kNone);
    EXPECT_EQ(local(region, ~std::uint64_t{0} - 1, 3), AccessError::kBounds);
}

TEST_F(KeyTableTest, zero_based_regions_start_at_address_zero) {
    Region* const region = table_.add_region(init(kAllRights | ipc::kAccessZeroBased, 0x4000, 0x100));
    EXPECT_EQ(region->iova(), 0U);
    const Checked checked = table_.check_local(kPd, region->key(), 0x10, 0xF0, false);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(region->space_address(checked.slice.offset), 0x510U);
    EXPECT_EQ(local(region, 0x4000, 1), AccessError::kBounds);
}

TEST_F(KeyTableTest, each_right_is_needed_by_itself) {
    struct Case {
        std::uint32_t has, asks;
        AccessError expected;
    };
    const Case cases[] = {
        {ipc::kAccessRemoteRead, ipc::kAccessRemoteRead, AccessError::kNone},
        {ipc::kAccessRemoteRead, ipc::kAccessRemoteWrite, AccessError::kRights},
        {ipc::kAccessRemoteRead, ipc::kAccessRemoteAtomic, AccessError::kRights},
        {ipc::kAccessRemoteWrite, ipc::kAccessRemoteRead, AccessError::kRights},
        {ipc::kAccessRemoteWrite, ipc::kAccessRemoteWrite, AccessError::kNone},
        {ipc::kAccessRemoteAtomic, ipc::kAccessRemoteAtomic, AccessError::kNone},
        {ipc::kAccessRemoteAtomic, ipc::kAccessRemoteWrite, AccessError::kRights},
        {ipc::kAccessLocalWrite, ipc::kAccessRemoteWrite, AccessError::kRights},
    };
    for (const Case& c : cases) {
        Region* const region = table_.add_region(init(c.has));
        EXPECT_EQ(remote(region, 0x1000, 1, c.asks), c.expected) << c.has << " " << c.asks;
    }
    Region* const read_only = table_.add_region(init(ipc::kAccessRemoteRead));
    EXPECT_EQ(local(read_only, 0x1000, 1, false), AccessError::kNone);
    EXPECT_EQ(local(read_only, 0x1000, 1, true), AccessError::kRights);
}

TEST_F(KeyTableTest, a_removed_key_is_dead_and_its_slot_comes_back_with_another_variant) {
    Region* region = table_.add_region(init());
    std::uint32_t key = region->key();
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(table_.remove_region(region), 0);
        EXPECT_EQ(table_.size(), 0U);
        EXPECT_EQ(table_.check_local(kPd, key, 0x1000, 1, false).error, AccessError::kKey);
        region = table_.add_region(init());
        EXPECT_EQ(region->key() >> 8, key >> 8);
        ASSERT_NE(region->key(), key);
        key = region->key();
    }
}

TEST_F(KeyTableTest, slots_are_used_again_last_in_first_out) {
    Region* const first = table_.add_region(init());
    Region* const second = table_.add_region(init());
    const std::uint32_t first_slot = first->key() >> 8;
    const std::uint32_t second_slot = second->key() >> 8;
    table_.remove_region(first);
    table_.remove_region(second);
    EXPECT_EQ(table_.add_region(init())->key() >> 8, second_slot);
    EXPECT_EQ(table_.add_region(init())->key() >> 8, first_slot);
}

TEST_F(KeyTableTest, a_changed_region_has_a_new_key_and_the_new_definition) {
    Region* const region = table_.add_region(init());
    const std::uint32_t before = region->key();
    EXPECT_EQ(table_.change_region(region, init(0, 0x9000, 0x10)), 0);
    EXPECT_NE(region->key(), before);
    EXPECT_EQ(region->key() >> 8, before >> 8);
    EXPECT_EQ(table_.check_local(kPd, before, 0x9000, 1, false).error, AccessError::kKey);
    EXPECT_EQ(local(region, 0x9000, 0x10, false), AccessError::kNone);
    EXPECT_EQ(local(region, 0x9000, 0x10, true), AccessError::kRights);
}

TEST_F(KeyTableTest, keys_of_regions_made_in_a_row_have_nothing_in_common) {
    constexpr int kRegions = 4096;
    std::set<std::uint32_t> keys;
    std::uint32_t last = 0;
    int near = 0;
    int same_variant = 0;
    for (int i = 0; i < kRegions; ++i) {
        const std::uint32_t key = table_.add_region(init())->key();
        EXPECT_TRUE(keys.insert(key).second);
        EXPECT_NE(key, 0U);
        const auto distance = static_cast<std::int32_t>((key >> 8) - (last >> 8));
        if (distance > -256 && distance < 256) ++near;
        if ((key & 0xFF) == (last & 0xFF)) ++same_variant;
        last = key;
    }
    // 24 random bits: about 4096 * 512 / 2^24 = 0.1 neighbours; 8 random bits: about 16 equal ones.
    EXPECT_LT(near, 8);
    EXPECT_LT(same_variant, 60);
    EXPECT_GT(*keys.rbegin(), 0xF0000000U);
    EXPECT_LT(*keys.begin(), 0x10000000U);
}

TEST_F(KeyTableTest, another_seed_gives_other_keys_and_no_seed_one_of_its_own) {
    KeyTable same(0x5EED);
    KeyTable other(0x5EEE);
    KeyTable drawn;
    KeyTable drawn_again;
    const std::uint32_t key = table_.add_region(init())->key();
    EXPECT_EQ(same.add_region(init())->key(), key);
    EXPECT_NE(other.add_region(init())->key(), key);
    EXPECT_NE(drawn.add_region(init())->key(), drawn_again.add_region(init())->key());
}

TEST_F(KeyTableTest, grows_to_a_million_regions_without_moving_them) {
    constexpr std::uint32_t kRegions = 1U << 20;
    Region* const first = table_.add_region(init());
    const std::uint32_t key = first->key();
    Region* last = first;
    while (table_.size() < kRegions) last = table_.add_region(init());
    EXPECT_EQ(table_.check_local(kPd, key, 0x1000, 1, false).slice.region, first);
    EXPECT_EQ(table_.check_local(kPd, last->key(), 0x1000, 1, false).slice.region, last);
}

TEST_F(KeyTableTest, plain_regions_cannot_be_invalidated) {
    Region* const region = table_.add_region(init());
    EXPECT_EQ(table_.local_invalidate(kPd, kQp, region->key()), AccessError::kRights);
    EXPECT_EQ(table_.remote_invalidate(kPd, kQp, region->key()), AccessError::kRights);
    EXPECT_EQ(local(region, 0x1000, 1), AccessError::kNone);
    EXPECT_EQ(table_.remote_invalidate(kPd, kQp, region->key() ^ 1), AccessError::kKey);
    EXPECT_EQ(table_.remote_invalidate(kOtherPd, kQp, region->key()), AccessError::kPd);
}

TEST_F(KeyTableTest, an_invalidated_region_is_good_again_once_it_is_changed) {
    RegionInit fast = init();
    fast.may_be_invalidated = true;
    Region* const region = table_.add_region(fast);
    EXPECT_EQ(table_.remote_invalidate(kPd, kQp, region->key()), AccessError::kNone);
    EXPECT_EQ(remote(region, 0x1000, 1, ipc::kAccessRemoteRead), AccessError::kState);
    EXPECT_EQ(table_.remote_invalidate(kPd, kQp, region->key()), AccessError::kNone);
    EXPECT_EQ(table_.change_region(region, fast), 0);
    EXPECT_EQ(remote(region, 0x1000, 1, ipc::kAccessRemoteRead), AccessError::kNone);
}

}  // namespace
}  // namespace uib::memory
