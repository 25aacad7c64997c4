// Errors that no single packet shows, and what the link does about them: 7.12.
#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

struct LinkErrors : ::testing::Test {
    Station station{LinkConfig{.receive_blocks = 66},
                    PortSettings{.operational_vls = 2, .local_phy_errors = 3, .overrun_errors = 2}};
    void SetUp() override { station.to_active(); }

    void bad_packet() {
        Bytes bytes = Station::to_port(0);
        bytes[20] ^= std::byte{1};
        station.receives(bytes);
    }
    void good_packet() {
        station.data(0);
        station.taken(0);
    }
    /// Fills the buffer of VL0, or finds it full.
    void overrun() {
        for (int i = 0; i < 3; ++i) station.data(0, 4000);
    }
    /// The link trains, and is active again.
    void expect_recovery(PortEvent event, std::uint64_t recoveries) {
        EXPECT_EQ(station.port.state(), PortState::kActDefer);
        EXPECT_NE(station.port.take_events() & event, 0);
        EXPECT_EQ(station.port.next_deadline(), station.now + station.port.config().training_time);
        station.wait(station.port.config().training_time);
        station.frames();
        EXPECT_EQ(station.port.state(), PortState::kActive);
        EXPECT_EQ(station.count(PortCounter::kLinkErrorRecovery), recoveries);
    }
};

TEST_F(LinkErrors, C7_69_local_link_integrity) {
    ROWS("C7-69.1.1", "C7-69.1.1/1", "C7-71", "U7-8");
    for (int i = 0; i < 3; ++i) bad_packet();
    EXPECT_EQ(station.count(PortCounter::kLocalLinkIntegrityErrors), 0U);
    // A good one takes one away, so one more is no error yet.
    good_packet();
    bad_packet();
    EXPECT_EQ(station.port.state(), PortState::kActive);
    bad_packet();
    EXPECT_EQ(station.count(PortCounter::kLocalLinkIntegrityErrors), 1U);
    EXPECT_EQ(station.count(PortCounter::kRcvErrors), 5U);
    expect_recovery(kLocalLinkIntegrityError, 1);
    // Good packets never take the count below zero.
    for (int i = 0; i < 10; ++i) good_packet();
    for (int i = 0; i < 4; ++i) bad_packet();
    EXPECT_EQ(station.count(PortCounter::kLocalLinkIntegrityErrors), 2U);
}

// Local physical errors: CRCs of both kinds of packets, and packets that the receiver could not delimit. No
// others.
TEST_F(LinkErrors, C7_67_what_counts_for_local_link_integrity) {
    ROWS("C7-67", "C7-69.1.1/1");
    const auto detected = [&](const auto& receive) {
        Station port({}, {.operational_vls = 2, .local_phy_errors = 0});
        port.to_active();
        receive(port);
        return port.count(PortCounter::kLocalLinkIntegrityErrors) == 1;
    };
    const auto frame = [](FrameStart start, FrameEnd end, bool code_error = false) {
        return [=](Station& port) {
            const Bytes packet = Station::to_port(0);
            port.port.on_frame({.start = start, .bytes = packet, .end = end, .code_error = code_error},
                               port.now);
        };
    };
    EXPECT_TRUE(detected([](Station& port) {
        Bytes bytes = Station::to_port(0);
        bytes[20] ^= std::byte{1};
        port.receives(bytes);
    })) << "VCRC";
    EXPECT_TRUE(detected([](Station& port) {
        Bytes bytes = Station::to_port(0);
        bytes[20] ^= std::byte{1};
        const std::size_t end = bytes.size() - kVcrcBytes;
        put_little_endian(std::span(bytes).subspan(end), bitwise_crc16(std::span(bytes).first(end)));
        port.receives(bytes);
    })) << "ICRC";
    EXPECT_TRUE(detected([](Station& port) { port.receives_link(hex("00 00 08 00 00 00")); })) << "LPCRC";
    EXPECT_TRUE(detected(frame(FrameStart::kNone, FrameEnd::kGood))) << "BadPacketDiscard";
    EXPECT_TRUE(detected(frame(FrameStart::kData, FrameEnd::kGood, true))) << "BadPacket";
    EXPECT_TRUE(detected(frame(FrameStart::kLink, FrameEnd::kBad))) << "BadPacketDiscard";
    EXPECT_FALSE(detected(frame(FrameStart::kData, FrameEnd::kBad))) << "MarkedBadPacket";
    EXPECT_FALSE(detected(frame(FrameStart::kData, FrameEnd::kGood))) << "a good packet";
    EXPECT_FALSE(detected([](Station& port) {
        port.receives(changed(Station::to_port(0), [](Bytes& p) { p[0] = std::byte{3}; }));
        EXPECT_EQ(port.count(PortCounter::kRcvErrors), 1U);
    })) << "link version";
    EXPECT_FALSE(detected([](Station& port) {
        Bytes longer = hex("00 00 08 00 00 00 00 00");
        put_little_endian(std::span(longer).last(2), bitwise_crc16(std::span(longer).first(6)));
        port.receives_link(longer);
        EXPECT_EQ(port.count(PortCounter::kRcvErrors), 1U);
    })) << "length of a link packet";
    EXPECT_FALSE(detected([](Station& port) { port.update({.operand = 3}); })) << "operand";
}

