// What only a switch's port does: lifetimes, stalled lanes, raw filters.
#include <gtest/gtest.h>

#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

constexpr Time kLifetime8 = 4096 << 8;  // about a millisecond

/// A port of a switch that has no credits on VL0.
Station waiting_port(PortSettings settings) {
    settings.operational_vls = 2;
    Station station({.role = PortRole::kSwitch}, settings);
    station.to_active();
    station.update({.vl = 0, .fccl = 0});
    return station;
}

TEST(SwitchPort, discards_what_waits_too_long_at_the_head_of_its_queue) {
    Station station = waiting_port({.hoq_life = 8});
    for (std::uint32_t psn = 0; psn < 3; ++psn) station.send(0, 64, psn);
    station.send(1, 64, 9);
    EXPECT_EQ(station.packets().size(), 1U);  // VL1
    EXPECT_LE(station.port.next_deadline(), station.now + kLifetime8);
    station.wait(kLifetime8 - 1);
    station.frames();
    EXPECT_EQ(station.port.queued_packets(0), 3U);
    station.wait(1);
    station.frames();
    // The next has been at the head since now.
    EXPECT_EQ(station.port.queued_packets(0), 2U);
    station.wait(kLifetime8);
    station.frames();
    EXPECT_EQ(station.port.send_discards().hoq_life, 2U);
    EXPECT_EQ(station.count(PortCounter::kXmitDiscards), 2U);
    station.update({.vl = 0, .fccl = kPlenty});
    const auto sent = station.packets();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(psn_of(sent[0].bytes), 2U);
}

TEST(SwitchPort, discards_what_has_been_in_the_switch_too_long) {
    Station station = waiting_port({.packet_life = 8});
    station.send(0, 64, 0);
    station.wait(kLifetime8 / 2);
    station.send(0, 64, 1);
    station.wait(kLifetime8 / 2);
    station.frames();
    EXPECT_EQ(station.port.queued_packets(0), 1U);
    EXPECT_EQ(station.port.send_discards().packet_life, 1U);
    station.wait(kLifetime8 / 2);
    station.frames();
    EXPECT_EQ(station.port.queued_packets(0), 0U);
}

TEST(SwitchPort, stalls_a_lane_that_loses_packet_after_packet) {
    Station station = waiting_port({.hoq_life = 8, .vl_stall_count = 2});
    for (std::uint32_t psn = 0; psn < 5; ++psn) station.send(0, 64, psn);
    for (int i = 0; i < 2; ++i) {
        station.frames();
        station.wait(kLifetime8);
        station.frames();
    }
    EXPECT_EQ(station.port.queued_packets(0), 0U);
    EXPECT_EQ(station.port.send_discards().hoq_life, 2U);
    EXPECT_EQ(station.port.send_discards().vl_stalled, 3U);
    EXPECT_EQ(station.send(0), Enqueued::kDiscarded);
    EXPECT_EQ(station.send(1), Enqueued::kQueued);
    station.wait(8 * kLifetime8);
    EXPECT_EQ(station.send(0), Enqueued::kQueued);
}

TEST(SwitchPort, does_not_stall_a_lane_that_sends_in_between) {
    Station station = waiting_port({.hoq_life = 8, .vl_stall_count = 2});
    for (int i = 0; i < 4; ++i) {
        station.send(0);
        station.frames();
        station.wait(kLifetime8);
        station.frames();
        ASSERT_EQ(station.send(0), Enqueued::kQueued);
        const auto sent = static_cast<std::uint16_t>(2 * (i + 1));
        station.update({.vl = 0, .fccl = sent});
        EXPECT_EQ(station.packets().size(), 1U);
    }
    EXPECT_EQ(station.port.send_discards().hoq_life, 4U);
    EXPECT_EQ(station.port.send_discards().vl_stalled, 0U);
}

