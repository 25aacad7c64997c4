// Virtual lanes, service levels and the SL-to-VL table: 7.6.1 to 7.6.7.
#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

std::uint8_t vl_of(const SentFrame& frame) {
    return frame.lrh().lrh.vl;
}

struct Lanes : ::testing::Test {
    Station station{LinkConfig{.receive_blocks = 66, .vl15_packets = 4}, PortSettings{.operational_vls = 3}};
    void SetUp() override { station.to_active(); }
};

TEST_F(Lanes, C7_13_every_lane_buffers_and_orders_on_its_own) {
    ROWS("C7-13", "o7-2", "C7-28", "C7-32", "C7-35");
    const auto free_of = [&](std::uint8_t vl) { return station.port.free_receive_blocks(vl); };
    station.data(0, 4000);
    EXPECT_LT(free_of(0), 5U);
    for (const std::uint8_t vl : {1, 2, 3}) EXPECT_EQ(free_of(vl), 66U);
    station.data(1, 64);
    EXPECT_EQ(free_of(1), 64U);  // 96 bytes: two blocks
    EXPECT_EQ(station.taken(0), 1);
    EXPECT_EQ(station.taken(1), 1);
    // One lane without credits stops no other.
    station.update({.vl = 0, .fccl = 0});
    for (std::uint32_t psn = 0; psn < 3; ++psn) {
        station.send(0, 64, psn);
        station.send(1, 64, psn);
    }
    auto sent = station.packets();
    ASSERT_EQ(sent.size(), 3U);
    for (std::uint32_t psn = 0; psn < 3; ++psn) {
        EXPECT_EQ(vl_of(sent[psn]), 1);
        EXPECT_EQ(psn_of(sent[psn].bytes), psn);
    }
    station.update({.vl = 0, .fccl = kPlenty});
    sent = station.packets();
    ASSERT_EQ(sent.size(), 3U);
    for (std::uint32_t psn = 0; psn < 3; ++psn) EXPECT_EQ(psn_of(sent[psn].bytes), psn);
}

TEST_F(Lanes, C7_14_packets_carry_their_lane_and_level) {
    ROWS("C7-14", "C7-37", "C7-34", "C7-36", "U7-2");
    SlToVl row{};
    row[9] = 3;
    row[5] = 1;
    station.port.set_sl_to_vl(0, row);
    station.send(9);
    const auto sent = station.packets();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].bytes[0], std::byte{0x30});
    EXPECT_EQ(sent[0].bytes[1], std::byte{0x92});
    EXPECT_EQ(Bytes(sent[0].bytes.begin() + 2, sent[0].bytes.begin() + 8), hex("0020 0018 0010"));
    // What comes the other way may have another level, on any lane; nobody compares.
    station.receives(changed(Station::to_port(1), [](Bytes& p) { p[1] = std::byte{0xF2}; }));
    EXPECT_EQ(station.taken(1), 1);
}

TEST_F(Lanes, C7_15_the_numbers_of_lanes) {
    ROWS("C7-15", "C7-16", "o7-3", "C7-17", "U7-3");
    constexpr std::array<unsigned, 6> kVls{0, 1, 2, 4, 8, 15};
    for (std::uint8_t cap = 1; cap <= 5; ++cap) {
        for (std::uint8_t operational = 1; operational <= 6; ++operational) {
            Station port({.vl_cap = cap}, {.operational_vls = operational});
            const std::uint8_t loaded = std::min(cap, operational);
            EXPECT_EQ(port.port.settings().operational_vls, loaded);
            EXPECT_EQ(port.port.supported_vls(), kVls[cap]);
            ASSERT_EQ(port.port.operational_vls(), kVls[loaded]);
            port.to_active();
            // Numbered from zero, the same both ways; VL15 always.
            for (std::uint8_t vl = 0; vl < 15; ++vl) {
                const bool there = vl < kVls[loaded];
                port.data(vl);
                EXPECT_EQ(port.taken(vl), there ? 1 : 0);
                EXPECT_EQ(port.send(vl), there ? Enqueued::kQueued : Enqueued::kDiscarded);
                EXPECT_EQ(port.packets().size(), there ? 1U : 0U);
            }
            port.data(kVl15);
            EXPECT_EQ(port.taken(kVl15), 1);
            EXPECT_EQ(port.send_smp(), Enqueued::kQueued);
            EXPECT_EQ(port.packets().size(), 1U);
        }
    }
    // Code 0 of a Set changes nothing.
    PortSettings settings = station.port.settings();
    settings.operational_vls = 0;
    station.port.configure(settings, station.now);
    EXPECT_EQ(station.port.settings().operational_vls, 3);
}

