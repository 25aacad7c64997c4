// Mover: few calls, the right bytes in the right order, and failures told to whom they belong.
#include "engine/memory/mover.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "engine/memory/mapped_space.h"
#include "engine/memory/null_space.h"
#include "engine/memory/region.h"
#include "tests/unit/memory/counting_space.h"

namespace uib::memory {
namespace {

constexpr Mover::Owner kQp = 1;
constexpr Mover::Owner kOtherQp = 2;

Region region_of(std::shared_ptr<AddressSpace> space, std::uint64_t length = 8192) {
    RegionInit init;
    init.pd = 1;
    init.length = length;
    init.space = std::move(space);
    return Region(std::move(init));
}

std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string text(std::span<const std::byte> view) {
    return {reinterpret_cast<const char*>(view.data()), view.size()};
}

class MoverTest : public testing::Test {
  protected:
    Slice at(std::uint64_t offset, std::uint64_t length) { return {&region_, offset, length}; }
    void scatter(std::uint64_t offset, const std::string& data, Mover::Owner owner = kQp) {
        mover_.scatter(owner, at(offset, data.size()), bytes(data));
    }

    std::shared_ptr<CountingSpace> space_ = std::make_shared<CountingSpace>();
    std::shared_ptr<BufferSpace> lent_ = std::make_shared<BufferSpace>(8192);
    Region region_ = region_of(space_);
    Region mapped_ = region_of(lent_);
    Mover mover_{1 << 16};
};

TEST_F(MoverTest, gathers_several_slices_by_one_call) {
    space_->put(100, "hello");
    space_->put(300, "world");
    const Slice slices[] = {at(100, 5), at(300, 5), at(0, 0), at(305, 1)};
    const auto view = mover_.gather(slices);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(text(*view).substr(0, 10), "helloworld");
    EXPECT_EQ(view->size(), 11U);
    EXPECT_EQ(space_->reads, 1);
    EXPECT_EQ(space_->read_ranges, 2U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view->data()) % 64, 0U);
}

TEST_F(MoverTest, lends_a_single_mapped_slice_and_copies_mixed_ones) {
    const Slice whole[] = {{&mapped_, 10, 20}};
    EXPECT_EQ(mover_.gather(whole)->data(), lent_->bytes().data() + 10);
    const std::size_t room = mover_.room();

    std::memcpy(lent_->bytes().data(), "mapped", 6);
    space_->put(0, "remote");
    const Slice mixed[] = {{&mapped_, 0, 6}, at(0, 6), {&mapped_, 0, 3}};
    EXPECT_EQ(text(*mover_.gather(mixed)), "mappedremotemap");
    EXPECT_LT(mover_.room(), room);
    EXPECT_EQ(space_->reads, 1);
}

TEST_F(MoverTest, gathers_more_ranges_than_one_call_takes) {
    std::vector<Slice> slices;
    std::string expected;
    for (std::uint64_t i = 0; i < 200; ++i) {
        space_->put(i * 16, std::string(3, static_cast<char>('a' + i % 26)));
        expected += std::string(3, static_cast<char>('a' + i % 26));
        slices.push_back(at(i * 16, 3));
    }
    EXPECT_EQ(text(*mover_.gather(slices)), expected);
    EXPECT_EQ(space_->reads, 4);
}

TEST_F(MoverTest, gather_fails_for_want_of_room_or_memory) {
    const Slice big[] = {at(0, 8192)};
    Mover small(4096);
    EXPECT_FALSE(small.gather(big).has_value());
    EXPECT_EQ(small.room(), 4096U);
    space_->bad_address = 50;
    const Slice bad[] = {at(40, 20)};
    EXPECT_FALSE(mover_.gather(bad).has_value());
    const Slice overflow[] = {at(0, ~std::uint64_t{0}), at(0, 2)};
    EXPECT_FALSE(mover_.gather(overflow).has_value());
    EXPECT_EQ(mover_.gather({})->size(), 0U);
}

TEST_F(MoverTest, staging_memory_comes_back_at_the_end_of_the_turn) {
    const std::span<std::byte> first = mover_.stage(100);
    EXPECT_EQ(first.size(), 100U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mover_.stage(1).data()) % 64, 0U);
    EXPECT_EQ(mover_.room(), (1U << 16) - 128 - 64);
    EXPECT_TRUE(mover_.stage(1 << 16).empty());
    mover_.end_turn();
    EXPECT_EQ(mover_.room(), 1U << 16);
    EXPECT_EQ(mover_.stage(1).data(), first.data());
}

