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
