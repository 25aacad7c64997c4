// Two ports and a wire: credits, lanes, recovery, and a day.
#include "tests/unit/link/joined_ports.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/link/link_packets.h"

namespace uib::net::link {
namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kSecond = 1000 * kMillisecond;

std::uint64_t overruns(JoinedPorts& link) {
    return link.port(0).receive_discards().buffer_overrun + link.port(1).receive_discards().buffer_overrun;
}

TEST(JoinedPorts, come_up_and_carry_packets_of_every_kind) {
    JoinedPorts link({}, {.operational_vls = 3}, {});
    link.bring_up();
    ASSERT_EQ(link.port(0).state(), PortState::kActive);
    ASSERT_EQ(link.port(1).state(), PortState::kActive);
    ASSERT_EQ(link.port(0).enqueue(data_packet(2, 1000, 9), link.now()), Enqueued::kQueued);
    ASSERT_EQ(link.port(0).enqueue(smp_packet(4), link.now()), Enqueued::kQueued);
    link.run_for(kMillisecond);
    Packet received;
    ASSERT_EQ(decode(link.port(1).front(2), received), DecodeError::kNone);
    EXPECT_EQ(received.bth.psn, 9U);
    EXPECT_EQ(received.payload.size(), 1000U);
    EXPECT_EQ(received.lrh.vl, 2);
    ASSERT_EQ(decode(link.port(1).front(kVl15), received), DecodeError::kNone);
    EXPECT_EQ(received.bth.psn, 4U);
}

TEST(JoinedPorts, a_slow_receiver_makes_the_sender_wait_and_loses_nothing) {
    JoinedPorts link({}, {}, {});
    link.bring_up();
    std::uint64_t words = 0;
    link.add_actor(keep_sending(link.port(0), 0, 2048));
    link.add_actor(keep_taking(link.port(1), 0, kMillisecond, words));
    link.run_for(kSecond);
    // One packet of 520 words each millisecond, and the wire would carry 480 of them.
    EXPECT_NEAR(static_cast<double>(words), 1000 * 520.0, 520 * 2);
    PortCounters& sender = link.port(0).counters();
    EXPECT_GT(sender.value(PortCounter::kXmitWait), 990'000U);  // of a million ticks
    EXPECT_EQ(sender.value(PortCounter::kXmitDiscards), 0U);
    EXPECT_EQ(overruns(link), 0U);
    const std::uint64_t held = sender.value(PortCounter::kXmitData) - words;
    EXPECT_LE(blocks_of(static_cast<std::uint32_t>(held)), link.port(1).config().receive_blocks);
}

TEST(JoinedPorts, a_slow_receiver_on_one_lane_does_not_stall_another) {
    JoinedPorts link({}, {.operational_vls = 2}, {});
    link.bring_up();
    link.port(0).set_arbitration({.high = {}, .low = {{0, 64}, {1, 64}}});
    std::uint64_t slow = 0;
    std::uint64_t fast = 0;
    link.add_actor(keep_sending(link.port(0), 0, 2048));
    link.add_actor(keep_sending(link.port(0), 1, 2048));
    link.add_actor(keep_taking(link.port(1), 0, kMillisecond, slow));
    link.add_actor(keep_taking(link.port(1), 1, 0, fast));
    link.run_for(50 * kMillisecond);
    EXPECT_NEAR(static_cast<double>(slow), 50 * 520.0, 520 * 2);
    // All the rest of the wire: a packet takes 2082 ns.
    EXPECT_GT(fast, 23'000 * 520ULL);
    EXPECT_EQ(overruns(link), 0U);
}

struct Share {
    const char* name;
    ArbitrationTables tables;
    std::uint8_t limit;
    std::size_t payload;
    std::vector<double> expected;  ///< by VL
};

class ArbitrationShares : public ::testing::TestWithParam<Share> {};

TEST_P(ArbitrationShares, follow_the_weights) {
    const Share& share = GetParam();
    JoinedPorts link({.receive_blocks = 2048}, {.operational_vls = 3, .vl_high_limit = share.limit},
                     {.byte_time = 8});
    link.bring_up();
    ASSERT_TRUE(link.port(0).set_arbitration(share.tables));
    std::vector<std::uint64_t> words(share.expected.size());
    for (std::uint8_t vl = 0; vl < words.size(); ++vl) {
        link.add_actor(keep_sending(link.port(0), vl, share.payload));
        link.add_actor(keep_taking(link.port(1), vl, 0, words[vl]));
    }
    link.run_for(50 * kMillisecond);
    std::uint64_t all = 0;
    for (const std::uint64_t of_vl : words) all += of_vl;
    EXPECT_EQ(link.port(0).counters().value(PortCounter::kXmitWait), 0U);
    for (std::size_t vl = 0; vl < words.size(); ++vl)
        EXPECT_NEAR(static_cast<double>(words[vl]) / static_cast<double>(all), share.expected[vl], 0.02)
            << "VL " << vl;
}

INSTANTIATE_TEST_SUITE_P(
    Tables, ArbitrationShares,
    ::testing::Values(
        Share{"four_to_one", {.high = {}, .low = {{0, 200}, {1, 50}}}, 0, 256, {0.8, 0.2}},
        Share{"four_lanes",
              {.high = {}, .low = {{0, 40}, {1, 80}, {2, 120}, {3, 160}}},
              0,
              512,
              {0.1, 0.2, 0.3, 0.4}},
        // Small against the packets: each entry sends one a turn.
        Share{"small_weights", {.high = {}, .low = {{0, 4}, {1, 1}}}, 0, 2048, {0.5, 0.5}},
        Share{"entry_twice", {.high = {}, .low = {{0, 64}, {1, 64}, {0, 64}}}, 0, 512, {2 / 3.0, 1 / 3.0}},
        // No limit: the low table gets nothing.
        Share{"high_without_limit", {.high = {{1, 100}}, .low = {{0, 100}}}, 255, 1024, {0, 1}},
        // One packet of each table in turn.
        Share{"limit_of_one_packet", {.high = {{1, 100}}, .low = {{0, 100}}}, 0, 1024, {0.5, 0.5}},
        // 2 * 4096 bytes are 2048 words; packets of 264 words: eight of them overdraw the counter.
        Share{"limit_of_8_kib", {.high = {{1, 255}}, .low = {{0, 100}}}, 2, 1024, {1 / 9.0, 8 / 9.0}}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(JoinedPorts, recover_from_lost_and_damaged_frames_of_either_kind) {
    JoinedPorts link({.receive_blocks = 80}, {.operational_vls = 2, .local_phy_errors = 15}, {.byte_time = 8},
                     7);
    link.bring_up();
    std::uint64_t words[2] = {};
    for (std::uint8_t vl : {0, 1}) {
        link.add_actor(keep_sending(link.port(0), vl, 1024));
        link.add_actor(keep_taking(link.port(1), vl, 0, words[vl]));
    }
    link.set_faults({.loss = 0.2, .duplicate = 0.05, .damage = 0.1});
    link.run_for(2 * kSecond);
    const std::uint64_t lossy = words[0] + words[1];
    EXPECT_GT(lossy, 1000 * 264U);  // it never stood still for long
    link.set_faults({});
    link.run_for(100 * kMillisecond);  // every count has been told anew
    ASSERT_EQ(link.port(0).state(), PortState::kActive);
    const std::uint64_t before[2] = {words[0], words[1]};
    const std::uint64_t overran = overruns(link);
    link.run_for(50 * kMillisecond);
    // A buffer of 80 blocks covers the round trip: the whole wire again, 8.5 us a packet.
    for (int vl : {0, 1}) EXPECT_GT(words[vl] - before[vl], 2'900 * 264U) << "VL " << vl;
    EXPECT_EQ(overruns(link), overran);
}

TEST(JoinedPorts, lose_only_what_the_wire_loses) {
    JoinedPorts link({}, {.local_phy_errors = 15}, {.faults = {.loss = 0.01}}, 3);
    link.bring_up();
    std::uint64_t words = 0;
    link.add_actor(keep_sending(link.port(0), 0, 1024));
    link.add_actor(keep_taking(link.port(1), 0, 0, words));
    link.run_for(30 * kMillisecond);
    const std::uint64_t sent = link.port(0).counters().value(PortCounter::kXmitPkts);
    EXPECT_GT(sent, 500U);
    EXPECT_NEAR(static_cast<double>(words) / 264, static_cast<double>(sent) * 0.99,
                static_cast<double>(sent) * 0.01);
    EXPECT_EQ(overruns(link), 0U);
}

TEST(JoinedPorts, do_without_deadlock_or_loss_for_a_day) {
    constexpr Time kHour = 3600 * kSecond;
    JoinedPorts link({.symbol_time = 10'000}, {}, {});
    link.bring_up();
    std::uint64_t words = 0;
    link.add_actor(keep_taking(link.port(1), 0, 0, words));
    std::uint32_t sent = 0;
    // A packet a minute, and the port takes it from a link that is idle otherwise.
    link.add_actor([&, due = link.now()](Time now) mutable {
        if (now >= due) {
            EXPECT_EQ(link.port(0).enqueue(data_packet(0, 4096, sent), now), Enqueued::kQueued);
            ++sent;
            due += 60 * kSecond;
        }
        return due;
    });
    link.run_for(24 * kHour + kSecond);
    EXPECT_EQ(sent, 24U * 60 + 1);
    EXPECT_EQ(words, sent * std::uint64_t{1032});
    for (int end : {0, 1}) {
        EXPECT_EQ(link.port(end).state(), PortState::kActive);
        EXPECT_EQ(link.port(end).counters().value(PortCounter::kLinkErrorRecovery), 0U);
        EXPECT_EQ(link.port(end).counters().value(PortCounter::kRcvErrors), 0U);
    }
    // What an idle day costs: a flow control packet each way at 3/4 of 655 ms.
    EXPECT_LT(link.frames, 2U * 24 * 3600 * 1000 / 491 + 10'000);
}

class LosslessWire : public ::testing::TestWithParam<std::uint64_t> {};

/// Sends packets of random sizes at random times and takes them at others; counts by VL.
struct RandomTraffic {
    RandomTraffic(JoinedPorts& joined, int from, std::uint64_t seed, unsigned vls)
        : link(joined), random(seed), sender(from), lanes(vls), sent(vls), taken(vls) {}

    Time operator()(Time now) {
        if (now < due) return due;
        for (std::uint64_t i = random.draw(0, 20); i > 0; --i) {
            const auto vl = static_cast<std::uint8_t>(random.draw(0, lanes - 1));
            Packet packet = data_packet(vl, random.draw(0, 4096), sent[vl]);
            packet.lrh.dlid = link.port(1 - sender).settings().lid;
            if (link.port(sender).enqueue(packet, now) == Enqueued::kQueued) ++sent[vl];
        }
        for (std::uint64_t i = random.draw(0, 20); i > 0; --i)
            take(static_cast<std::uint8_t>(random.draw(0, lanes - 1)));
        due = now + random.draw(1, 60'000);
        return due;
    }
    bool take(std::uint8_t vl) {
        LinkPort& port = link.port(1 - sender);
        if (port.front(vl).empty()) return false;
        Packet packet;
        EXPECT_EQ(decode(port.front(vl), packet), DecodeError::kNone);
        EXPECT_EQ(packet.bth.psn, taken[vl]++) << "order on VL " << int{vl};
        port.pop(vl);
        return true;
    }

    JoinedPorts& link;
    simulation::Random random;
    int sender;
    unsigned lanes;
    Time due = 0;
    std::vector<std::uint32_t> sent, taken;
};

TEST_P(LosslessWire, never_overruns_and_never_loses) {
    const std::uint64_t seed = GetParam();
    simulation::Random random(seed);
    const auto vls = static_cast<std::uint8_t>(random.draw(1, 4));
    JoinedPorts link({.vl_cap = 4, .receive_blocks = random.draw32(66, 400), .send_blocks = 200},
                     {.operational_vls = vls},
                     {.delay = random.draw(1, 100'000), .byte_time = random.draw(1, 8)}, seed);
    link.bring_up();
    std::array<RandomTraffic, 2> traffic{RandomTraffic(link, 0, seed + 1, data_vls(vls)),
                                         RandomTraffic(link, 1, seed + 2, data_vls(vls))};
    for (RandomTraffic& way : traffic) link.add_actor([&way](Time now) { return way(now); });
    link.run_for(50 * kMillisecond);
    for (RandomTraffic& way : traffic) way.due = kNoDeadline;
    // Taken to the last one: the credits for what is still queued come with it.
    const auto finished = [&] {
        return std::all_of(traffic.begin(), traffic.end(),
                           [](const RandomTraffic& way) { return way.taken == way.sent; });
    };
    for (int turn = 0; turn < 1000 && !finished(); ++turn) {
        for (RandomTraffic& way : traffic)
            for (std::uint8_t vl = 0; vl < data_vls(vls); ++vl)
                while (way.take(vl)) {
                }
        link.run_for(kMillisecond);
    }
    for (RandomTraffic& way : traffic) EXPECT_EQ(way.taken, way.sent);
    EXPECT_EQ(overruns(link), 0U);
    for (int end : {0, 1}) EXPECT_EQ(link.port(end).counters().value(PortCounter::kRcvErrors), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LosslessWire, ::testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace uib::net::link
