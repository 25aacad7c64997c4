// Retries of the reliable requester: the transport timer, sequence and implied NAKs, RNR NAKs, and the two
// counters (IBA 9.7.5.2.8, 9.7.6.1.2, 9.7.6.1.3, 9.9.2.1.1, class A of 9.9.2.4.1).
//
// Of the two readings of how often a counter of n allows a packet to be sent again, n and n - 1
// (transport-tables.md, section 11), the scripts take n, as libibverbs' users, rdma_rxe and mlx5 do.
#include "engine/transport/rnr_timer.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr Time t_tr(unsigned code) {
    return Time{4096} << code;
}
constexpr unsigned kTimeout = 14;
/// When a machine with kTimeout detects a timeout; that it lies where it must is C9-141's test.
constexpr Time kDetected = transport::ack_timeout(kTimeout);

Frame write_again(int psn) {
    return write_only(psn, kRemoteKey, kRemoteAddress, 10);
}

TEST_P(Requester, C9_139_a_lost_response_is_noticed_by_the_timer) {
    ROWS("C9-139", "C9-213");
    XRC_ROWS("o9-84", "o9-87", "o9-154");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(write_again(0));
    peer.after(kDetected);
    peer.expects(write_again(0).asks_ack());
    peer.completes_nothing();
    peer.raises_nothing();
    peer.sends(ack(0));
    peer.completes();
    peer.after(100 * t_tr(kTimeout));
    peer.expects_nothing();
}

TEST_P(Requester, C9_139_each_acknowledge_restarts_the_timer) {
    ROWS("C9-139");
    XRC_ROWS("o9-84");
    connect();
    for (int i = 0; i < 4; ++i) peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 4U);
    for (int i = 0; i < 3; ++i) {
        peer.after(t_tr(kTimeout) - 1);
        peer.sends(ack(i));
        peer.completes();
    }
    peer.after(t_tr(kTimeout) - 1);
    peer.expects_nothing();
    peer.after(kDetected - t_tr(kTimeout) + 1);
    peer.expects(write_again(3));
}

TEST_P(Requester, C9_141_the_timeout_is_detected_within_one_to_four_times_t_tr) {
    ROWS("C9-140", "C9-141");
    XRC_ROWS("o9-87");
    for (const unsigned code : {8U, 10U, 14U, 18U, 20U, 31U}) {
        Peer one_peer(GetParam());
        one_peer.parameters().timeout = static_cast<std::uint8_t>(code);
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.expects(write_again(0));
        one_peer.after(t_tr(code) - 1);
        one_peer.expects_nothing();
        one_peer.after(3 * t_tr(code) + 1);
        const Carried again = one_peer.hears();
        EXPECT_EQ(again.packet.bth.psn, Wire::psn(0));
        EXPECT_GE(again.at, t_tr(code));
        EXPECT_LE(again.at, 4 * t_tr(code));
    }
}

// The smallest T_tr that uib supports is that of code 8; smaller ones are treated as it.
TEST_P(Requester, C9_140_small_codes_take_the_smallest_timeout_and_0_none) {
    ROWS("C9-140");
    XRC_ROWS("o9-87");
    for (unsigned code = 1; code < transport::kSmallestAckTimeout; ++code) {
        Peer one_peer(GetParam());
        one_peer.parameters().timeout = static_cast<std::uint8_t>(code);
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.expects(write_again(0));
        one_peer.after(4 * t_tr(transport::kSmallestAckTimeout));
        const Carried again = one_peer.hears();
        EXPECT_GE(again.at, t_tr(code));
        EXPECT_LE(again.at, 4 * t_tr(transport::kSmallestAckTimeout));
        one_peer.forgets();
    }
    peer.parameters().timeout = 0;
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(write_again(0));
    peer.after(t_tr(31));
    peer.expects_nothing();
    peer.completes_nothing();
}

TEST_P(Requester, C9_143_with_a_counter_of_n_a_silent_peer_gets_n_retries) {
    ROWS("C9-142", "C9-143", "C9-212", "C9-213");
    XRC_ROWS("o9-87", "o9-153", "o9-154");
    for (const unsigned retries : {0U, 1U, 3U, 7U}) {
        Peer one_peer(GetParam());
        one_peer.parameters().retry_count = static_cast<std::uint8_t>(retries);
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        for (unsigned i = 0; i <= retries; ++i) {
            one_peer.expects(write_again(0));
            one_peer.expects(write_again(1));
            one_peer.completes_nothing();
            one_peer.after(kDetected);
        }
        one_peer.expects_nothing();
        one_peer.completes(Status::kRetryExceeded);
        one_peer.completes(Status::kFlushed);
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.ends();
    }
}