TEST_F(Lanes, C7_18_vl15_needs_no_credits) {
    ROWS("C7-18", "C7-65", "C7-20");
    station.credits(4095);  // CL - CR is far beyond 2048
    station.send(0);
    station.send_smp();
    const auto sent = station.packets();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(vl_of(sent[0]), kVl15);
    station.wait_symbols(kUpdateSymbols);
    EXPECT_EQ(station.updates().size(), 4U);
    station.data(kVl15);
    EXPECT_EQ(station.taken(kVl15), 1);
}

TEST_F(Lanes, C7_19_vl15_without_room_is_counted_and_nothing_else) {
    ROWS("C7-19");
    for (int i = 0; i < 7; ++i) station.data(kVl15);
    EXPECT_EQ(station.count(PortCounter::kVl15Dropped), 3U);
    EXPECT_EQ(station.count(PortCounter::kRcvErrors), 0U);
    EXPECT_EQ(station.port.receive_discards().buffer_overrun, 0U);
    EXPECT_EQ(station.taken(kVl15), 4);
}

TEST_F(Lanes, C7_21_vl15_has_a_buffer_of_its_own) {
    ROWS("C7-21", "C7-22");
    for (const PortRole role : {PortRole::kChannelAdapter, PortRole::kSwitch}) {
        Station port({.role = role, .receive_blocks = 66, .vl15_packets = 1}, {.operational_vls = 3});
        port.to_active();
        for (std::uint8_t vl = 0; vl < 4; ++vl) {
            port.data(vl, 4000);
            port.data(vl, 4000);
        }
        EXPECT_EQ(port.port.receive_discards().buffer_overrun, 4U);
        port.data(kVl15);
        EXPECT_EQ(port.taken(kVl15), 1);
    }
}

TEST_F(Lanes, C7_23_vl15_goes_before_everything) {
    ROWS("C7-23", "o7-10", "o7-11");
    for (const std::uint8_t vls : {1, 3}) {
        Station port({}, {.operational_vls = vls});
        port.to_active();
        port.send(0);
        port.wait_symbols(kUpdateSymbols);
        port.send_smp();
        const auto sent = port.frames();
        const std::size_t updates = data_vls(vls);
        ASSERT_EQ(sent.size(), updates + 2);
        EXPECT_EQ(vl_of(sent[0]), kVl15);
        for (std::size_t i = 1; i <= updates; ++i) EXPECT_EQ(sent[i].start, FrameStart::kLink);
        EXPECT_EQ(sent.back().start, FrameStart::kData);
        EXPECT_EQ(vl_of(sent.back()), 0);
    }
}

