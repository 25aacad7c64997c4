// What a reliable requester makes of responses (IBA 9.7.6.1, 9.7.5.2.2, class E of 9.9.2.4.5).
#include "engine/transport/rnr_timer.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

TEST_P(Requester, C9_134_an_acknowledge_covers_everything_before_it) {
    ROWS("C9-134");
    XRC_ROWS("o9-78");
    connect();
    for (int i = 0; i < 4; ++i) peer.posts(WorkOpcode::kRdmaWrite, 300);
    EXPECT_EQ(peer.hears_all().size(), 8U);
    peer.sends(ack(4));
    peer.completes(Status::kSuccess, 0);
    peer.completes(Status::kSuccess, 1);
    peer.completes_nothing();
    peer.sends(ack(7));
    peer.completes(Status::kSuccess, 2);
    peer.completes(Status::kSuccess, 3);
}

TEST_P(Requester, C9_134_an_rnr_nak_acknowledges_what_is_before_it) {
    ROWS("C9-134", "C9-130");
    XRC_ROWS("o9-78", "o9-76.a1");
    connect_without_credits();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 300);
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.sends(rnr_nak(1, 2));  // the last packet takes the receive
    peer.completes();
    peer.completes_nothing();
    peer.after(us(12));
    peer.expects(Frame(Op::kWriteLastImmediate, 2, 44));
    peer.sends(ack(2));
    peer.completes();
}

TEST_P(Requester, C9_136_ghosts_are_dropped) {
    ROWS("C9-136", "C9-217");
    XRC_ROWS("o9-80", "o9-157");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 300);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    for (const int psn : {2, 3, 1000, 0x7FFFF0}) {
        peer.sends(ack(psn));
        peer.sends(response_only(psn, 10));
        peer.sends(nak(transport::kNakRemoteAccess, psn));
        peer.sends(rnr_nak(1, psn));
        peer.completes_nothing();
        peer.expects_nothing();
    }
    peer.sends(ack(1));
    peer.completes();
}

TEST_P(Requester, C9_138_duplicate_acknowledges_change_nothing) {
    ROWS("C9-138", "C9-145", "C9-217");
    XRC_ROWS("o9-83", "o9-157");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 300);
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.sends(ack(1));
    peer.completes();
    peer.completes();
    for (int i = 0; i < 3; ++i) {
        peer.sends(ack(0));
        peer.sends(ack(1));
        peer.sends(ack(-1000));
        peer.sends(nak(transport::kNakInvalidRequest, 0));
        peer.sends(rnr_nak(1, 1));
    }
    peer.completes_nothing();
    peer.expects_nothing();
    peer.sends(response_first(2));
    for (int i = 0; i < 3; ++i) peer.sends(response_first(2));
    peer.completes_nothing();
    peer.sends(response_last(3, 44));
    peer.completes();
    peer.sends(response_last(3, 44));
    peer.completes_nothing();
    EXPECT_EQ(peer.state(), QpState::kRts);
}

TEST_P(Requester, C9_120_reserved_syndromes_are_dropped) {
    ROWS("C9-120", "C9-135");
    XRC_ROWS("o9-79");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(write_only(0, kRemoteKey, kRemoteAddress, 10));
    for (unsigned syndrome = 0x40; syndrome < 0x80; ++syndrome) {
        if (syndrome >= 0x60 && syndrome <= 0x64) continue;
        peer.sends(nak(static_cast<std::uint8_t>(syndrome), 0));
        peer.completes_nothing();
        peer.expects_nothing();
    }
    // The packet counts for nothing: the timer runs out, and the request is sent again.
    peer.after(transport::ack_timeout(peer.parameters().timeout));
    peer.expects(write_only(0, kRemoteKey, kRemoteAddress, 10));
    peer.sends(ack(0));
    peer.completes();
}

TEST_P(Requester, C9_133_responses_with_bad_headers_are_dropped) {
    ROWS("C9-133", "C9-57", "C9-36");
    XRC_ROWS("o9-28");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(write_only(0, kRemoteKey, kRemoteAddress, 10));
    const net::Service other = is_xrc() ? net::Service::kRc : net::Service::kXrc;
    peer.sends(ack(0).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    peer.sends(ack(0).with([](net::Packet& packet) { packet.lrh.slid = 0x99; }));
    peer.sends(ack(0).with([](net::Packet& packet) { packet.lrh.dlid = 0x99; }));
    peer.sends(ack(0).with([](net::Packet& packet) { packet.has_grh = true; }));
    peer.sends(ack(0).service(other));
    peer.sends(ack(0).bits(Part::kBth, 1, 1, 0x0F));
    peer.completes_nothing();
    peer.expects_nothing();
    peer.sends(ack(0));
    peer.completes();
}

TEST_P(Requester, C9_6_reserved_bits_of_a_response_are_ignored) {
    ROWS("C9-6", "C9-7");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(ack(0).bits(Part::kBth, 4, 0xFF));
    peer.completes();
    peer.sends(ack(1).bits(Part::kBth, 8, 0x7F, 0x7F));
    peer.completes();
}

TEST_P(Requester, C9_134_an_acknowledge_behind_an_unanswered_read_is_an_implied_nak) {
    ROWS("C9-134");
    XRC_ROWS("o9-78");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 300);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 3U);
    peer.sends(ack(3));
    peer.completes(Status::kSuccess, 0);
    peer.completes_nothing();
    peer.expects(read(1, kRemoteKey, kRemoteAddress, 300));
    peer.expects(write_only(3, kRemoteKey, kRemoteAddress, 10));
    peer.sends(response_first(1));
    peer.sends(response_last(2, 44));
    peer.completes(Status::kSuccess, 1);
    peer.sends(ack(3));
    peer.completes(Status::kSuccess, 2);
}