TEST_P(Requester, C9_142_progress_reloads_the_counter) {
    ROWS("C9-142", "C9-210");
    XRC_ROWS("o9-87", "o9-151");
    peer.parameters().retry_count = 1;
    connect();
    for (int i = 0; i < 6; ++i) peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 6U);
    for (int i = 0; i < 6; ++i) {
        peer.after(kDetected);
        EXPECT_EQ(peer.hears_all().size(), static_cast<std::size_t>(6 - i));
        peer.sends(ack(i));
        peer.completes();
    }
}

TEST_P(Requester, C9_137_with_a_counter_of_n_n_sequence_naks_are_answered) {
    ROWS("C9-137", "C9-212", "C9-213");
    XRC_ROWS("o9-80.a1", "o9-153", "o9-154");
    for (const unsigned retries : {0U, 1U, 7U}) {
        Peer one_peer(GetParam());
        one_peer.parameters().retry_count = static_cast<std::uint8_t>(retries);
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        for (unsigned i = 0; i <= retries; ++i) {
            one_peer.expects(write_again(0));
            one_peer.expects(write_again(1));
            one_peer.completes_nothing();
            one_peer.sends(nak(transport::kNakSequence, 0));
        }
        one_peer.expects_nothing();
        one_peer.completes(Status::kRetryExceeded);
        one_peer.completes(Status::kFlushed);
        one_peer.ends();
    }
}

TEST_P(Requester, C9_137_a_sequence_nak_acknowledges_what_is_before_it_and_reloads) {
    ROWS("C9-137");
    XRC_ROWS("o9-80.a1");
    peer.parameters().retry_count = 1;
    connect();
    for (int i = 0; i < 4; ++i) peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 4U);
    for (int i = 1; i < 4; ++i) {
        peer.sends(nak(transport::kNakSequence, i));
        peer.completes();
        for (int psn = i; psn < 4; ++psn) peer.expects(write_again(psn));
    }
    peer.sends(ack(3));
    peer.completes();
}

TEST_P(Requester, C9_210_implied_naks_count_with_the_errors) {
    ROWS("C9-210", "C9-212");
    XRC_ROWS("o9-151", "o9-153");
    peer.parameters().retry_count = 2;
    connect();
    peer.posts(WorkOpcode::kRdmaRead, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(ack(1));  // one
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(nak(transport::kNakSequence, 0));  // two
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.after(kDetected);  // three
    peer.expects_nothing();
    peer.completes(Status::kRetryExceeded);
    peer.completes(Status::kFlushed);
}

TEST_P(Requester, C9_210_the_two_counters_run_separately) {
    ROWS("C9-210", "C9-212");
    XRC_ROWS("o9-151", "o9-153");
    peer.parameters().retry_count = 1;
    peer.parameters().rnr_retry = 2;
    connect();
    peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 10);
    EXPECT_EQ(peer.hears_all().size(), 1U);
    peer.sends(rnr_nak(1, 0));
    peer.after(us(12));
    EXPECT_EQ(peer.hears_all().size(), 1U);
    peer.after(kDetected);
    EXPECT_EQ(peer.hears_all().size(), 1U);
    peer.sends(rnr_nak(1, 0));
    peer.after(us(12));
    EXPECT_EQ(peer.hears_all().size(), 1U);
    peer.completes_nothing();
    peer.sends(rnr_nak(1, 0));
    peer.completes(Status::kRnrRetryExceeded);
}

TEST_P(Requester, C9_142_an_rnr_nak_clears_no_request_and_reloads_no_counter) {
    ROWS("C9-137", "C9-142");
    XRC_ROWS("o9-80.a1", "o9-87");
    for (const bool silent : {true, false}) {
        Peer one_peer(GetParam());
        one_peer.parameters().retry_count = 2;
        one_peer.parameters().rnr_retry = 7;
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 10);
        EXPECT_EQ(one_peer.hears_all().size(), 1U);
        for (int errors = 0; errors < 3; ++errors) {
            one_peer.completes_nothing();
            one_peer.sends(rnr_nak(1, 0));
            one_peer.after(us(12));
            EXPECT_EQ(one_peer.hears_all().size(), 1U);
            if (silent)
                one_peer.after(kDetected);
            else
                one_peer.sends(nak(transport::kNakSequence, 0));
            EXPECT_EQ(one_peer.hears_all().size(), errors < 2 ? 1U : 0U);
        }
        one_peer.completes(Status::kRetryExceeded);
        one_peer.ends();
    }
}

