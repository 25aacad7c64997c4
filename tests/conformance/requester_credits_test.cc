// End-to-end flow control at the requester of a reliable connection (IBA 9.7.7.2). The code in an acknowledge
// and its MSN say up to which message the peer has receives: LSN = MSN + credits.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

// Codes of Table 50.
constexpr std::uint8_t kNone = 0x00;
constexpr std::uint8_t kOne = 0x01;
constexpr std::uint8_t kTwo = 0x02;
constexpr std::uint8_t kThree = 0x03;
constexpr std::uint8_t kSix = 0x05;
constexpr std::uint8_t kOff = 0x1F;

TEST_F(RcRequester, C9_156_without_initial_credits_the_first_send_is_limited) {
    ROWS("C9-156", "C9-159", "C9-163", "C9-160", "C9-162");
    connect();
    peer.posts(WorkOpcode::kSend, 700);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(send_first(0).asks_ack());
    peer.expects_nothing();  // not the WRITE either: order goes before credits
    peer.sends(ack(0).credits(kOne).msn(0));
    peer.expects(send_middle(1));
    peer.expects(send_last(2, 188));
    peer.expects(write_only(3, kRemoteKey, kRemoteAddress, 10).asks_ack());
    peer.sends(ack(3).credits(kNone).msn(2));
    peer.completes();
    peer.completes();
}

TEST_F(RcRequester, C9_162_what_takes_no_receive_is_sent_without_credits) {
    ROWS("C9-162", "C9-159");
    connect();
    peer.sends(ack(-1).credits(kNone).msn(0));
    peer.posts(WorkOpcode::kRdmaRead, 10);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    peer.posts(WorkOpcode::kRdmaWrite, 600);
    peer.posts(WorkOpcode::kSend, 10);
    peer.posts(WorkOpcode::kSend, 10);
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 10));
    peer.expects(Frame(Op::kFetchAdd, 1));
    peer.expects(write_first(2, kRemoteKey, kRemoteAddress, 600));
    peer.expects(write_middle(3));
    peer.expects(write_last(4, 88));
    peer.expects(send_only(5, 10).asks_ack());  // the one packet of a limited SEND
    peer.expects_nothing();
}

TEST_F(RcRequester, C9_162_requests_without_receive_raise_the_limit_by_one) {
    ROWS("C9-162");
    connect();
    peer.sends(ack(-1).credits(kOne).msn(0));
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 10);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    peer.posts(WorkOpcode::kCompareSwap, 8);
    peer.posts(WorkOpcode::kSend, 300);  // the one credit is still there
    peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 4U + 2U + 1U);
}

TEST_F(RcRequester, o9_99_a_limited_write_with_immediate_is_sent_whole) {
    ROWS("o9-99", "C9-162");
    connect();
    peer.sends(ack(-1).credits(kNone).msn(0));
    peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 700);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(write_first(0, kRemoteKey, kRemoteAddress, 700));
    peer.expects(write_middle(1));
    peer.expects(Frame(Op::kWriteLastImmediate, 2, 188).asks_ack());
    peer.expects_nothing();
    peer.sends(ack(2).credits(kNone).msn(1));
    peer.completes();
    peer.expects(write_only(3, kRemoteKey, kRemoteAddress, 10));
}

TEST_F(RcRequester, C9_151_n_credits_let_n_sends_and_a_probe_out) {
    ROWS("C9-151", "C9-153", "C9-163");
    connect();
    peer.sends(ack(-1).credits(kTwo).msn(0));
    for (int i = 0; i < 5; ++i) peer.posts(WorkOpcode::kSend, 300);
    peer.expects(send_first(0));
    peer.expects(send_last(1, 44));
    peer.expects(send_first(2));
    peer.expects(send_last(3, 44));
    peer.expects(send_first(4).asks_ack());
    peer.expects_nothing();
    peer.sends(ack(3).credits(kNone).msn(2));  // that of the probe is still to come
    peer.completes();
    peer.completes();
    peer.expects_nothing();
    peer.sends(ack(4).credits(kNone).msn(2));
    peer.expects(send_last(5, 44));
    peer.expects(send_first(6).asks_ack());
    peer.expects_nothing();
}

