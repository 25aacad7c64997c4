// Flow control: 7.6.4, 7.9.
#include <algorithm>
#include <map>

#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

struct FlowControl : ::testing::Test {
    Station station{LinkConfig{.receive_blocks = 100}, PortSettings{.operational_vls = 2}};

    FlowControlPacket update_of(Station& from, std::uint8_t vl) {
        for (const SentFrame& frame : from.updates())
            if (frame.update().vl == vl) return frame.update();
        ADD_FAILURE() << "no update of VL " << int{vl};
        return {};
    }
    /// The next regular one.
    FlowControlPacket next_update(std::uint8_t vl = 0) {
        station.wait_symbols(kUpdateSymbols);
        return update_of(station, vl);
    }
};

TEST_F(FlowControl, C7_29_each_lane_advertises_its_buffer) {
    ROWS("C7-29", "C7-31", "C7-60", "C7-63", "C7-55", "C7-59");
    station.to_init();
    std::map<int, FlowControlPacket> updates;
    for (const SentFrame& frame : station.updates()) updates[frame.update().vl] = frame.update();
    ASSERT_EQ(updates.size(), 4U);  // all supported ones while the link starts
    for (const auto& [vl, update] : updates) {
        EXPECT_LT(vl, 4);
        EXPECT_EQ(update.operand, kFlowControlInitialize);
        EXPECT_EQ(update.fctbs, 0);
        EXPECT_EQ(update.fccl, 100);
    }
    // At least a packet of the MTU, whatever was asked for; at most 2048 blocks.
    for (const auto& [mtu_cap, blocks, fccl] :
         {std::tuple{1, 1, 6}, std::tuple{4, 0, 34}, std::tuple{5, 10, 66}, std::tuple{5, 2048, 2048},
          std::tuple{5, 4000, 2048}}) {
        Station other({.mtu_cap = static_cast<std::uint8_t>(mtu_cap),
                       .receive_blocks = static_cast<std::uint32_t>(blocks)});
        other.to_init();
        EXPECT_EQ(update_of(other, 0).fccl, fccl);
    }
}

TEST_F(FlowControl, C7_29_what_is_taken_comes_back_as_credit) {
    ROWS("C7-29", "C7-63");
    station.to_active();
    for (int i = 0; i < 10; ++i) station.data(0, 500);  // 9 blocks each
    FlowControlPacket update = next_update();
    // The peer has not told FCTBS since, so ABR is what came: 90.
    EXPECT_EQ(update.fccl, 90 + 10);
    station.taken(0);
    // At once, for the peer could send no packet of the largest size.
    update = update_of(station, 0);
    EXPECT_EQ(update.fccl, 90 + 100);
    EXPECT_TRUE(station.updates().empty());
}

TEST_F(FlowControl, C7_30_link_packets_by_kind_of_lane) {
    ROWS("C7-30");
    station.to_active();
    station.wait_symbols(kUpdateSymbols);
    std::vector<int> vls;
    for (const SentFrame& frame : station.updates()) vls.push_back(frame.update().vl);
    EXPECT_EQ(vls, (std::vector{0, 1}));  // configured ones
    PortSettings settings = station.port.settings();
    settings.operational_vls = 3;
    station.port.configure(settings, station.now);
    vls.clear();
    for (const SentFrame& frame : station.updates()) vls.push_back(frame.update().vl);
    EXPECT_EQ(vls, (std::vector{2, 3}));  // at once those that are new
    // Received: a configured lane's counts; of one that is not there nothing is used.
    station.update({.vl = 3, .fctbs = 77, .fccl = 5});
    EXPECT_EQ(station.port.receive_credits(3).received(), 77);
    station.update({.vl = 4, .fctbs = 78, .fccl = 5});
    EXPECT_EQ(station.port.receive_discards().link_vl, 1U);
}

