#include "net/link/packet_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "tests/simulation/random.h"

namespace uib::net::link {
namespace {

TEST(PacketRing, takes_exactly_the_blocks_of_its_packets) {
    PacketRing ring(10, 95);
    EXPECT_EQ(ring.capacity(), 10U);
    ASSERT_EQ(ring.reserve(16).size(), 66U);  // one block, and the VCRC
    ring.commit(16, 5);
    EXPECT_EQ(ring.free_blocks(), 9U);
    ring.reserve(17);
    ring.commit(17, 6);
    EXPECT_EQ(ring.free_blocks(), 7U);
    EXPECT_EQ(ring.front_time(), 5U);
    EXPECT_TRUE(ring.reserve(7 * 16 + 1).empty());
    EXPECT_TRUE(ring.reserve(96).empty());  // longer than any packet may be
    EXPECT_FALSE(ring.reserve(95).empty());
}

TEST(PacketRing, has_room_for_one_packet_at_least) {
    EXPECT_EQ(PacketRing(0, 1055).capacity(), 66U);
}

TEST(PacketRing, keeps_packets_whole_and_in_order) {
    simulation::Random random(5);
    PacketRing ring(40, 287);
    struct Model {
        std::uint32_t words;
        std::byte mark;
    };
    std::deque<Model> model;
    std::uint32_t used = 0;
    for (int turn = 0; turn < 20'000; ++turn) {
        if (random.chance(0.6)) {
            const Model packet{random.draw32(5, 287), static_cast<std::byte>(turn)};
            const auto room = ring.reserve(packet.words);
            ASSERT_EQ(room.empty(), used + blocks_of(packet.words) > 40);
            if (room.empty()) continue;
            std::fill(room.begin(), room.end(), packet.mark);
            ring.commit(packet.words, 0);
            model.push_back(packet);
            used += blocks_of(packet.words);
        } else if (!model.empty()) {
            const auto front = ring.front();
            ASSERT_EQ(front.size(), model.front().words * 4 + 2);
            ASSERT_TRUE(std::all_of(front.begin(), front.end(),
                                    [&](std::byte byte) { return byte == model.front().mark; }));
            used -= blocks_of(model.front().words);
            model.pop_front();
            ring.pop();
        }
        ASSERT_EQ(ring.free_blocks(), 40 - used);
        ASSERT_EQ(ring.packets(), model.size());
    }
}

}  // namespace
}  // namespace uib::net::link
