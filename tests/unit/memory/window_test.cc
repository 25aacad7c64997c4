// KeyTable: memory windows of both types, binding and invalidation (IBA 10.6.7, o9-5.2.2).
#include <gtest/gtest.h>

#include <cerrno>

#include "engine/memory/buffer_space.h"
#include "engine/memory/key_table.h"

namespace uib::memory {
namespace {

constexpr PdId kPd = 7;
constexpr PdId kOtherPd = 8;
constexpr std::uint32_t kQp = 0x11;
constexpr std::uint32_t kOtherQp = 0x12;
constexpr std::uint32_t kRead = ipc::kAccessRemoteRead;
constexpr std::uint32_t kWrite = ipc::kAccessRemoteWrite;

class WindowTest : public testing::Test {
  protected:
    WindowTest() { region_ = add_region(ipc::kAccessLocalWrite | ipc::kAccessBindWindow); }

    Region* add_region(std::uint32_t access, PdId pd = kPd) {
        RegionInit init;
        init.pd = pd;
        init.access = access;
        init.iova = 0x1000;
        init.length = 0x100;
        init.space = std::make_shared<BufferSpace>(0x100);
        return table_.add_region(init);
    }
    BindRequest request(std::uint32_t access = kRead | kWrite) const {
        BindRequest result;
        result.pd = kPd;
        result.qp_number = kQp;
        result.region_key = region_->key();
        result.address = 0x1010;
        result.length = 0x20;
        result.access = access;
        return result;
    }
    BindRequest request2(const Window* window, std::uint32_t access = kRead | kWrite) const {
        BindRequest result = request(access);
        result.new_key = (window->key() & ~0xFFU) | ((window->key() + 1) & 0xFF);
        return result;
    }
    AccessError access(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                       std::uint32_t rights = kRead, std::uint32_t qp = kQp) {
        return table_.check_remote(kPd, qp, key, address, length, rights).error;
    }

    KeyTable table_{0x5EED};
    Region* region_ = nullptr;
};

TEST_F(WindowTest, a_bound_window_gives_the_slice_of_its_region) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    EXPECT_FALSE(window->bound());
    EXPECT_EQ(access(window->key(), 0x1010, 1), AccessError::kWindow);
    ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
    EXPECT_TRUE(window->bound());
    EXPECT_EQ(region_->windows_bound(), 1U);

    const Checked checked = table_.check_remote(kPd, kOtherQp, window->key(), 0x1018, 8, kWrite);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked.slice.region, region_);
    EXPECT_EQ(checked.slice.offset, 0x18U);
    EXPECT_EQ(checked.slice.length, 8U);
}

TEST_F(WindowTest, checks_are_made_in_order) {
    Window* const window = table_.add_window(kPd, WindowType::kType2);
    ASSERT_EQ(table_.bind(window, request2(window, kRead)), AccessError::kNone);
    const std::uint32_t key = window->key();
    const auto check = [&](PdId pd, std::uint32_t k, std::uint64_t address, std::uint32_t rights,
                           std::uint32_t qp) {
        return table_.check_remote(pd, qp, k, address, 1, rights).error;
    };
    EXPECT_EQ(check(kOtherPd, key ^ 1, 0, kWrite, kOtherQp), AccessError::kKey);
    EXPECT_EQ(check(kOtherPd, key, 0, kWrite, kOtherQp), AccessError::kPd);
    EXPECT_EQ(check(kPd, key, 0, kWrite, kOtherQp), AccessError::kBounds);
    EXPECT_EQ(check(kPd, key, 0x1010, kWrite, kOtherQp), AccessError::kRights);
    EXPECT_EQ(check(kPd, key, 0x1010, kRead, kOtherQp), AccessError::kWindow);
    EXPECT_EQ(check(kPd, key, 0x1010, kRead, kQp), AccessError::kNone);
}

TEST_F(WindowTest, bounds_are_the_windows_not_the_regions) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
    EXPECT_EQ(access(window->key(), 0x1010, 0x20), AccessError::kNone);
    EXPECT_EQ(access(window->key(), 0x100F, 1), AccessError::kBounds);
    EXPECT_EQ(access(window->key(), 0x1010, 0x21), AccessError::kBounds);
    EXPECT_EQ(access(window->key(), 0x1030, 1), AccessError::kBounds);
    EXPECT_EQ(access(window->key(), 0x1020, ~std::uint64_t{0}), AccessError::kBounds);
}

TEST_F(WindowTest, a_zero_based_window_counts_from_its_start) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(window, request(kRead | ipc::kAccessZeroBased)), AccessError::kNone);
    const Checked checked = table_.check_remote(kPd, kQp, window->key(), 4, 8, kRead);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked.slice.offset, 0x14U);
    EXPECT_EQ(access(window->key(), 0x1010, 1), AccessError::kBounds);
    EXPECT_EQ(access(window->key(), 0x1F, 2), AccessError::kBounds);
}