TEST_F(Lanes, C7_24_a_switch_keeps_vl15_and_the_others_apart) {
    ROWS("C7-24", "U7-1");
    Station port({.role = PortRole::kSwitch, .input_ports = 3}, {.operational_vls = 3});
    SlToVl filter{};
    filter.fill(15);
    port.port.set_sl_to_vl(2, filter);
    port.to_active();
    EXPECT_EQ(port.port.forward(Station::to_port(1), 2, port.now), Enqueued::kDiscarded);
    // The level of a VL15 packet is ignored.
    const Bytes smp = changed(Station::to_port(kVl15), [](Bytes& p) { p[1] |= std::byte{0x90}; });
    EXPECT_EQ(port.port.forward(smp, 2, port.now), Enqueued::kQueued);
    const auto sent = port.packets();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].bytes, smp);
    station.receives(smp);
    EXPECT_EQ(station.taken(kVl15), 1);
    // Its source sets it to 0.
    Packet own = smp_packet();
    own.lrh.sl = 5;
    station.port.enqueue(own, station.now);
    EXPECT_EQ(station.packets().at(0).lrh().lrh.sl, 0);
}

TEST_F(Lanes, C7_26_vl15_carries_local_packets_of_256_bytes_only) {
    ROWS("C7-26", "C7-27", "o7-13.1.1/5");
    for (const PacketKind kind : {PacketKind::kRawEthertype, PacketKind::kRawIpv6}) {
        Packet raw = data_packet(0, 64);
        raw.kind = kind;
        raw.lrh.dlid = kOwnLid;
        raw.lrh.vl = kVl15;
        station.receives(wire_form(raw));
    }
    Packet global = smp_packet();
    global.has_grh = true;
    EXPECT_EQ(station.port.enqueue(global, station.now), Enqueued::kDiscarded);
    global.lrh.vl = kVl15;
    station.receives(wire_form(global));
    EXPECT_EQ(station.taken(kVl15), 0);
    EXPECT_EQ(station.port.receive_discards().of(PacketError::kGrhOnVl15), 3U);

    Packet large = smp_packet();
    large.payload = payload_of(260);
    EXPECT_EQ(station.port.enqueue(large, station.now), Enqueued::kDiscarded);
    Packet multicast = smp_packet();
    multicast.lrh.dlid = 0xC001;
    EXPECT_EQ(station.port.enqueue(multicast, station.now), Enqueued::kDiscarded);
    EXPECT_EQ(station.port.send_discards().vl15_form, 3U);
    station.send_smp();
    EXPECT_EQ(station.packets().at(0).lrh().words, 72);
}

TEST_F(Lanes, C7_33_a_packet_keeps_its_level_and_addresses_across_hops) {
    ROWS("C7-33", "C7-46");
    Station input({.role = PortRole::kSwitch}, {.operational_vls = 3});
    Station output({.role = PortRole::kSwitch}, {.operational_vls = 3});
    input.to_active();
    output.to_active();
    SlToVl row{};
    row[2] = 1;
    output.port.set_sl_to_vl(0, row);
    station.send(2, 100, 5);
    const Bytes first_hop = station.packets().at(0).bytes;
    input.receives(first_hop);
    ASSERT_EQ(output.port.forward(input.port.front(2), 0, output.now), Enqueued::kQueued);
    const SentFrame sent = output.packets().at(0);
    EXPECT_EQ(sent.lrh().lrh.vl, 1);
    EXPECT_EQ(sent.lrh().lrh.sl, 2);
    EXPECT_EQ(sent.lrh().lrh.slid, kOwnLid);
    EXPECT_EQ(sent.lrh().lrh.dlid, kPeerLid);
    EXPECT_EQ(psn_of(sent.bytes), 5U);  // both CRCs are right
    EXPECT_TRUE(std::equal(first_hop.begin() + 1, first_hop.end() - 2, sent.bytes.begin() + 1));
}