TEST_F(MoverTest, scatters_are_kept_and_joined) {
    const std::string data = "abcdefghij";
    mover_.scatter(kQp, at(100, 4), bytes(data).subspan(0, 4));
    mover_.scatter(kQp, at(104, 6), bytes(data).subspan(4, 6));
    EXPECT_EQ(space_->writes, 0);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(space_->writes, 1);
    EXPECT_EQ(space_->write_ranges, 1U);
    EXPECT_EQ(space_->write_sources, 1U);
    EXPECT_EQ(space_->text(100, 10), data);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(space_->writes, 1);
}

TEST_F(MoverTest, small_packets_to_one_place_are_one_destination) {
    std::vector<std::string> packets;
    for (int i = 0; i < 32; ++i) packets.push_back(std::string(10, static_cast<char>('A' + i)));
    for (std::uint64_t i = 0; i < packets.size(); ++i) scatter(i * 10, packets[i]);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(space_->writes, 1);
    EXPECT_EQ(space_->write_ranges, 1U);
    for (std::uint64_t i = 0; i < packets.size(); ++i) EXPECT_EQ(space_->text(i * 10, 10), packets[i]);
}

TEST_F(MoverTest, many_qps_share_a_call) {
    const std::string data = "x";
    for (Mover::Owner owner = 0; owner < 50; ++owner) scatter(owner * 100, data, owner);
    EXPECT_TRUE(mover_.flush(17));
    EXPECT_EQ(space_->writes, 1);
    EXPECT_EQ(space_->write_ranges, 50U);
}

TEST_F(MoverTest, a_full_batch_is_written_by_itself) {
    const std::string data = "x";
    for (std::uint64_t i = 0; i < 65; ++i) scatter(i * 16, data);
    EXPECT_EQ(space_->writes, 1);
    EXPECT_EQ(space_->write_ranges, 64U);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(space_->writes, 2);

    auto large = std::make_shared<CountingSpace>(4 << 20);
    Region region = region_of(large, 4 << 20);
    const std::string block(300 << 10, 'y');
    for (std::uint64_t i = 0; i < 4; ++i) {
        mover_.scatter(kQp, {&region, i * block.size(), block.size()}, bytes(block));
    }
    EXPECT_EQ(large->writes, 1);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(large->text(0, 4 * block.size()), std::string(4 * block.size(), 'y'));
}

TEST_F(MoverTest, later_writes_win_where_they_overlap) {
    const std::string first = "111111";
    const std::string second = "22";
    const std::string third = "3";
    scatter(10, first);
    scatter(12, second, kOtherQp);
    scatter(13, third);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(space_->text(10, 6), "112311");
}

TEST_F(MoverTest, a_failure_belongs_to_the_owner_whose_bytes_they_were) {
    const std::string data = "dddd";
    space_->bad_address = 201;
    scatter(100, data, kQp);
    scatter(200, data, kOtherQp);
    scatter(300, data, kQp);
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(space_->text(100, 4), data);
    EXPECT_EQ(space_->text(300, 4), data);
    EXPECT_FALSE(mover_.flush(kOtherQp));
    EXPECT_TRUE(mover_.flush(kOtherQp));
}

