// Whatever bytes a wire brings: under the sanitizers, nothing outside them is read; and each frame is a
// packet, news of flow control, or counted by the check that refused it, once.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

class HostileFrames : public ::testing::TestWithParam<PortRole> {
  protected:
    HostileFrames()
        : station_({.role = GetParam(), .mtu_cap = 3, .receive_blocks = 40, .vl15_packets = 2},
                   {.operational_vls = 2, .local_phy_errors = 15, .filter_raw_inbound = true}) {
        station_.to_active();
    }

    /// Everything that can become of a received frame but for flow control.
    std::uint64_t told() {
        const ReceiveDiscards& discards = station_.port.receive_discards();
        std::uint64_t sum = discards.link_vl + discards.bad_packets + discards.marked_bad + discards.state +
                            discards.buffer_overrun + discards.raw_filter;
        sum = std::accumulate(discards.checks.begin(), discards.checks.end(), sum);
        sum = std::accumulate(discards.link_checks.begin(), discards.link_checks.end(), sum);
        return sum + station_.port.counters().total(PortCounter::kVl15Dropped);
    }
    void empty_buffers() {
        for (std::uint8_t vl = 0; vl < 4; ++vl) station_.taken(vl);
        station_.taken(kVl15);
    }
    std::uint64_t free_blocks() {
        std::uint64_t blocks = station_.port.free_receive_blocks(kVl15);
        for (std::uint8_t vl = 0; vl < 4; ++vl) blocks += station_.port.free_receive_blocks(vl);
        return blocks;
    }
    void revive() {
        station_.wait(station_.port.config().training_time);
        station_.frames();
        if (station_.port.state() == PortState::kActive) return;
        station_.command(PortState::kArm);
        station_.credits(kPlenty);
        station_.command(PortState::kActive);
        station_.frames();
        ASSERT_EQ(station_.port.state(), PortState::kActive);
    }
    Bytes packet() {
        const std::uint64_t kind = random_.draw(0, 9);
        if (kind == 0) return Station::to_port(kVl15);
        Packet made = data_packet(0, random_.draw(0, 200));
        made.lrh.vl = static_cast<std::uint8_t>(random_.draw(0, 2));
        made.lrh.dlid = kOwnLid;
        made.has_grh = kind == 1;
        if (kind == 2) made.kind = PacketKind::kRawEthertype;
        if (kind == 3) made.kind = PacketKind::kRawIpv6;
        made.bth.pad = static_cast<std::uint8_t>(-made.payload.size() & 3);
        return wire_form(made);
    }
    Bytes link_packet() {
        Bytes bytes(kLinkPacketBytes);
        build_link_packet(
            {.operand = static_cast<std::uint8_t>(random_.chance(0.9) ? 0 : random_.draw(0, 15)),
             .vl = static_cast<std::uint8_t>(random_.draw(0, 15)),
             .fctbs = static_cast<std::uint16_t>(random_.draw(0, 4095)),
             .fccl = static_cast<std::uint16_t>(random_.draw(0, 4095))},
            std::span(bytes).first<kLinkPacketBytes>());
        return bytes;
    }
    /// Under a VCRC that is right.
    static void spoil_icrc(Bytes& bytes) {
        const std::size_t end = bytes.size() - kVcrcBytes;
        bytes[end - 1] ^= std::byte{1};
        put_little_endian(std::span(bytes).subspan(end), bitwise_crc16(std::span(bytes).first(end)));
    }
    void damage(Bytes& bytes) {
        if (random_.chance(0.1)) bytes.resize(random_.draw(0, bytes.size() + 8));
        for (std::uint64_t i = random_.draw(0, 3); i > 0 && !bytes.empty(); --i)
            bytes[random_.draw(0, std::min<std::size_t>(bytes.size() - 1, random_.chance(0.7) ? 9 : 400))] =
                static_cast<std::byte>(random_.next());
    }

    simulation::Random random_{23};
    Station station_;
};

TEST_P(HostileFrames, AreDeliveredOrCountedOnce) {
    std::uint64_t accepted = 0;
    for (int round = 0; round < 12'000; ++round) {
        const bool is_link = random_.chance(0.3);
        Bytes bytes = is_link ? link_packet() : packet();
        damage(bytes);
        if (is_link && bytes.size() >= 2 && random_.chance(0.5))
            put_little_endian(std::span(bytes).last(2),
                              bitwise_crc16(std::span(bytes).first(bytes.size() - 2)));
        if (!is_link && bytes.size() >= 60 && random_.chance(0.8)) {
            repair_crcs(bytes);
            if (random_.chance(0.05)) spoil_icrc(bytes);
        }
        Frame frame;
        frame.start = is_link ? FrameStart::kLink : FrameStart::kData;
        if (random_.chance(0.05)) frame.start = static_cast<FrameStart>(random_.draw(0, 2));
        if (random_.chance(0.05)) frame.end = static_cast<FrameEnd>(random_.draw(0, 2));
        frame.code_error = random_.chance(0.03);
        // An allocation of exactly this size, so that the sanitizer sees one byte too many.
        const Bytes exact(bytes);
        frame.bytes = exact;

        PacketReceiver receiver;
        const Received what = receiver.on(frame);
        FlowControlPacket update;
        const bool news = what == Received::kLinkPacket &&
                          parse_link_packet(exact, update) == LinkPacketError::kNone &&
                          update.vl < station_.port.supported_vls();
        const std::uint64_t free = free_blocks();
        const std::uint64_t before = told();
        station_.port.on_frame(frame, station_.now);
        const bool delivered = free_blocks() < free;
        accepted += delivered ? 1 : 0;
        const std::uint64_t expected = news || what == Received::kNothing || delivered ? 0 : 1;
        ASSERT_EQ(told() - before, expected) << "round " << round;
        station_.frames();
        if (random_.chance(0.02)) empty_buffers();  // so seldom that they are full at times
        if (station_.port.state() != PortState::kActive) revive();
        station_.wait_symbols(1);
        station_.credits(kPlenty);
    }
    EXPECT_GT(accepted, 500U);
    const ReceiveDiscards& discards = station_.port.receive_discards();
    for (std::size_t i = 1; i < kPacketErrorCount; ++i)
        EXPECT_TRUE(discards.checks[i] > 0 ||
                    (GetParam() == PortRole::kSwitch && static_cast<PacketError>(i) == PacketError::kDlid))
            << name_of(static_cast<PacketError>(i));
    for (std::size_t i = 1; i < kLinkPacketErrorCount; ++i)
        EXPECT_GT(discards.link_checks[i], 0U) << name_of(static_cast<LinkPacketError>(i));
    EXPECT_GT(discards.link_vl, 0U);
    EXPECT_GT(discards.bad_packets, 0U);
    EXPECT_GT(discards.marked_bad, 0U);
    EXPECT_GT(discards.buffer_overrun, 0U);
    EXPECT_GT(station_.port.counters().total(PortCounter::kVl15Dropped), 0U);
    EXPECT_EQ(discards.raw_filter > 0, GetParam() == PortRole::kSwitch);
}

INSTANTIATE_TEST_SUITE_P(Roles, HostileFrames,
                         ::testing::Values(PortRole::kChannelAdapter, PortRole::kSwitch),
                         [](const auto& role) {
                             return role.param == PortRole::kSwitch ? "switch" : "adapter";
                         });

}  // namespace
}  // namespace uib::net::link