// A responder acknowledges a duplicate with its newest PSN (9.7.5.1.4), which may be that of a READ behind
// it.
TEST_P(Requester, C9_134_acknowledges_of_what_was_sent_again_are_no_answers_to_a_read_behind) {
    ROWS("C9-134", "C9-138");
    XRC_ROWS("o9-78", "o9-83");
    for (const std::uint32_t length : {10U, 300U}) {
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.posts(WorkOpcode::kRdmaRead, length);
        EXPECT_EQ(one_peer.hears_all().size(), 3U);
        one_peer.after(transport::ack_timeout(one_peer.parameters().timeout));  // all responses are lost
        EXPECT_EQ(one_peer.hears_all().size(), 3U);
        const int newest = length > kMtu ? 3 : 2;
        one_peer.hold();  // both come in one turn
        one_peer.sends(ack(newest));
        one_peer.sends(ack(newest));
        one_peer.release();
        one_peer.completes();
        one_peer.completes();
        one_peer.expects(read(2, kRemoteKey, kRemoteAddress, length));
        if (length > kMtu) one_peer.sends(response_first(2));
        one_peer.sends(length > kMtu ? response_last(3, length - kMtu) : response_only(2, length));
        one_peer.completes();
        one_peer.ends();
    }
}

TEST_P(Requester, C9_134_a_late_acknowledge_does_not_turn_that_of_its_duplicate_into_an_answer) {
    ROWS("C9-134", "C9-138");
    XRC_ROWS("o9-78", "o9-83");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.after(transport::ack_timeout(peer.parameters().timeout));
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(ack(0));  // of the first try
    peer.completes();
    peer.sends(ack(1));  // of the second, after the atomic was executed; its result was lost
    peer.expects(Frame(Op::kFetchAdd, 1));
    peer.completes_nothing();
    peer.sends(atomic_ack(1, 7));
    peer.completes();
    peer.posts(WorkOpcode::kFetchAdd, 8);  // nothing of it has been sent again
    peer.expects(Frame(Op::kFetchAdd, 2));
    peer.sends(ack(2));
    peer.completes(Status::kBadResponse);
}

// A responder may find the gap closed before its NAK goes out.
TEST_P(Requester, C9_134_a_sequence_nak_of_the_next_psn_acknowledges_everything) {
    ROWS("C9-134", "C9-137");
    XRC_ROWS("o9-78", "o9-80.a1");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(nak(transport::kNakSequence, 2));
    peer.completes();
    peer.completes();
    peer.after(ms(1000));
    peer.expects_nothing();
    peer.sends(nak(transport::kNakSequence, 2));  // a ghost by now
    peer.expects_nothing();
    EXPECT_EQ(peer.state(), QpState::kRts);
}

// What follows the expected PSN is a gap, whatever it is; only at the expected PSN the kind can be wrong.
TEST_P(Requester, C9_134_an_acknowledge_among_the_responses_of_a_read_is_a_gap_in_them) {
    ROWS("C9-134", "C9-211.1.1");
    XRC_ROWS("o9-78");
    connect();
    peer.posts(WorkOpcode::kRdmaRead, 1000);
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 1000));
    peer.sends(response_first(0));
    peer.sends(ack(3));
    peer.expects(read(1, kRemoteKey, kRemoteAddress + 256, 744));
    peer.sends(response_first(1));
    peer.sends(response_middle(2));
    peer.sends(response_last(3, 232));
    peer.completes();
    Peer other(GetParam());
    other.connect();
    other.posts(WorkOpcode::kRdmaRead, 700);
    other.expects(read(0, kRemoteKey, kRemoteAddress, 700));
    other.sends(response_first(0));
    other.sends(response_middle(1));
    other.sends(ack(2));  // in place of the last
    other.completes(Status::kBadResponse);
    EXPECT_EQ(other.state(), QpState::kError);
    other.ends();
}

TEST_P(Requester, C9_120_a_nak_is_an_acknowledge_and_no_other_packet) {
    ROWS("C9-120", "C9-135");
    XRC_ROWS("o9-79");
    connect();
    peer.posts(WorkOpcode::kRdmaRead, 10);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    for (const std::uint8_t syndrome : {0x21, 0x60, 0x61, 0x62, 0x63, 0x64, 0x40}) {
        peer.sends(response_only(0, 10).syndrome(syndrome));
        peer.sends(atomic_ack(1, 7).syndrome(syndrome));
        peer.completes_nothing();
        peer.expects_nothing();
    }
    peer.sends(response_only(0, 10));
    peer.completes();
    peer.sends(atomic_ack(1, 7));
    peer.completes();
}

TEST_P(Requester, C9_134_a_gap_in_read_responses_asks_for_the_rest_only) {
    ROWS("C9-134");
    XRC_ROWS("o9-78");
    connect();
    peer.posts(WorkOpcode::kRdmaRead, 1000);
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 1000));
    peer.sends(response_first(0).bytes(5, 0));
    peer.sends(response_middle(2).bytes(5, 512));
    peer.expects(read(1, kRemoteKey, kRemoteAddress + 256, 744));
    peer.sends(response_last(3, 232).bytes(5, 768));  // still of the first answer
    peer.expects_nothing();
    peer.sends(response_first(1).bytes(5, 256));
    peer.sends(response_middle(2).bytes(5, 512));
    peer.sends(response_last(3, 232).bytes(5, 768));
    peer.completes();
    EXPECT_TRUE(peer.machine().holds(0, 1000, 5));
}

}  // namespace
}  // namespace uib::conformance