TEST_F(WindowTest, a_window_key_is_no_local_key) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
    EXPECT_EQ(table_.check_local(kPd, window->key(), 0x1010, 1, false).error, AccessError::kKey);
    BindRequest nested = request();
    nested.region_key = window->key();
    Window* const other = table_.add_window(kPd, WindowType::kType1);
    EXPECT_EQ(table_.bind(other, nested), AccessError::kKey);
}

TEST_F(WindowTest, binding_is_refused_for_each_fault) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    const std::uint32_t key = window->key();
    BindRequest bad = request();
    bad.region_key ^= 1;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kKey);
    bad = request();
    bad.pd = kOtherPd;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kPd);
    bad = request();
    bad.region_key = add_region(ipc::kAccessLocalWrite | ipc::kAccessBindWindow, kOtherPd)->key();
    EXPECT_EQ(table_.bind(window, bad), AccessError::kPd);
    bad = request();
    bad.address = 0x0FFF;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kBounds);
    bad = request();
    bad.length = 0xF1;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kBounds);
    bad = request();
    bad.length = ~std::uint64_t{0};
    EXPECT_EQ(table_.bind(window, bad), AccessError::kBounds);
    bad = request();
    bad.region_key = add_region(ipc::kAccessLocalWrite)->key();
    EXPECT_EQ(table_.bind(window, bad), AccessError::kRights);
    bad = request(ipc::kAccessLocalWrite);
    EXPECT_EQ(table_.bind(window, bad), AccessError::kRights);

    const std::uint32_t no_local_write = add_region(ipc::kAccessBindWindow)->key();
    for (const std::uint32_t rights : {kWrite, std::uint32_t{ipc::kAccessRemoteAtomic}}) {
        bad = request(rights);
        bad.region_key = no_local_write;
        EXPECT_EQ(table_.bind(window, bad), AccessError::kRights) << rights;
    }
    EXPECT_EQ(window->key(), key);
    EXPECT_FALSE(window->bound());
    EXPECT_EQ(region_->windows_bound(), 0U);

    BindRequest good = request(kRead);
    good.region_key = no_local_write;
    EXPECT_EQ(table_.bind(window, good), AccessError::kNone);
}

TEST_F(WindowTest, a_failed_bind_leaves_the_old_binding) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
    const std::uint32_t key = window->key();
    BindRequest bad = request();
    bad.address = 0;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kBounds);
    EXPECT_EQ(access(key, 0x1010, 1), AccessError::kNone);
}

TEST_F(WindowTest, type_1_gets_a_fresh_key_with_each_bind_and_unbinds_by_length_0) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    std::uint32_t key = window->key();
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
        ASSERT_NE(window->key(), key);
        EXPECT_EQ(window->key() >> 8, key >> 8);
        EXPECT_EQ(access(key, 0x1010, 1), AccessError::kKey);
        EXPECT_EQ(access(window->key(), 0x1010, 1), AccessError::kNone);
        EXPECT_EQ(region_->windows_bound(), 1U);
        key = window->key();
    }
    BindRequest unbind = request();
    unbind.length = 0;
    unbind.region_key = 0;
    ASSERT_EQ(table_.bind(window, unbind), AccessError::kNone);
    EXPECT_FALSE(window->bound());
    EXPECT_EQ(region_->windows_bound(), 0U);
    EXPECT_EQ(access(key, 0x1010, 1), AccessError::kKey);
    EXPECT_EQ(access(window->key(), 0x1010, 1), AccessError::kWindow);
}

TEST_F(WindowTest, type_1_takes_a_key_that_the_binder_chose) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    const std::uint32_t old_key = window->key();
    BindRequest chosen = request2(window);
    ASSERT_EQ(table_.bind(window, chosen), AccessError::kNone);
    EXPECT_EQ(window->key(), chosen.new_key);
    EXPECT_EQ(access(old_key, 0x1010, 1), AccessError::kKey);
    EXPECT_EQ(access(chosen.new_key, 0x1010, 1, kRead, kOtherQp), AccessError::kNone);
    chosen.new_key ^= 0x100;
    EXPECT_EQ(table_.bind(window, chosen), AccessError::kKey);

    BindRequest unbind = request2(window);
    unbind.length = 0;
    ASSERT_EQ(table_.bind(window, unbind), AccessError::kNone);
    EXPECT_EQ(window->key(), unbind.new_key);
    EXPECT_EQ(access(unbind.new_key, 0x1010, 1), AccessError::kWindow);
}

TEST_F(WindowTest, a_region_with_windows_stays) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
    EXPECT_EQ(table_.remove_region(region_), EBUSY);
    EXPECT_EQ(table_.change_region(region_, region_->init()), EBUSY);
    table_.remove_window(window);
    EXPECT_EQ(region_->windows_bound(), 0U);
    EXPECT_EQ(table_.remove_region(region_), 0);
    EXPECT_EQ(table_.size(), 0U);
}