TEST_F(MoverTest, joined_writes_of_two_owners_fail_apart) {
    const std::string data = "aabb";
    space_->bad_address = 103;
    mover_.scatter(kQp, at(100, 2), bytes(data).subspan(0, 2));
    mover_.scatter(kOtherQp, at(102, 2), bytes(data).subspan(2, 2));
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_FALSE(mover_.flush(kOtherQp));
    EXPECT_EQ(space_->text(100, 2), "aa");
}

TEST_F(MoverTest, a_failure_before_the_end_of_the_turn_is_told_later) {
    const std::string data = "d";
    space_->bad_address = 0;
    scatter(0, data);
    mover_.end_turn();
    EXPECT_FALSE(mover_.flush(kQp));
}

TEST_F(MoverTest, a_gather_sees_earlier_scatters) {
    const std::string data = "fresh";
    scatter(0, data);
    const Slice slices[] = {at(0, 5)};
    EXPECT_EQ(text(*mover_.gather(slices)), "fresh");
    EXPECT_EQ(space_->writes, 1);
}

TEST_F(MoverTest, mapped_memory_is_written_at_once_but_not_before_the_owners_earlier_writes) {
    const std::string data = "data";
    const std::string flag = "f";
    scatter(0, data, kOtherQp);
    mover_.scatter(kQp, {&mapped_, 0, 1}, bytes(flag));
    EXPECT_EQ(lent_->bytes()[0], std::byte{'f'});
    EXPECT_EQ(space_->writes, 0);

    bool flag_seen = false;
    space_->on_write = [&] { flag_seen = lent_->bytes()[1] == std::byte{'f'}; };
    mover_.scatter(kOtherQp, {&mapped_, 1, 1}, bytes(flag));
    EXPECT_EQ(space_->writes, 1);
    EXPECT_FALSE(flag_seen);
    EXPECT_EQ(lent_->bytes()[1], std::byte{'f'});
}

TEST_F(MoverTest, an_owners_writes_to_two_spaces_keep_their_order) {
    auto other = std::make_shared<CountingSpace>();
    Region region = region_of(other);
    const std::string data = "d";
    std::string order;
    space_->on_write = [&] { order += 'a'; };
    other->on_write = [&] { order += 'b'; };
    scatter(0, data, kOtherQp);
    mover_.scatter(kQp, {&region, 0, 1}, bytes(data));
    EXPECT_EQ(order, "");
    scatter(1, data, kQp);
    EXPECT_EQ(order, "ab");
    EXPECT_TRUE(mover_.flush(kQp));
    EXPECT_EQ(order, "aba");
}

TEST_F(MoverTest, two_views_of_the_same_memory_keep_their_order) {
    auto view = std::make_shared<CountingSpace>();
    view->alias_of = space_.get();
    Region region = region_of(view);
    const std::string data = "d";
    scatter(0, data, kQp);
    mover_.scatter(kOtherQp, {&region, 0, 1}, bytes(data));
    EXPECT_EQ(space_->writes, 1);
    EXPECT_EQ(view->writes, 0);
    EXPECT_TRUE(mover_.flush(kOtherQp));
    EXPECT_EQ(view->writes, 1);
}

TEST_F(MoverTest, more_spaces_than_batches) {
    std::vector<std::shared_ptr<CountingSpace>> spaces;
    std::vector<Region> regions;
    const std::string data = "d";
    for (int i = 0; i < 20; ++i) {
        spaces.push_back(std::make_shared<CountingSpace>());
        regions.push_back(region_of(spaces.back()));
    }
    for (Mover::Owner i = 0; i < 20; ++i) mover_.scatter(i, {&regions[i], 0, 1}, bytes(data));
    EXPECT_TRUE(mover_.flush(0));
    for (auto& space : spaces) {
        EXPECT_EQ(space->writes, 1);
        EXPECT_EQ(space->text(0, 1), "d");
    }
}