TEST_F(RcRequester, C9_153_a_peer_without_credits_holds_nothing_back) {
    ROWS("C9-153");
    connect();
    peer.sends(ack(-1).credits(kOff).msn(0));
    for (int i = 0; i < 5; ++i) peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 10U);
}

TEST_F(RcRequester, C9_144_credits_of_a_duplicate_acknowledge_are_taken) {
    ROWS("C9-144", "C9-145", "C9-217", "C9-164");
    connect();
    peer.sends(ack(-1).credits(kOne).msn(0));
    for (int i = 0; i < 3; ++i) peer.posts(WorkOpcode::kSend, 10);
    peer.expects(send_only(0, 10));
    peer.expects(send_only(1, 10).asks_ack());
    peer.expects_nothing();
    peer.sends(ack(-1).credits(kThree).msn(0));  // three receives by now: nothing is limited any more
    peer.completes_nothing();
    peer.expects(send_only(2, 10));
    peer.sends(ack(2).credits(kNone).msn(3));
    for (int i = 0; i < 3; ++i) peer.completes();
}

TEST_F(RcRequester, C9_164_an_unsolicited_acknowledge_may_come_at_any_time) {
    ROWS("C9-164", "C9-217");
    connect();
    peer.sends(ack(-1).credits(kTwo).msn(0));
    peer.sends(ack(-1).credits(kSix).msn(0));
    for (int i = 0; i < 6; ++i) peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 12U);
    peer.sends(ack(-1).credits(kSix).msn(0));  // again, with requests under way
    peer.completes_nothing();
    peer.sends(ack(11).credits(kNone).msn(6));
    for (int i = 0; i < 6; ++i) peer.completes();
    peer.sends(ack(11).credits(kOne).msn(6));  // idle: the PSN of the last acknowledge again
    peer.completes_nothing();
    peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 2U);
}

TEST_F(RcRequester, C9_144_an_older_limit_does_not_take_credits_back) {
    ROWS("C9-144");
    connect();
    peer.sends(ack(-1).credits(kTwo).msn(0));
    peer.sends(ack(-1).credits(kNone).msn(0));
    peer.posts(WorkOpcode::kSend, 300);
    peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 4U);
}

TEST_F(RcRequester, C9_217_a_ghost_brings_no_credits) {
    ROWS("C9-136", "C9-217");
    connect();
    peer.sends(ack(-1).credits(kOne).msn(0));
    peer.posts(WorkOpcode::kSend, 300);
    peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.sends(ack(3).credits(kSix).msn(0));  // of a packet that has not been sent
    peer.sends(ack(3).credits(kOff).msn(0));
    peer.expects_nothing();
    peer.sends(ack(1).credits(kOne).msn(1));
    peer.completes();
    peer.expects(send_last(3, 44));
}

// Message numbers have 24 bits, too: a limit behind the wrap is ahead of one before it.
TEST_F(RcRequester, C9_151_the_limit_goes_round) {
    ROWS("C9-151", "C9-153", "C9-161");
    connect();
    peer.sends(ack(-1).credits(kNone).msn(0x7FFFFF));
    peer.sends(ack(-1).credits(kNone).msn(0xFFFFFD));
    peer.posts(WorkOpcode::kSend, 300);  // message number 1
    peer.expects(send_first(0).asks_ack());
    peer.expects_nothing();
    peer.sends(ack(-1).credits(kSix).msn(0xFFFFFD));  // up to message 3
    peer.expects(send_last(1, 44));
    for (int i = 0; i < 4; ++i) peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 2U + 2U + 1U);
}

TEST_F(RcRequester, C9_160_credits_do_not_limit_what_is_sent_again) {
    ROWS("C9-160");
    connect();
    peer.sends(ack(-1).credits(kTwo).msn(0));
    peer.posts(WorkOpcode::kSend, 300);
    peer.posts(WorkOpcode::kSend, 300);
    EXPECT_EQ(peer.hears_all().size(), 4U);
    peer.sends(ack(-1).credits(kNone).msn(0));
    peer.sends(nak(transport::kNakSequence, 0));
    EXPECT_EQ(peer.hears_all().size(), 4U);
}

}  // namespace
}  // namespace uib::conformance
