// Arbitration among data VLs: 7.6.9.2.
#include <algorithm>

#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

/// The text of 7.6.9.2.3 and 7.6.9.2.4, sentence by sentence, in bytes where it says bytes.
class Reference {
  public:
    Reference(std::vector<ArbitrationEntry> high, std::vector<ArbitrationEntry> low, int limit)
        : limit_(limit), counter_(limit * 4096) {
        for (auto [list, table] : {std::pair{&high, &high_}, std::pair{&low, &low_}}) {
            for (const ArbitrationEntry& entry : *list)
                if (entry.weight > 0 && entry.vl < 15) table->list.push_back(entry);  // others are not there
            table->at = table->list.empty() ? 0 : table->list.size() - 1;
        }
    }
    int next(const ReadyWords& ready) {
        const bool available =
            std::any_of(high_.list.begin(), high_.list.end(),
                        [&](const ArbitrationEntry& entry) { return ready[entry.vl] > 0; });
        if (available && counter_ >= 0) return send(high_, ready);
        counter_ = limit_ * 4096;
        const int vl = send(low_, ready);
        return vl >= 0 ? vl : send(high_, ready);
    }

  private:
    struct Table {
        std::vector<ArbitrationEntry> list;
        std::size_t at = 0;
        int left = 0;
    };
    int send(Table& table, const ReadyWords& ready) {
        if (table.list.empty()) return -1;
        for (std::size_t tries = 0;; ++tries) {
            const ArbitrationEntry& entry = table.list[table.at];
            const int bytes = static_cast<int>(ready[entry.vl]) * 4;
            if (table.left > 0 && bytes > 0) {
                table.left -= bytes;
                if (&table == &high_ && limit_ != 255) counter_ -= bytes;
                return entry.vl;
            }
            if (tries == table.list.size()) return -1;  // round the whole table
            table.at = (table.at + 1) % table.list.size();
            table.left = table.list[table.at].weight * 64;
        }
    }

    Table high_, low_;
    int limit_, counter_;
};

struct Arbitration : ::testing::Test {
    /// VLs of the next `count` packets if those lanes always have packets of `words`.
    static std::vector<int> order(VlArbiter& arbiter, std::vector<int> lanes, std::uint32_t words,
                                  int count) {
        ReadyWords ready{};
        for (const int vl : lanes) ready[static_cast<std::size_t>(vl)] = words;
        std::vector<int> vls;
        for (int i = 0; i < count; ++i) {
            const auto vl = arbiter.next(ready);
            vls.push_back(vl ? int{*vl} : -1);
        }
        return vls;
    }
    static VlArbiter arbiter(const ArbitrationTables& tables, std::uint8_t limit = 0) {
        VlArbiter made;
        made.set_limit(limit);
        made.set_tables(tables);
        return made;
    }
};

TEST_F(Arbitration, o7_12_the_reference_gives_the_same_order) {
    ROWS("o7-12", "o7-12/2", "o7-12/7");
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        simulation::Random random(seed);
        ArbitrationTables tables;
        for (auto* list : {&tables.high, &tables.low})
            for (std::uint64_t i = random.draw(list == &tables.low ? 1 : 0, 12); i > 0; --i)
                list->push_back({static_cast<std::uint8_t>(random.draw(0, 15)),
                                 static_cast<std::uint8_t>(random.chance(0.2) ? 0 : random.draw(0, 255))});
        const auto limit = static_cast<std::uint8_t>(random.chance(0.2) ? 255 : random.draw(0, 5));
        VlArbiter tested = arbiter(tables, limit);
        Reference reference(tables.high, tables.low, limit);
        for (int packet = 0; packet < 500; ++packet) {
            ReadyWords ready{};
            for (std::uint32_t& words : ready) words = random.chance(0.4) ? 0 : random.draw32(6, 1055);
            const int expected = reference.next(ready);
            const auto vl = tested.next(ready);
            if (expected < 0 && vl) {  // a lane of no list
                const auto names_it = [&](const ArbitrationEntry& e) { return e.weight > 0 && e.vl == *vl; };
                EXPECT_TRUE(std::none_of(tables.high.begin(), tables.high.end(), names_it));
                EXPECT_TRUE(std::none_of(tables.low.begin(), tables.low.end(), names_it));
                continue;
            }
            ASSERT_EQ(vl ? int{*vl} : -1, expected) << "seed " << seed << ", packet " << packet;
        }
    }
}