TEST_P(Requester, C9_130_the_wait_after_an_rnr_nak_is_that_of_table_48) {
    ROWS("C9-130");
    XRC_ROWS("o9-76.a1");
    const std::pair<std::uint8_t, Time> table[] = {
        {0, us(655360)},  {1, us(10)},      {2, us(20)},     {5, us(60)},     {6, us(80)},
        {7, us(120)},     {8, us(160)},     {11, us(480)},   {12, us(640)},   {13, us(960)},
        {16, us(2560)},   {19, us(7680)},   {20, us(10240)}, {23, us(30720)}, {24, us(40960)},
        {27, us(122880)}, {30, us(327680)}, {31, us(491520)}};
    for (const auto& [code, wait] : table) {
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts(WorkOpcode::kSend, 10);
        one_peer.expects(send_only(0, 10));
        one_peer.sends(rnr_nak(code, 0));
        one_peer.after(wait - 1);
        one_peer.expects_nothing();
        one_peer.after(wait / 5 + 1);  // never earlier, and at most a fifth later
        one_peer.expects(send_only(0, 10));
        one_peer.sends(ack(0));
        one_peer.completes();
        one_peer.ends();
    }
}

TEST_P(Requester, C9_128_after_an_rnr_nak_the_same_packets_are_sent_again) {
    ROWS("C9-128");
    XRC_ROWS("o9-75");
    connect_without_credits();
    peer.machine().fill(0, 700, 3);
    peer.posts(WorkOpcode::kSend, 700);
    peer.posts(WorkOpcode::kSendWithImmediate, 10);
    const std::vector<Carried> before = peer.hears_all();
    ASSERT_EQ(before.size(), 4U);
    peer.sends(rnr_nak(1, 0));
    peer.posts(WorkOpcode::kRdmaWrite, 20);  // posted in between: goes behind
    peer.expects_nothing();
    peer.after(us(12));
    const std::vector<Carried> again = peer.hears_all();
    ASSERT_EQ(again.size(), 5U);
    // Byte for byte, but for AckReq, which is the requester's to set.
    const auto content = [](const Carried& one) {
        std::vector<std::byte> bytes(one.frame->begin(), one.frame->end() - 6);
        bytes[16] &= std::byte{0x7F};
        return bytes;
    };
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(content(again[i]), content(before[i])) << i;
    peer.sends(ack(4));
    for (int i = 0; i < 3; ++i) peer.completes();
}

TEST_P(Requester, C9_132_with_a_counter_of_n_n_rnr_naks_are_answered) {
    ROWS("C9-132", "C9-212", "C9-213");
    XRC_ROWS("o9-77", "o9-153", "o9-154");
    for (const unsigned retries : {0U, 1U, 6U}) {
        Peer one_peer(GetParam());
        one_peer.parameters().rnr_retry = static_cast<std::uint8_t>(retries);
        one_peer.connect();
        one_peer.posts(WorkOpcode::kSend, 10);
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        for (unsigned i = 0; i <= retries; ++i) {
            const std::vector<Carried> heard = one_peer.hears_all();
            ASSERT_FALSE(heard.empty());
            EXPECT_EQ(heard.front().packet.bth.psn, Wire::psn(0));
            one_peer.completes_nothing();
            one_peer.sends(rnr_nak(1, 0));
            one_peer.after(us(12));
        }
        one_peer.completes(Status::kRnrRetryExceeded);
        one_peer.completes(Status::kFlushed);
        one_peer.ends();
    }
}

TEST_P(Requester, C9_132_an_rnr_counter_of_7_never_runs_out) {
    ROWS("C9-132");
    XRC_ROWS("o9-77");
    peer.parameters().rnr_retry = 7;
    connect();
    peer.posts(WorkOpcode::kSend, 10);
    for (int i = 0; i < 100; ++i) {
        peer.expects(send_only(0, 10));
        peer.sends(rnr_nak(1, 0));
        peer.after(us(12));
    }
    peer.expects(send_only(0, 10));
    peer.sends(ack(0));
    peer.completes();
}

TEST_P(Requester, C9_210_progress_reloads_the_rnr_counter) {
    ROWS("C9-210");
    XRC_ROWS("o9-151");
    peer.parameters().rnr_retry = 1;
    connect_without_credits();
    for (int i = 0; i < 3; ++i) peer.posts(WorkOpcode::kSend, 10);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(peer.hears_all().size(), static_cast<std::size_t>(3 - i));
        peer.sends(rnr_nak(1, i));
        peer.after(us(12));
        EXPECT_EQ(peer.hears_all().size(), static_cast<std::size_t>(3 - i));
        peer.sends(ack(i));
        peer.completes();
        if (i < 2) {
            peer.sends(nak(transport::kNakSequence, i + 1));  // looks at the next one from the start
        }
    }
}

}  // namespace
}  // namespace uib::conformance
