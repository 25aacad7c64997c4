#include "engine/verbs/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <random>

namespace uib::verbs {
namespace {

TEST(Arena, BlocksDoNotOverlapAndAreZero) {
    Arena arena;
    std::mt19937 random(1);
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 500; ++i) {
        const auto block = arena.allocate(1 + random() % 20000);
        ASSERT_TRUE(block);
        for (std::size_t k = 0; k < block->size; ++k) ASSERT_EQ(block->memory[k], std::byte{0});
        std::memset(block->memory, 0xFF, block->size);
        blocks.push_back(*block);
        if (i % 3 == 2) {
            const std::size_t victim = random() % blocks.size();
            arena.free(blocks[victim]);
            blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(victim));
        }
    }
    for (const ArenaBlock& block : blocks) arena.free(block);
    EXPECT_EQ(arena.bytes_allocated(), 0U);
}

TEST(Arena, FreedPlaceIsJoinedAndUsedAgain) {
    Arena arena;
    const auto first = arena.allocate(400'000), second = arena.allocate(400'000);
    ASSERT_TRUE(first && second);
    arena.take_new_chunks();
    arena.free(*first);
    arena.free(*second);
    ASSERT_TRUE(arena.allocate(1'000'000));
    EXPECT_TRUE(arena.take_new_chunks().empty()) << "the freed halves were not joined";
}

TEST(Arena, ChunksAreAnnouncedOnceAndSealed) {
    Arena arena;
    ASSERT_TRUE(arena.allocate(100));
    const std::vector<int> fds = arena.take_new_chunks();
    ASSERT_EQ(fds.size(), 1U);
    EXPECT_TRUE(arena.take_new_chunks().empty());
    EXPECT_NE(::ftruncate(fds[0], 0), 0) << "a client could make the engine's memory vanish";
    EXPECT_EQ(::fcntl(fds[0], F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
}

TEST(Arena, BlockLargerThanAChunkGetsItsOwn) {
    Arena arena;
    const auto block = arena.allocate(std::size_t{300} << 20);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->location.offset, 0U);
}

}  // namespace
}  // namespace uib::verbs