TEST(SwitchPort, keeps_packets_of_an_adapter_for_as_long_as_it_takes) {
    Station station({}, {.hoq_life = 0, .packet_life = 0});
    station.to_active();
    station.update({.vl = 0, .fccl = 0});
    station.send(0);
    station.wait_symbols(100'000);
    station.frames();
    EXPECT_EQ(station.port.queued_packets(0), 1U);
}

TEST(SwitchPort, filters_raw_packets_as_it_is_told) {
    Station station({.role = PortRole::kSwitch}, {.filter_raw_inbound = true, .filter_raw_outbound = true});
    station.to_active();
    Packet raw = data_packet(0, 64);
    raw.kind = PacketKind::kRawEthertype;
    EXPECT_EQ(station.port.enqueue(raw, station.now), Enqueued::kDiscarded);
    EXPECT_EQ(station.count(PortCounter::kXmitConstraintErrors), 1U);
    EXPECT_EQ(station.count(PortCounter::kXmitDiscards), 0U);
    raw.lrh.dlid = kOwnLid;
    station.receives(wire_form(raw));
    EXPECT_EQ(station.taken(0), 0);
    EXPECT_EQ(station.count(PortCounter::kRcvConstraintErrors), 1U);
    station.data(0);
    EXPECT_EQ(station.taken(0), 1);
    // An adapter's port has no such filters.
    Station adapter({}, {.filter_raw_inbound = true, .filter_raw_outbound = true});
    adapter.to_active();
    EXPECT_EQ(adapter.port.enqueue(raw, adapter.now), Enqueued::kQueued);
    adapter.receives(wire_form(raw));
    EXPECT_EQ(adapter.taken(0), 1);
}

// Many small packets are credit again in time: a quarter of the buffer is told at once, not three quarters of
// an update period later.
TEST(LinkPort, tells_a_quarter_of_its_buffer_at_once) {
    Station station({.receive_blocks = 400});
    station.to_active();
    for (int i = 0; i < 60; ++i) station.data(0);  // 120 blocks
    station.taken(0);
    const auto updates = station.updates();
    ASSERT_EQ(updates.size(), 1U);
    EXPECT_EQ(updates[0].update().fccl, 400 + 120);
    for (int i = 0; i < 40; ++i) station.data(0);
    station.taken(0);
    EXPECT_TRUE(station.updates().empty()) << "80 blocks can wait";
}

TEST(LinkPort, takes_no_more_than_its_queue_holds) {
    Station station({.send_blocks = 66, .vl15_packets = 2});
    station.to_active();
    EXPECT_EQ(station.send(0, 4096), Enqueued::kQueued);
    EXPECT_EQ(station.send(0, 64), Enqueued::kFull);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(station.send_smp(), Enqueued::kQueued);
    EXPECT_EQ(station.send_smp(), Enqueued::kFull);
    EXPECT_EQ(station.count(PortCounter::kXmitDiscards), 0U);
    EXPECT_EQ(station.packets().size(), 3U);
    EXPECT_EQ(station.send(0, 64), Enqueued::kQueued);
}

TEST(LinkPort, counts_packets_and_words) {
    Station station;
    station.to_active();
    Packet multicast = data_packet(0, 68);
    multicast.lrh.dlid = 0xC005;
    station.port.enqueue(multicast, station.now);
    station.send(0, 32);
    station.packets();
    station.data(0, 32);
    PortCounters& counters = station.port.counters();
    EXPECT_EQ(counters.value(PortCounter::kXmitPkts), 2U);
    EXPECT_EQ(counters.value(PortCounter::kXmitData), 25U + 16);
    EXPECT_EQ(counters.extended(PortCounter::kMulticastXmitPkts), 1U);
    EXPECT_EQ(counters.extended(PortCounter::kUnicastXmitPkts), 1U);
    EXPECT_EQ(counters.value(PortCounter::kRcvPkts), 1U);
    EXPECT_EQ(counters.value(PortCounter::kRcvData), 16U);
    EXPECT_EQ(counters.extended(PortCounter::kUnicastRcvPkts), 1U);
}

TEST(LinkPort, counts_waiting_in_whole_ticks_however_often_it_is_asked) {
    Station station;
    station.to_active();
    station.update({.vl = 0, .fccl = 0});
    station.send(0);
    station.frames();
    for (int i = 0; i < 100; ++i) {  // 300 ns each, of a tick of 1000
        station.wait(300);
        station.frames();
    }
    EXPECT_EQ(station.count(PortCounter::kXmitWait), 30U);
}

}  // namespace
}  // namespace uib::net::link