TEST_F(FlowControl, C7_53_updates_come_in_time) {
    ROWS("C7-53", "U7-5");
    for (const Time symbol : {Time{4}, Time{1000}}) {
        Station port({.symbol_time = symbol}, {.operational_vls = 2});
        std::map<int, Time> last;
        std::map<int, int> seen;
        const auto watch = [&] {
            for (const SentFrame& frame : port.updates()) {
                const int vl = frame.update().vl;
                if (last.contains(vl)) {
                    EXPECT_LT(port.now - last[vl], kUpdateSymbols * symbol);
                }
                last[vl] = port.now;
                ++seen[vl];
            }
        };
        port.to_init();
        watch();
        EXPECT_EQ(last.size(), 4U);  // on entry
        const auto idle = [&](int updates, std::uint8_t operand) {
            for (int i = 0; i < updates; ++i) {
                port.now = port.port.next_deadline();
                for (std::uint8_t vl = 0; vl < 2; ++vl)
                    port.update({.operand = operand, .vl = vl, .fccl = kPlenty});
                watch();
            }
        };
        idle(20, kFlowControlInitialize);
        EXPECT_EQ(seen[3], 21);
        port.command(PortState::kArm);
        watch();
        idle(20, kFlowControlNormal);
        port.command(PortState::kActive);
        idle(20, kFlowControlNormal);
        ASSERT_EQ(port.port.state(), PortState::kActive);
        EXPECT_GE(seen[0], 61);
        EXPECT_GE(seen[1], 61);
    }
}

TEST_F(FlowControl, C7_54_format) {
    ROWS("C7-54");
    struct Case {
        FlowControlPacket packet;
        const char* bytes;
    };
    for (const Case& each :
         {Case{{0, 0, 0, 0}, "00000000B362"}, Case{{1, 0, 0, 0x800}, "100008008DD8"},
          Case{{0, 0, 0x123, 0x456}, "012304561CB3"}, Case{{0, 7, 0xFFF, 0x7FF}, "0FFF77FF6742"},
          Case{{0, 14, 0, 0x100}, "0000E1004119"}}) {
        Bytes bytes(kLinkPacketBytes);
        build_link_packet(each.packet, std::span(bytes).first<kLinkPacketBytes>());
        EXPECT_EQ(bytes, hex(each.bytes));
        FlowControlPacket parsed;
        ASSERT_EQ(parse_link_packet(bytes, parsed), LinkPacketError::kNone);
        EXPECT_EQ(parsed.operand, each.packet.operand);
        EXPECT_EQ(parsed.vl, each.packet.vl);
        EXPECT_EQ(parsed.fctbs, each.packet.fctbs);
        EXPECT_EQ(parsed.fccl, each.packet.fccl);
    }
}

TEST_F(FlowControl, C7_56_normal_operand_in_arm_and_active) {
    ROWS("C7-56");
    station.to_arm();
    EXPECT_EQ(update_of(station, 0).operand, kFlowControlNormal);
    station.to_active();
    EXPECT_EQ(next_update().operand, kFlowControlNormal);
}

TEST_F(FlowControl, C7_58_fctbs_counts_blocks_sent) {
    ROWS("C7-58");
    station.to_active();
    std::uint32_t blocks = 0;
    for (const std::size_t payload : {0, 32, 33, 96, 97, 4096}) {
        station.send(0, payload);
        station.packets();
        blocks += static_cast<std::uint32_t>((payload + kDataOverhead + 3) / 4 * 4 + 63) / 64;
    }
    EXPECT_EQ(next_update().fctbs, blocks);
    // Modulo 4096.
    while (blocks < 5000) {
        station.credits(static_cast<std::uint16_t>((blocks + 100) % 4096));
        ASSERT_EQ(station.send(0, 4096), Enqueued::kQueued);
        ASSERT_EQ(station.packets().size(), 1U);
        blocks += 65;
    }
    EXPECT_EQ(next_update().fctbs, blocks - 4096);
    EXPECT_EQ(next_update(1).fctbs, 0);
}

