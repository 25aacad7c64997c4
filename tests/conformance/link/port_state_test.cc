// The link state machine: 7.2.
#include <algorithm>

#include "tests/conformance/link/station.h"

namespace uib::net::link {
namespace {

constexpr Time kMillisecond = 1'000'000;

struct States : ::testing::Test {
    Station station{LinkConfig{}, PortSettings{.operational_vls = 3}};
};

TEST_F(States, C7_1_every_transition_of_the_table) {
    ROWS("C7-1.1.1");
    PortStateMachine machine(PortRole::kChannelAdapter, false);
    const auto expect = [&](PortState state, bool data_send, bool data_receive, bool others) {
        EXPECT_EQ(machine.state(), state) << name_of(machine.state());
        EXPECT_EQ(machine.enables().data_send, data_send);
        EXPECT_EQ(machine.enables().data_receive, data_receive);
        EXPECT_EQ(machine.enables().smp, others);
        EXPECT_EQ(machine.enables().link_packets, others);
    };
    expect(PortState::kDown, false, false, false);
    EXPECT_TRUE(machine.set_physical_link(true, 0));
    expect(PortState::kInit, false, false, true);
    EXPECT_TRUE(machine.command(3));
    expect(PortState::kArm, false, true, true);
    EXPECT_FALSE(machine.on_flow_control(0));
    EXPECT_TRUE(machine.command(4));
    expect(PortState::kActive, true, true, true);
    EXPECT_TRUE(machine.command(3));
    expect(PortState::kArm, false, true, true);
    EXPECT_TRUE(machine.active_trigger());
    expect(PortState::kActive, true, true, true);
    EXPECT_TRUE(machine.set_physical_link(false, 100));
    expect(PortState::kActDefer, false, false, false);
    EXPECT_TRUE(machine.set_physical_link(true, 200));
    expect(PortState::kActive, true, true, true);
    EXPECT_TRUE(machine.on_flow_control(1));
    expect(PortState::kInit, false, false, true);
    machine.command(3);
    EXPECT_TRUE(machine.set_physical_link(false, 300));
    expect(PortState::kDown, false, false, false);
    machine.set_physical_link(true, 400);
    EXPECT_TRUE(machine.reset());
    expect(PortState::kInit, false, false, true);
    EXPECT_TRUE(machine.set_physical_link(false, 500));
    expect(PortState::kDown, false, false, false);
}

TEST_F(States, C7_1_down_discards_what_is_submitted) {
    ROWS("C7-1.1.1/1");
    EXPECT_EQ(station.send(0), Enqueued::kDiscarded);
    EXPECT_EQ(station.send_smp(), Enqueued::kDiscarded);
    EXPECT_EQ(station.count(PortCounter::kXmitDiscards), 2U);
    EXPECT_TRUE(station.frames().empty());
    station.data(kVl15);
    station.update({.fccl = 100});
    EXPECT_EQ(station.taken(kVl15), 0);
    EXPECT_EQ(station.port.receive_discards().state, 2U);
    // And what was queued before.
    station.to_active();
    station.send(0);
    station.send_smp();
    station.physical(false);
    station.wait(20 * kMillisecond);
    EXPECT_TRUE(station.frames().empty());
    EXPECT_EQ(station.port.state(), PortState::kDown);
    EXPECT_EQ(station.port.send_discards().state, 4U);
}

TEST_F(States, C7_1_init_passes_smps_and_flow_control_only) {
    ROWS("C7-1.1.1/2");
    station.to_init();
    EXPECT_EQ(station.updates().size(), 4U);
    EXPECT_EQ(station.send(0), Enqueued::kDiscarded);
    EXPECT_EQ(station.send_smp(), Enqueued::kQueued);
    EXPECT_EQ(station.packets().size(), 1U);
    station.data(0);
    station.data(kVl15);
    EXPECT_EQ(station.taken(0), 0);
    EXPECT_EQ(station.taken(kVl15), 1);
    EXPECT_EQ(station.port.receive_discards().state, 1U);
    EXPECT_EQ(station.count(PortCounter::kRcvErrors), 0U);
}

TEST_F(States, C7_1_arm_receives_all_and_sends_smps) {
    ROWS("C7-1.1.1/3", "C7-1.1.1/12");
    station.to_arm();
    station.credits(kPlenty, 0);
    station.frames();
    EXPECT_EQ(station.send(0), Enqueued::kDiscarded);
    EXPECT_EQ(station.send_smp(), Enqueued::kQueued);
    EXPECT_EQ(station.packets().size(), 1U);
    station.data(kVl15);
    EXPECT_EQ(station.taken(kVl15), 1);
    station.data(0);
    EXPECT_EQ(station.taken(0), 1);
    // ForwardInArm is False for a channel adapter even if asked for; enhanced port 0 receives nothing in Arm.
    PortStateMachine adapter(PortRole::kChannelAdapter, true);
    PortStateMachine port_0(PortRole::kEnhancedPort0, false);
    PortStateMachine forwarding(PortRole::kSwitch, true);
    for (PortStateMachine* machine : {&adapter, &port_0, &forwarding}) {
        machine->set_physical_link(true, 0);
        machine->command(3);
    }
    EXPECT_FALSE(adapter.enables().data_send);
    EXPECT_TRUE(adapter.enables().data_receive);
    EXPECT_FALSE(port_0.enables().data_receive);
    EXPECT_TRUE(forwarding.enables().data_send);
    EXPECT_TRUE(forwarding.enables().data_receive);
}

TEST_F(States, C7_1_active_passes_everything) {
    ROWS("C7-1.1.1/4");
    station.to_active();
    station.send(1);
    station.send_smp();
    EXPECT_EQ(station.packets().size(), 2U);
    station.data(1);
    station.data(kVl15);
    EXPECT_EQ(station.taken(1) + station.taken(kVl15), 2);
    station.wait_symbols(kUpdateSymbols);
    EXPECT_EQ(station.updates().size(), 4U);
}

TEST_F(States, C7_1_act_defer_stops_the_link_and_keeps_its_counts) {
    ROWS("C7-1.1.1/5");
    station.to_active();
    station.send(0, 300);
    station.frames();
    station.data(0, 500);
    const auto sent = station.port.send_credits(0).sent();
    const auto received = station.port.receive_credits(0).received();
    ASSERT_NE(sent, 0);
    ASSERT_NE(received, 0);
    station.send(1, 64, 99);
    station.physical(false);
    EXPECT_EQ(station.port.state(), PortState::kActDefer);
    EXPECT_EQ(station.send(0), Enqueued::kDiscarded);
    station.wait_symbols(kUpdateSymbols / 16);
    EXPECT_TRUE(station.frames().empty());
    station.data(0);
    EXPECT_EQ(station.taken(0), 1);  // what had come before
    station.wait(2 * kMillisecond - kUpdateSymbols / 16);
    station.physical(true);
    // What waited for the link goes on, and the peer is told at once what it may send.
    const auto sent_then = station.frames();
    EXPECT_EQ(std::count_if(sent_then.begin(), sent_then.end(),
                            [](const SentFrame& frame) { return frame.start == FrameStart::kLink; }),
              4);
    EXPECT_EQ(psn_of(sent_then.back().bytes), 99U);
    EXPECT_EQ(station.port.state(), PortState::kActive);
    EXPECT_EQ(station.port.send_credits(0).sent(), sent);
    EXPECT_EQ(station.port.receive_credits(0).received(), received);
    EXPECT_EQ(station.port.settings().lid, kOwnLid);
    EXPECT_EQ(station.count(PortCounter::kLinkErrorRecovery), 1U);
    EXPECT_EQ(station.send(0), Enqueued::kQueued);
    EXPECT_EQ(station.packets().size(), 1U);
}

TEST_F(States, C7_1_link_down_timeout) {
    ROWS("C7-1.1.1/6");
    station.to_active();
    station.physical(false);
    const Time start = station.now;
    while (station.port.state() == PortState::kActDefer && station.now < start + 20 * kMillisecond) {
        station.now = std::min(station.port.next_deadline(), start + 20 * kMillisecond);
        station.frames();
    }
    EXPECT_EQ(station.port.state(), PortState::kDown);
    EXPECT_GE(station.now - start, 4'900'000U);
    EXPECT_LE(station.now - start, 10'300'000U);
    EXPECT_EQ(station.count(PortCounter::kLinkDowned), 1U);
}

TEST_F(States, C7_1_command_down_ends_in_init_with_counts_of_zero) {
    ROWS("C7-1.1.1/7");
    station.to_active();
    station.send(0, 300);
    station.frames();
    station.data(0, 500);
    EXPECT_TRUE(station.command(PortState::kDown));
    EXPECT_EQ(station.port.state(), PortState::kInit);
    EXPECT_EQ(station.port.send_credits(0).sent(), 0);
    EXPECT_EQ(station.port.receive_credits(0).received(), 0);
    EXPECT_EQ(station.updates().size(), 4U);
}

TEST_F(States, C7_1_a_command_is_kept_only_where_it_arrived) {
    ROWS("C7-1.1.1/8");
    station.to_init();
    EXPECT_FALSE(station.command(PortState::kActive));
    EXPECT_TRUE(station.command(PortState::kArm));
    station.credits(kPlenty);
    EXPECT_EQ(station.port.state(), PortState::kArm);
}

TEST_F(States, C7_1_active_needs_active_enable) {
    ROWS("C7-1.1.1/9");
    station.to_arm();
    station.update({.operand = kFlowControlInitialize, .fccl = 100});
    EXPECT_FALSE(station.command(PortState::kActive));
    EXPECT_EQ(station.port.state(), PortState::kArm);
    station.update({.operand = kFlowControlNormal, .fccl = 100});
    EXPECT_TRUE(station.command(PortState::kActive));
    // Left and armed anew, it is false again.
    station.command(PortState::kDown);
    station.command(PortState::kArm);
    EXPECT_FALSE(station.command(PortState::kActive));
}

TEST_F(States, C7_1_a_good_packet_of_a_data_vl_triggers_active) {
    ROWS("C7-1.1.1/10");
    station.to_arm();
    station.data(0);
    EXPECT_EQ(station.port.state(), PortState::kArm);  // not enabled yet
    station.credits(kPlenty);
    station.data(kVl15);
    EXPECT_EQ(station.port.state(), PortState::kArm);
    Bytes damaged = Station::to_port(0);
    damaged.back() ^= std::byte{1};
    station.receives(damaged);
    EXPECT_EQ(station.port.state(), PortState::kArm);
    // Only the VCRC counts, whatever else is wrong.
    Bytes misled = Station::to_port(0);
    misled[2] = std::byte{0x33};
    repair_crcs(misled);
    station.taken(0);
    station.receives(misled);
    EXPECT_EQ(station.taken(0), 0);
    EXPECT_EQ(station.port.state(), PortState::kActive);
    Station other;
    other.to_arm();
    other.credits(kPlenty);
    other.data(0);
    EXPECT_EQ(other.port.state(), PortState::kActive);
}

TEST_F(States, C7_1_a_switch_spreads_the_trigger) {
    ROWS("C7-1.1.1/11");
    Station first({.role = PortRole::kSwitch});
    Station second({.role = PortRole::kSwitch});
    first.to_active();
    second.to_arm();
    second.credits(kPlenty);
    first.port.take_events();
    first.data(0);
    ASSERT_NE(first.port.take_events() & kActiveTriggered, 0);
    second.port.active_trigger(second.now);
    EXPECT_EQ(second.port.state(), PortState::kActive);
    first.data(kVl15);
    EXPECT_EQ(first.port.take_events() & kActiveTriggered, 0);
}

TEST_F(States, C7_1_remote_init_starts_the_link_anew) {
    ROWS("C7-1.1.1/13");
    station.to_active();
    EXPECT_NE(station.port.take_events() & kStateChanged, 0);
    EXPECT_EQ(station.port.take_events(), 0);
    station.update({.operand = kFlowControlInitialize, .fccl = 100});
    EXPECT_EQ(station.port.state(), PortState::kInit);
    EXPECT_EQ(station.port.take_events(), kStateChanged);
    // In Arm it counts once the peer had been armed, and not before.
    station.command(PortState::kArm);
    station.update({.operand = kFlowControlInitialize, .fccl = 100});
    EXPECT_EQ(station.port.state(), PortState::kArm);
    station.credits(100);
    station.update({.operand = kFlowControlInitialize, .fccl = 100});
    EXPECT_EQ(station.port.state(), PortState::kInit);
    // A damaged one does nothing.
    station.to_active();
    Bytes damaged = hex("10 00 08 00 8D D9");
    station.receives_link(damaged);
    EXPECT_EQ(station.port.state(), PortState::kActive);
}

TEST_F(States, C7_1_the_first_packet_through_armed_switch_ports_is_not_lost) {
    ROWS("C7-1.a1");
    Station input({.role = PortRole::kSwitch, .forward_in_arm = true});
    Station output({.role = PortRole::kSwitch, .forward_in_arm = true});
    for (Station* port : {&input, &output}) {
        port->to_arm();
        port->credits(kPlenty);
        port->frames();
    }
    input.data(0, 64, 77);
    EXPECT_EQ(input.port.state(), PortState::kActive);
    output.port.active_trigger(output.now);
    ASSERT_EQ(output.port.forward(input.port.front(0), 0, output.now), Enqueued::kQueued);
    const auto sent = output.packets();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(psn_of(sent[0].bytes), 77U);
    EXPECT_EQ(output.port.state(), PortState::kActive);
}

TEST_F(States, C7_2_commands_that_are_none_do_nothing) {
    ROWS("C7-2");
    for (const bool active : {false, true}) {
        if (active) {
            station.to_active();
        } else {
            station.to_init();
        }
        const PortState before = station.port.state();
        for (const int code : {0, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) {
            EXPECT_FALSE(station.port.command(static_cast<std::uint8_t>(code), station.now)) << code;
            EXPECT_EQ(station.port.state(), before);
        }
    }
}

TEST_F(States, C7_3_commands_that_do_not_fit_the_state_do_nothing) {
    ROWS("C7-3");
    station.to_init();
    EXPECT_FALSE(station.command(PortState::kActive));
    EXPECT_EQ(station.port.state(), PortState::kInit);
    station.to_active();
    EXPECT_FALSE(station.command(PortState::kActive));
    EXPECT_EQ(station.port.state(), PortState::kActive);
    station.physical(false);
    EXPECT_FALSE(station.command(PortState::kArm));
    EXPECT_EQ(station.port.state(), PortState::kActDefer);
}

}  // namespace
}  // namespace uib::net::link