TEST_F(Lanes, o7_4_a_port_of_several_lanes_maps_and_arbitrates) {
    ROWS("o7-4", "o7-5");
    Station other({}, {.operational_vls = 3});
    other.to_active();
    for (Station* port : {&station, &other}) {
        SlToVl row{};
        for (unsigned sl = 0; sl < row.size(); ++sl)
            row[sl] = static_cast<std::uint8_t>((sl + (port == &other ? 1 : 0)) % 4);
        EXPECT_TRUE(port->port.set_sl_to_vl(0, row));
        EXPECT_EQ(port->port.sl_to_vl(0), row);
        EXPECT_FALSE(port->port.set_sl_to_vl(1, row));
        EXPECT_TRUE(port->port.set_arbitration({.high = {{0, 1}}, .low = {{1, 1}, {2, 1}, {3, 1}}}));
        for (std::uint8_t sl = 0; sl < 16; ++sl) {
            port->send(sl);
            const auto sent = port->packets();
            ASSERT_EQ(sent.size(), 1U);
            EXPECT_EQ(vl_of(sent[0]), row[sl]);
            EXPECT_EQ(sent[0].lrh().lrh.sl, sl);
        }
    }
}

TEST_F(Lanes, o7_6_a_switch_maps_by_the_input_port) {
    ROWS("o7-6");
    Station port({.role = PortRole::kSwitch, .input_ports = 4}, {.operational_vls = 3});
    port.to_active();
    for (unsigned input = 0; input < 4; ++input) {
        SlToVl row{};
        row[3] = static_cast<std::uint8_t>(3 - input);
        port.port.set_sl_to_vl(input, row);
    }
    for (unsigned input = 0; input < 4; ++input) {
        const Bytes packet = changed(Station::to_port(0), [](Bytes& p) { p[1] = std::byte{0x32}; });
        port.port.forward(packet, input, port.now);
        EXPECT_EQ(vl_of(port.packets().at(0)), 3 - input);
    }
}

TEST_F(Lanes, o7_8_what_mapping_does_to_a_packet) {
    ROWS("o7-8");
    SlToVl row{};
    row[5] = 15;  // filtered
    row[6] = 8;   // not supported
    row[7] = 3;   // supported, and with two VLs not configured
    station.port.set_sl_to_vl(0, row);
    EXPECT_EQ(station.send(5), Enqueued::kDiscarded);
    EXPECT_EQ(station.send(6), Enqueued::kDiscarded);
    EXPECT_EQ(station.send(7), Enqueued::kQueued);
    PortSettings settings = station.port.settings();
    settings.operational_vls = 2;
    station.port.configure(settings, station.now);
    EXPECT_EQ(station.send(7), Enqueued::kDiscarded);
    EXPECT_TRUE(station.packets().empty());  // the queued one went with its lane
    EXPECT_EQ(station.port.send_discards().vl_mapping, 4U);
    EXPECT_EQ(station.count(PortCounter::kXmitDiscards), 4U);
}

TEST_F(Lanes, o7_9_tables_change_under_load_and_packets_stay_whole) {
    ROWS("o7-9", "o7-12/11");
    JoinedPorts link({}, {.operational_vls = 3}, {});
    link.bring_up();
    simulation::Random random(3);
    std::uint64_t words = 0;
    for (std::uint8_t sl = 0; sl < 4; ++sl) link.add_actor(keep_sending(link.port(0), sl, 700));
    for (std::uint8_t vl = 0; vl < 4; ++vl) link.add_actor(keep_taking(link.port(1), vl, 0, words));
    for (int turn = 0; turn < 200; ++turn) {
        SlToVl row{};
        for (std::uint8_t& vl : row) vl = static_cast<std::uint8_t>(random.draw(0, 3));
        link.port(0).set_sl_to_vl(0, row);
        const auto entry = [&] {
            return ArbitrationEntry{static_cast<std::uint8_t>(random.draw(0, 15)),
                                    static_cast<std::uint8_t>(random.draw(0, 255))};
        };
        link.port(0).set_arbitration({.high = {entry()}, .low = {entry(), entry(), entry()}});
        link.run_for(20'000);
    }
    EXPECT_GT(words, 1000U);
    EXPECT_EQ(link.port(1).counters().value(PortCounter::kRcvErrors), 0U);
    EXPECT_EQ(link.port(1).receive_discards().buffer_overrun, 0U);
}

}  // namespace
}  // namespace uib::net::link