TEST_F(LinkErrors, C7_69_excessive_buffer_overrun) {
    ROWS("C7-69.1.1/2", "C7-71");
    const Time period = kUpdateSymbols * station.port.config().symbol_time;
    station.now = (station.now / period + 1) * period;
    const auto keep_alive = [&] { station.credits(kPlenty, station.port.receive_credits(0).received()); };
    overrun();
    station.wait(period);
    keep_alive();
    overrun();
    station.wait(2 * period);  // a period without
    for (int i = 0; i < 2; ++i) {
        keep_alive();
        overrun();
        station.wait(period);
    }
    EXPECT_EQ(station.count(PortCounter::kExcessiveBufferOverrunErrors), 0U);
    keep_alive();
    overrun();
    EXPECT_EQ(station.count(PortCounter::kExcessiveBufferOverrunErrors), 1U);
    EXPECT_GT(station.port.receive_discards().buffer_overrun, 0U);
    EXPECT_EQ(station.count(PortCounter::kRcvErrors), station.port.receive_discards().buffer_overrun);
    expect_recovery(kExcessiveBufferOverrun, 1);
}

TEST_F(LinkErrors, C7_70_the_watchdog_of_a_lane_without_updates) {
    ROWS("C7-70", "C7-71");
    const Time symbol = station.port.config().symbol_time;
    station.credits(kPlenty);
    const Time silent_since = station.now;
    // VL0 is kept alive; nothing comes for VL1.
    while (station.port.state() == PortState::kActive && station.now < silent_since + 500'000 * symbol) {
        station.wait_symbols(1000);
        station.frames();
        if (station.port.state() == PortState::kActive) station.update({.vl = 0, .fccl = kPlenty});
    }
    EXPECT_GE(station.now - silent_since, 196'000 * symbol);
    EXPECT_LE(station.now - silent_since, 412'000 * symbol);
    expect_recovery(kFlowControlUpdateError, 1);
    // LinkActDefer has reset it.
    station.wait_symbols(190'000);
    station.frames();
    EXPECT_EQ(station.port.state(), PortState::kActive);
    // It does not run in Init.
    station.command(PortState::kDown);
    station.wait_symbols(1'000'000);
    station.frames();
    EXPECT_EQ(station.port.state(), PortState::kInit);
    EXPECT_EQ(station.port.take_events() & kFlowControlUpdateError, 0);
}

TEST_F(LinkErrors, C7_70_the_watchdog_runs_in_arm_and_for_new_lanes) {
    ROWS("C7-70");
    const Time symbol = station.port.config().symbol_time;
    Station armed({}, {.operational_vls = 1});
    armed.to_arm();
    const Time silent_since = armed.now;
    while (armed.port.state() == PortState::kArm && armed.now < silent_since + 500'000 * symbol) {
        armed.now = std::min(armed.port.next_deadline(), armed.now + 1000 * symbol);
        armed.frames();
    }
    EXPECT_GE(armed.now - silent_since, 196'000 * symbol);
    EXPECT_LE(armed.now - silent_since, 412'000 * symbol);
    EXPECT_NE(armed.port.take_events() & kFlowControlUpdateError, 0);
    // A lane that is configured later is watched from then on; one that is not is not missed.
    PortSettings settings = station.port.settings();
    settings.operational_vls = 3;
    for (int i = 0; i < 300; ++i) {
        station.wait_symbols(1000);
        for (const std::uint8_t vl : {0, 1}) station.update({.vl = vl, .fccl = kPlenty});
        station.frames();
    }
    station.port.configure(settings, station.now);
    const Time configured = station.now;
    while (station.port.state() == PortState::kActive && station.now < configured + 500'000 * symbol) {
        station.wait_symbols(1000);
        for (const std::uint8_t vl : {0, 1, 2}) station.update({.vl = vl, .fccl = kPlenty});
        station.frames();
    }
    EXPECT_GE(station.now - configured, 196'000 * symbol);
    EXPECT_LE(station.now - configured, 412'000 * symbol);
    settings.operational_vls = 2;
    station.wait(station.port.config().training_time);
    station.port.configure(settings, station.now);
    for (int i = 0; i < 500; ++i) {
        station.wait_symbols(1000);
        for (const std::uint8_t vl : {0, 1}) station.update({.vl = vl, .fccl = kPlenty});
        station.frames();
    }
    EXPECT_EQ(station.port.state(), PortState::kActive);
    EXPECT_EQ(station.count(PortCounter::kLinkErrorRecovery), 1U);
}

// Whoever sleeps until next_deadline() comes in time for it.
TEST_F(LinkErrors, C7_70_the_watchdog_is_a_deadline) {
    ROWS("C7-70");
    const Time start = station.now;
    for (int i = 0; i < 100 && station.port.state() == PortState::kActive; ++i) {
        station.now = station.port.next_deadline();
        station.frames();
    }
    EXPECT_EQ(station.now - start, kWatchdogSymbols * station.port.config().symbol_time);
    EXPECT_EQ(station.port.state(), PortState::kActDefer);
}

TEST_F(LinkErrors, C7_71_training_is_not_cut_short) {
    ROWS("C7-71");
    for (int i = 0; i < 4; ++i) bad_packet();
    ASSERT_EQ(station.port.state(), PortState::kActDefer);
    station.physical(true);  // as it was all the time
    EXPECT_EQ(station.port.state(), PortState::kActDefer);
    station.wait(station.port.config().training_time);
    station.frames();
    EXPECT_EQ(station.port.state(), PortState::kActive);
}

TEST_F(LinkErrors, C7_71_a_link_that_does_not_recover_goes_down) {
    ROWS("C7-71");
    for (int i = 0; i < 4; ++i) bad_packet();
    ASSERT_EQ(station.port.state(), PortState::kActDefer);
    station.physical(false);
    station.wait(kLinkDownTimeout);
    station.frames();
    EXPECT_EQ(station.port.state(), PortState::kDown);
    EXPECT_EQ(station.count(PortCounter::kLinkDowned), 1U);
    EXPECT_EQ(station.count(PortCounter::kLinkErrorRecovery), 0U);
}

}  // namespace
}  // namespace uib::net::link