TEST_F(WindowTest, type_2_takes_the_callers_key_of_its_own_slot_only) {
    Window* const window = table_.add_window(kPd, WindowType::kType2);
    BindRequest bad = request2(window);
    bad.new_key ^= 0x100;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kKey);
    bad = request2(window);
    bad.length = 0;
    EXPECT_EQ(table_.bind(window, bad), AccessError::kBounds);

    const BindRequest good = request2(window);
    ASSERT_EQ(table_.bind(window, good), AccessError::kNone);
    EXPECT_EQ(window->key(), good.new_key);
    EXPECT_EQ(access(good.new_key, 0x1010, 0x20, kWrite), AccessError::kNone);
    EXPECT_EQ(access(good.new_key, 0x1010, 0x20, kWrite, kOtherQp), AccessError::kWindow);
    EXPECT_EQ(table_.bind(window, request2(window)), AccessError::kWindow);
}

TEST_F(WindowTest, type_2_is_freed_by_local_and_remote_invalidate) {
    Window* const window = table_.add_window(kPd, WindowType::kType2);
    for (const bool remote : {false, true}) {
        ASSERT_EQ(table_.bind(window, request2(window)), AccessError::kNone);
        const std::uint32_t key = window->key();
        const auto invalidate = [&](PdId pd, std::uint32_t qp, std::uint32_t k) {
            return remote ? table_.remote_invalidate(pd, qp, k) : table_.local_invalidate(pd, qp, k);
        };
        EXPECT_EQ(invalidate(kPd, kQp, key ^ 1), AccessError::kKey);
        EXPECT_EQ(invalidate(kOtherPd, kQp, key), AccessError::kPd);
        EXPECT_EQ(invalidate(kPd, kOtherQp, key), AccessError::kWindow);
        EXPECT_TRUE(window->bound());
        EXPECT_EQ(invalidate(kPd, kQp, key), AccessError::kNone);
        EXPECT_FALSE(window->bound());
        EXPECT_EQ(region_->windows_bound(), 0U);
        EXPECT_EQ(access(key, 0x1010, 1), AccessError::kWindow);
        // Free already: left as it is, for any QP of the domain.
        EXPECT_EQ(invalidate(kPd, kOtherQp, key), AccessError::kNone);
        EXPECT_EQ(invalidate(kOtherPd, kQp, key), AccessError::kPd);
    }
}

TEST_F(WindowTest, type_1_cannot_be_invalidated) {
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(window, request()), AccessError::kNone);
    EXPECT_EQ(table_.local_invalidate(kPd, kQp, window->key()), AccessError::kRights);
    EXPECT_EQ(table_.remote_invalidate(kPd, kQp, window->key()), AccessError::kRights);
    EXPECT_TRUE(window->bound());
}

TEST_F(WindowTest, a_qp_that_goes_frees_its_type_2_windows) {
    Window* const mine = table_.add_window(kPd, WindowType::kType2);
    Window* const mine_too = table_.add_window(kPd, WindowType::kType2);
    Window* const others = table_.add_window(kPd, WindowType::kType2);
    Window* const type1 = table_.add_window(kPd, WindowType::kType1);
    ASSERT_EQ(table_.bind(mine, request2(mine)), AccessError::kNone);
    ASSERT_EQ(table_.bind(mine_too, request2(mine_too)), AccessError::kNone);
    BindRequest of_other = request2(others);
    of_other.qp_number = kOtherQp;
    ASSERT_EQ(table_.bind(others, of_other), AccessError::kNone);
    ASSERT_EQ(table_.bind(type1, request()), AccessError::kNone);
    ASSERT_EQ(table_.local_invalidate(kPd, kQp, mine_too->key()), AccessError::kNone);

    table_.release_windows_of(kQp);
    EXPECT_FALSE(mine->bound());
    EXPECT_FALSE(mine_too->bound());
    EXPECT_TRUE(others->bound());
    EXPECT_TRUE(type1->bound());
    EXPECT_EQ(region_->windows_bound(), 2U);
    table_.release_windows_of(kQp);
    table_.remove_window(mine);
    table_.remove_window(others);
    table_.release_windows_of(kOtherQp);
    EXPECT_EQ(region_->windows_bound(), 1U);
}

TEST_F(WindowTest, a_window_shows_that_its_region_was_invalidated_only_after_it_is_free) {
    RegionInit init = region_->init();
    init.may_be_invalidated = true;
    Region* const region = table_.add_region(init);
    Window* const window = table_.add_window(kPd, WindowType::kType1);
    BindRequest bind = request();
    bind.region_key = region->key();
    ASSERT_EQ(table_.bind(window, bind), AccessError::kNone);
    EXPECT_EQ(table_.local_invalidate(kPd, kQp, region->key()), AccessError::kWindow);
    table_.remove_window(window);
    EXPECT_EQ(table_.local_invalidate(kPd, kQp, region->key()), AccessError::kNone);
    Window* const late = table_.add_window(kPd, WindowType::kType1);
    EXPECT_EQ(table_.bind(late, bind), AccessError::kState);
}

}  // namespace
}  // namespace uib::memory