TEST_F(Arbitration, o7_12_lists) {
    ROWS("o7-12/1");
    Station station({}, {.operational_vls = 3});
    ArbitrationTables tables{.high = std::vector<ArbitrationEntry>(64, {1, 1}),
                             .low = std::vector<ArbitrationEntry>(64, {0, 2})};
    EXPECT_TRUE(station.port.set_arbitration(tables));
    EXPECT_EQ(station.port.arbitration().high, tables.high);
    tables.low.push_back({2, 2});
    EXPECT_FALSE(station.port.set_arbitration(tables));
    EXPECT_EQ(station.port.arbitration().low.size(), 64U);
    EXPECT_TRUE(station.port.set_arbitration({.high = {{0, 1}, {0, 1}}, .low = {{0, 3}, {1, 1}, {0, 3}}}));
}

TEST_F(Arbitration, o7_12_weight_zero_is_skipped) {
    ROWS("o7-12/3");
    VlArbiter tested = arbiter({.high = {{2, 0}}, .low = {{0, 1}, {1, 0}}});
    EXPECT_EQ(order(tested, {0, 1, 2}, 20, 3), (std::vector{0, 0, 0}));
}

TEST_F(Arbitration, o7_12_entries_of_lanes_that_are_not_there_stall_nothing) {
    ROWS("o7-12/4", "o7-12/5");
    Station station({}, {.operational_vls = 3});
    station.to_active();
    station.port.set_arbitration({.high = {{15, 9}, {14, 9}}, .low = {{15, 1}, {9, 1}, {0, 1}}});
    station.send(0);
    station.send(3);  // in neither list: sent when nothing else is there
    const auto sent = station.packets();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0].lrh().lrh.vl, 0);
    EXPECT_EQ(sent[1].lrh().lrh.vl, 3);
}

TEST_F(Arbitration, o7_12_limit_of_high_priority) {
    ROWS("o7-12/6", "o7-12/8");
    const ArbitrationTables tables{.high = {{1, 255}}, .low = {{0, 255}}};
    for (const int limit : {0, 1, 2, 7}) {
        VlArbiter tested = arbiter(tables, static_cast<std::uint8_t>(limit));
        // Packets of 100 words are sent while the counter is not negative, the one that crosses zero, too.
        const int high_packets = limit * 1024 / 100 + 1;
        for (int round = 0; round < 3; ++round) {
            const auto vls = order(tested, {0, 1}, 100, high_packets + 1);
            EXPECT_EQ(std::count(vls.begin(), vls.end(), 1), high_packets) << limit;
            EXPECT_EQ(vls.back(), 0) << limit;
        }
    }
    VlArbiter exact = arbiter(tables, 1);  // exactly zero is not expired
    EXPECT_EQ(order(exact, {0, 1}, 512, 4), (std::vector{1, 1, 1, 0}));
    VlArbiter unlimited = arbiter(tables, 255);
    const auto vls = order(unlimited, {0, 1}, 1000, 500);
    EXPECT_EQ(std::count(vls.begin(), vls.end(), 1), 500);
}

TEST_F(Arbitration, o7_12_a_packet_may_overdraw_the_weight) {
    ROWS("o7-12/9");
    VlArbiter tested = arbiter({.high = {}, .low = {{0, 1}, {1, 1}}});
    EXPECT_EQ(order(tested, {0, 1}, 1032, 4), (std::vector{0, 1, 0, 1}));
    // 16 words a weight: three packets of 16 fit three weights exactly, and then it is used up.
    VlArbiter exact = arbiter({.high = {}, .low = {{0, 3}, {1, 1}}});
    EXPECT_EQ(order(exact, {0, 1}, 16, 8), (std::vector{0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST_F(Arbitration, o7_12_an_idle_table_gives_way_at_once) {
    ROWS("o7-12/10");
    VlArbiter tested = arbiter({.high = {{1, 255}}, .low = {{0, 255}}}, 255);
    EXPECT_EQ(order(tested, {0}, 10, 2), (std::vector{0, 0}));
    EXPECT_EQ(order(tested, {1}, 10, 2), (std::vector{1, 1}));
    VlArbiter limited = arbiter({.high = {{1, 255}}, .low = {{0, 255}}}, 0);
    EXPECT_EQ(order(limited, {1}, 10, 3), (std::vector{1, 1, 1}));
}

}  // namespace
}  // namespace uib::net::link