TEST_F(FlowControl, C7_60_abr_is_zero_while_the_link_starts) {
    ROWS("C7-60");
    station.to_init();
    station.frames();
    station.update({.operand = kFlowControlInitialize, .vl = 0, .fctbs = 77, .fccl = kPlenty});
    EXPECT_EQ(station.port.receive_credits(0).received(), 0);
    EXPECT_EQ(next_update().fccl, 100);
    // The peer's limit is taken already then.
    EXPECT_EQ(station.port.send_credits(0).limit(), kPlenty);
}

// A packet that a switch filters has been sent and counted all the same.
TEST_F(FlowControl, C7_62_a_filtered_packet_counts) {
    ROWS("C7-62");
    Station port({.role = PortRole::kSwitch}, {.filter_raw_inbound = true});
    port.to_active();
    Packet raw = data_packet(0, 500);
    raw.kind = PacketKind::kRawEthertype;
    raw.lrh.dlid = kOwnLid;
    port.receives(wire_form(raw));
    EXPECT_EQ(port.port.receive_discards().raw_filter, 1U);
    EXPECT_EQ(port.port.receive_credits(0).received(), 8);
    EXPECT_EQ(port.port.free_receive_blocks(0), port.port.config().receive_blocks);
}

TEST_F(FlowControl, C7_61_abr_follows_the_sender) {
    ROWS("C7-61", "C7-62");
    station.to_active();
    station.data(0, 500);
    EXPECT_EQ(station.port.receive_credits(0).received(), 9);
    EXPECT_EQ(station.port.receive_credits(1).received(), 0);
    // A packet of 9 blocks was lost, and its sender tells what it has sent.
    station.update({.vl = 0, .fctbs = 18, .fccl = kPlenty});
    EXPECT_EQ(station.port.receive_credits(0).received(), 18);
    // Discarded for want of room: not counted.
    station.data(0, 4096);
    station.data(0, 4096);
    EXPECT_EQ(station.port.receive_discards().buffer_overrun, 1U);
    EXPECT_EQ(station.port.receive_credits(0).received(), 18 + 65);
    // Discarded for another reason than room: counted, for the sender counts it.
    station.receives(
        changed(Station::to_port(0, 500), [](Bytes& p) { store_be<2>(&p[2], std::uint16_t{0x33}); }));
    EXPECT_EQ(station.port.receive_credits(0).received(), 18 + 65 + 9);
    // Modulo 4096.
    station.taken(0);
    station.update({.vl = 0, .fctbs = 4090, .fccl = kPlenty});
    station.data(0, 500);
    EXPECT_EQ(station.port.receive_credits(0).received(), 3);
}

TEST_F(FlowControl, C7_64_a_packet_is_sent_only_if_all_of_it_is_covered) {
    ROWS("C7-64");
    // CR is 2: the first packet, of two blocks.
    for (const auto& [difference, sent] : {std::pair{0, true}, std::pair{1, true}, std::pair{2048, true},
                                           std::pair{2049, false}, std::pair{4095, false}}) {
        Station port;
        port.to_active();
        port.update({.vl = 0, .fccl = static_cast<std::uint16_t>((2 + difference) % 4096)});
        port.send(0, 64);
        EXPECT_EQ(port.packets().size(), sent ? 1U : 0U) << difference;
    }
    // A lane that waits counts its ticks, and goes on when credits come.
    station.to_active();
    station.credits(1);
    station.send(0, 64);
    EXPECT_TRUE(station.packets().empty());
    station.wait_symbols(250);
    station.credits(2);
    EXPECT_EQ(station.packets().size(), 1U);
    EXPECT_EQ(station.count(PortCounter::kXmitWait), 250U);
    station.wait_symbols(250);
    station.frames();
    EXPECT_EQ(station.count(PortCounter::kXmitWait), 250U);
}

}  // namespace
}  // namespace uib::net::link