TEST_F(MoverTest, atomics_in_memory_that_is_not_mapped) {
    const std::uint64_t start = 40;
    space_->put(8, std::string(reinterpret_cast<const char*>(&start), 8));
    EXPECT_EQ(mover_.fetch_add(at(8, 8), 2), 40U);
    EXPECT_EQ(mover_.compare_swap(at(8, 8), 42, 7), 42U);
    EXPECT_EQ(mover_.compare_swap(at(8, 8), 42, 9), 7U);
    EXPECT_EQ(mover_.fetch_add(at(8, 8), ~std::uint64_t{0}), 7U);
    EXPECT_EQ(mover_.fetch_add(at(8, 8), 0), 6U);
    EXPECT_EQ(mover_.fetch_add(at(8, 4), 0), std::nullopt);
    EXPECT_TRUE(mover_.store(at(8, 8), 99));
    EXPECT_EQ(mover_.fetch_add(at(8, 8), 0), 99U);
    EXPECT_FALSE(mover_.store(at(8, 4), 1));
    space_->bad_address = 8;
    EXPECT_FALSE(mover_.store(at(8, 8), 1));
    EXPECT_EQ(mover_.fetch_add(at(8, 8), 2), std::nullopt);
}

TEST_F(MoverTest, atomics_in_mapped_memory_aligned_or_not) {
    for (const std::uint64_t offset : {std::uint64_t{16}, std::uint64_t{21}}) {
        const Slice word = {&mapped_, offset, 8};
        EXPECT_EQ(mover_.fetch_add(word, 5), 0U) << offset;
        EXPECT_EQ(mover_.compare_swap(word, 5, 6), 5U) << offset;
        EXPECT_EQ(mover_.compare_swap(word, 5, 0), 6U) << offset;
        EXPECT_EQ(mover_.fetch_add(word, std::uint64_t{0} - 6), 6U) << offset;
        EXPECT_TRUE(mover_.store(word, 0x0102030405060708)) << offset;
        EXPECT_EQ(mover_.fetch_add(word, 0), 0x0102030405060708U) << offset;
        EXPECT_TRUE(mover_.store(word, 0)) << offset;
    }
}

TEST_F(MoverTest, an_atomic_sees_and_follows_earlier_scatters) {
    const std::uint64_t value = 1000;
    const std::string data(reinterpret_cast<const char*>(&value), 8);
    scatter(8, data);
    EXPECT_EQ(mover_.fetch_add(at(8, 8), 1), 1000U);
}

TEST_F(MoverTest, null_memory_reads_zeros_and_swallows_writes) {
    Region null = region_of(std::make_shared<NullSpace>());
    const std::string data = "gone";
    mover_.scatter(kQp, {&null, 0, 4}, bytes(data));
    EXPECT_TRUE(mover_.flush(kQp));
    const Slice slices[] = {{&null, 0, 4}};
    EXPECT_EQ(text(*mover_.gather(slices)), std::string(4, '\0'));
}

TEST_F(MoverTest, a_file_cut_short_fails_the_write_of_its_owner) {
    const int fd = memfd_create("cut", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, 8192), 0);
    const MappedSpace::Made made = MappedSpace::map_file(fd, 0, 8192, true);
    ASSERT_EQ(made.error, 0);
    Region region = region_of(made.space);
    ASSERT_EQ(ftruncate(fd, 0), 0);
    const std::string data = "lost";
    mover_.scatter(kQp, {&region, 0, 4}, bytes(data));
    EXPECT_TRUE(mover_.flush(kOtherQp));
    EXPECT_FALSE(mover_.flush(kQp));
    EXPECT_EQ(mover_.fetch_add({&region, 0, 8}, 1), std::nullopt);
    const Slice slices[] = {{&region, 0, 4}, {&region, 8, 4}};
    EXPECT_FALSE(mover_.gather(slices).has_value());
    close(fd);
}

}  // namespace
}  // namespace uib::memory
