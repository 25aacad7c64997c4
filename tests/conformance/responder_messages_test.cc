// What a reliable responder answers to good requests: headers, segments, PSNs, AETH, MSN, order
// (IBA 9.4, 9.5, 9.7.2, 9.7.4.1.2, 9.7.5.1, 9.7.5.2, 9.7.7.1).
#include <cstring>

#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;

TEST_P(Responder, C9_2_responses_have_the_opcodes_and_headers_of_table_38) {
    ROWS("C9-1", "C9-2", "C9-5", "C9-15", "C9-20", "C9-24", "o9-16", "C9-97", "C9-98", "C9-117", "C9-118",
         "C9-119.a1");
    XRC_ROWS("o9-71.a1");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.sends(send_only(0, 10).asks_ack());
    peer.sends(write_only(1, peer.rkey(), kBase, 10).asks_ack());
    peer.sends(read(2, peer.rkey(), kBase, 700));
    peer.sends(read(5, peer.rkey(), kBase, 0));
    peer.sends(fetch_add(6, peer.rkey(), kBase, 1));
    peer.receives(0);
    struct {
        std::uint8_t operation;
        std::size_t extension;
        std::size_t payload;
    } const wanted[] = {{0x11, 4, 0},   {0x11, 4, 0}, {0x0D, 4, 256}, {0x0E, 0, 256},
                        {0x0F, 4, 188}, {0x10, 4, 0}, {0x12, 12, 0}};
    for (const auto& want : wanted) {
        const Carried heard = peer.hears();
        EXPECT_EQ(heard.byte(Part::kBth, 0), (is_xrc() ? 0xA0 : 0) | want.operation);
        EXPECT_EQ(heard.frame->size(), 8 + 12 + want.extension + want.payload + 4 + 2);
        EXPECT_EQ(heard.byte(Part::kBth, 1) & 0x0F, 0) << "TVer";
        if (want.extension != 0) {
            EXPECT_EQ(heard.byte(Part::kExtension, 0) & 0x80, 0) << "AETH bit 7";
        }
    }
}

TEST_P(Responder, C9_11_packets_of_a_message_are_put_together) {
    ROWS("C9-11", "C9-77", "C9-74");
    XRC_ROWS("o9-4", "o9-43", "o9-39");
    connect();
    peer.posts_receive(0, 1000, 1000);
    peer.sends(send_first(0).bytes(4, 0));
    peer.sends(send_middle(1).bytes(4, 256));
    peer.receives_nothing();
    peer.sends(send_last(2, 188).bytes(4, 512).asks_ack());
    EXPECT_EQ(peer.receives(0).byte_len, 700U);
    EXPECT_TRUE(peer.machine().holds(1000, 700, 4));
    peer.expects(ack(2).msn(1));
    peer.sends(write_first(3, peer.rkey(), kBase + 5000, 700).bytes(5, 0));
    peer.sends(write_middle(4).bytes(5, 256));
    peer.sends(write_last(5, 188).bytes(5, 512).asks_ack());
    peer.expects(ack(5).msn(2));
    EXPECT_TRUE(peer.machine().holds(5000, 700, 5));
}

TEST_P(Responder, C9_99_read_responses_are_cut_by_the_mtu) {
    ROWS("C9-21", "C9-24", "C9-96", "C9-97", "C9-98", "C9-99", "C9-117", "C9-118");
    connect();
    peer.machine().fill(0, 4096, 6);
    int psn = 0;
    for (const std::uint32_t length : {0U, 1U, 256U, 257U, 512U, 700U, 769U}) {
        peer.sends(read(psn, peer.rkey(), kBase, length));
        if (length <= kMtu) {
            peer.expects(response_only(psn++, length).bytes(6, 0));
            continue;
        }
        peer.expects(response_first(psn++).bytes(6, 0));
        std::uint32_t done = kMtu;
        for (; length - done > kMtu; done += kMtu) peer.expects(response_middle(psn++).bytes(6, done));
        peer.expects(response_last(psn++, length - done).bytes(6, done));
    }
}

TEST_P(Responder, C9_69_reads_are_cut_by_every_mtu) {
    ROWS("C9-21", "C9-99");
    for (const std::uint32_t mtu : {512U, 1024U, 2048U, 4096U}) {
        Peer one_peer(GetParam());
        one_peer.parameters().mtu_bytes = mtu;
        one_peer.connect();
        one_peer.sends(read(0, one_peer.rkey(), kBase, 2 * mtu + 1));
        one_peer.expects(response_first(0).length(mtu));
        one_peer.expects(response_middle(1).length(mtu));
        one_peer.expects(response_last(2, 1));
        one_peer.ends();
    }
}

TEST_P(Responder, C9_77_a_message_may_end_exactly_where_its_region_does) {
    ROWS("C9-77", "C9-89");
    XRC_ROWS("o9-43");
    connect();
    constexpr std::uint64_t kEnd = kBase + Station::kMemory;
    peer.posts_receive(0, Station::kMemory - 700, 700);
    peer.sends(send_first(0));
    peer.sends(send_middle(1));
    peer.sends(send_last(2, 188).asks_ack());
    peer.expects(ack(2));
    EXPECT_EQ(peer.receives(0).byte_len, 700U);
    peer.sends(write_first(3, peer.rkey(), kEnd - 300, 300));
    peer.sends(write_last(4, 44).asks_ack());
    peer.expects(ack(4));
    peer.sends(read(5, peer.rkey(), kEnd - 300, 300));
    peer.expects(response_first(5));
    peer.expects(response_last(6, 44));
    peer.sends(fetch_add(7, peer.rkey(), kEnd - 8, 1));
    peer.expects(Frame(Op::kAtomicAcknowledge, 7));
    peer.sends(read(8, peer.rkey(), kEnd, 0));
    peer.expects(response_only(8, 0));
}

TEST_P(Responder, C9_75_after_a_read_the_psn_behind_its_responses_is_expected) {
    ROWS("C9-75", "C9-62", "C9-74");
    XRC_ROWS("o9-40", "o9-29", "o9-39");
    connect();
    // Twice round the wrap of the PSN.
    int psn = 0;
    for (int i = 0; i < 8; ++i) {
        peer.sends(read(psn, peer.rkey(), kBase, 700));
        EXPECT_EQ(peer.hears_all().size(), 3U);
        peer.sends(write_only(psn + 3, peer.rkey(), kBase, 10).asks_ack());
        peer.expects(ack(psn + 3));
        psn += 4;
    }
    EXPECT_EQ(peer.machine().qp->receive_psn(), Wire::psn(psn));
}

TEST_P(Responder, C9_75_sends_and_writes_go_round_the_wrap_of_the_psn) {
    ROWS("C9-75", "C9-74", "C9-79");
    XRC_ROWS("o9-40", "o9-39", "o9-45");
    connect();
    int psn = 0;
    for (; psn < 20; ++psn) {
        if (psn % 2 == 0) {
            peer.sends(write_only(psn, peer.rkey(), kBase, 10).asks_ack());
        } else {
            peer.posts_receive(static_cast<std::uint64_t>(psn), 0, 100);
            peer.sends(send_only(psn, 10).asks_ack());
            peer.receives(static_cast<std::uint64_t>(psn));
        }
        peer.expects(ack(psn));
        EXPECT_EQ(peer.machine().qp->receive_psn(), Wire::psn(psn + 1)) << "as a query shows it";
    }
    peer.sends(write_only(psn + 1, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(nak(0x60, psn));
}

// The gap may close before the NAK goes out: the PSN is the one that is expected then.
TEST_P(Responder, C9_121_a_sequence_nak_has_the_psn_that_is_expected_when_it_goes) {
    ROWS("C9-121", "C9-79", "C9-111");
    XRC_ROWS("o9-45");
    connect();
    peer.hold();
    peer.sends(write_only(2, peer.rkey(), kBase, 10));
    peer.sends(write_only(0, peer.rkey(), kBase, 10));
    peer.sends(write_only(1, peer.rkey(), kBase, 10));
    peer.release();
    peer.expects(nak(transport::kNakSequence, 2).msn(2));
    peer.sends(write_only(2, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(ack(2).msn(3));
}

TEST_P(Responder, C9_95_an_acknowledge_has_the_psn_of_the_newest_request) {
    ROWS("C9-95", "C9-116", "C9-63");
    XRC_ROWS("o9-30");
    connect();
    peer.sends(write_only(0, peer.rkey(), kBase, 10));
    peer.sends(write_only(1, peer.rkey(), kBase, 10));
    peer.expects_nothing();  // nobody has asked
    peer.sends(write_only(2, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(ack(2).msn(3));
    peer.hold();
    peer.sends(write_only(3, peer.rkey(), kBase, 10).asks_ack());
    peer.sends(write_only(4, peer.rkey(), kBase, 10).asks_ack());
    peer.sends(write_first(5, peer.rkey(), kBase, 300).asks_ack());
    peer.release();
    peer.expects(ack(5).msn(5));  // coalesced
}

TEST_P(Responder, C9_27_responses_keep_the_order_of_their_requests) {
    ROWS("C9-27", "C9-63", "C9-101", "o9-58");
    XRC_ROWS("o9-19", "o9-30", "o9-63");
    if (!is_xrc()) ROWS("C9-27", "C9-63", "C9-101", "o9-58", "o9-63");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.hold();
    peer.sends(read(0, peer.rkey(), kBase, 700));
    peer.sends(send_only(3, 10).asks_ack());
    peer.sends(fetch_add(4, peer.rkey(), kBase + 512, 1));
    peer.sends(read(5, peer.rkey(), kBase, 10));
    peer.sends(write_only(6, peer.rkey(), kBase + 800, 10).asks_ack());
    for (int i = 0; i < 10; ++i) peer.step(1);
    peer.release();
    peer.receives(0);
    peer.expects(response_first(0));
    peer.expects(response_middle(1));
    peer.expects(response_last(2, 188));
    peer.expects(Frame(Op::kAtomicAcknowledge, 4));  // acknowledges the SEND
    peer.expects(response_only(5, 10));
    peer.expects(ack(6).msn(5));
}

TEST_P(Responder, C9_28_requests_are_executed_in_the_order_they_come) {
    ROWS("C9-28", "C9-77");
    XRC_ROWS("o9-43");
    connect();
    peer.posts_receive(0, 0, 8);
    peer.hold();
    peer.sends(write_only(0, peer.rkey(), kBase, 8).bytes(9));
    peer.sends(fetch_add(1, peer.rkey(), kBase, 1));
    peer.sends(send_only(2, 8).bytes(11).asks_ack());
    peer.sends(fetch_add(3, peer.rkey(), kBase, 0));
    peer.sends(send_middle(4));  // out of place: the NAK comes last
    peer.release();
    std::uint64_t written = 0;
    std::uint64_t sent = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        reinterpret_cast<std::byte*>(&written)[i] = transport::testing::pattern(9, i);
        reinterpret_cast<std::byte*>(&sent)[i] = transport::testing::pattern(11, i);
    }
    peer.expects(atomic_ack(1, written));
    peer.expects(atomic_ack(3, sent));
    peer.expects(nak(transport::kNakInvalidRequest, 4));
    peer.receives(0);
    peer.raises(QpEvent::kRequestError);
}

TEST_P(Responder, C9_29_receives_complete_in_the_order_of_sending) {
    ROWS("C9-29");
    connect();
    for (int i = 0; i < 4; ++i) peer.posts_receive(static_cast<std::uint64_t>(i), 100 * i, 100);
    peer.hold();
    peer.sends(send_only(0, 10));
    peer.sends(write_only_imm(1, peer.rkey(), kBase + 500, 10, 0x11));
    peer.sends(send_only_imm(2, 10, 0x22));
    peer.sends(write_first(3, peer.rkey(), kBase + 500, 300));
    peer.sends(write_last_imm(4, 44, 0x33).asks_ack());
    peer.release();
    EXPECT_EQ(peer.receives(0).flags & ipc::kCqeImmediate, 0);
    EXPECT_EQ(peer.receives(1).immediate, 0x11U);
    EXPECT_EQ(peer.receives(2).immediate, 0x22U);
    const Completion last = peer.receives(3);
    EXPECT_EQ(last.immediate, 0x33U);
    EXPECT_EQ(last.byte_len, 300U);
    peer.expects(ack(4).msn(4));
}

TEST_P(Responder, C9_3_a_solicited_send_says_so_to_the_completion_queue) {
    ROWS("C9-3");
    connect();
    for (int i = 0; i < 3; ++i) peer.posts_receive(static_cast<std::uint64_t>(i), 0, 100);
    peer.sends(send_only(0, 10));
    peer.sends(send_only(1, 10).solicited());
    peer.sends(write_only_imm(2, peer.rkey(), kBase, 10, 1).solicited());
    EXPECT_EQ(peer.receives(0).flags & ipc::kCqeSolicited, 0);
    EXPECT_NE(peer.receives(1).flags & ipc::kCqeSolicited, 0);
    EXPECT_NE(peer.receives(2).flags & ipc::kCqeSolicited, 0);
}

TEST_P(Responder, C9_4_a_solicited_bit_out_of_place_does_no_harm) {
    ROWS("C9-4");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0).solicited());
    peer.sends(send_middle(1).solicited());
    peer.sends(send_last(2, 10).asks_ack());
    EXPECT_EQ(peer.receives(0).flags & ipc::kCqeSolicited, 0);
    peer.expects(ack(2));
    peer.sends(write_only(3, peer.rkey(), kBase, 10).solicited().asks_ack());
    peer.expects(ack(3));
    peer.sends(read(4, peer.rkey(), kBase, 10).solicited());
    peer.expects(response_only(4, 10));
}

TEST_P(Responder, C9_148_the_msn_counts_completed_messages_once) {
    ROWS("C9-147", "C9-148", "C9-149", "C9-119");
    XRC_ROWS("o9-91.a1", "o9-71");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0).asks_ack());
    peer.expects(ack(0).msn(0));
    peer.sends(send_last(1, 10).asks_ack());
    peer.expects(ack(1).msn(1));
    peer.receives(0);
    peer.sends(send_last(1, 10).asks_ack());  // a duplicate
    peer.expects(ack(1).msn(1));
    peer.sends(write_only(2, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(ack(2).msn(2));
    peer.sends(read(3, peer.rkey(), kBase, 300));
    peer.expects(response_first(3));
    peer.expects(response_last(4, 44).msn(3));
    peer.sends(fetch_add(5, peer.rkey(), kBase, 0));
    peer.expects(Frame(Op::kAtomicAcknowledge, 5).msn(4));
    peer.sends(fetch_add(5, peer.rkey(), kBase, 0));
    peer.expects(Frame(Op::kAtomicAcknowledge, 5).msn(4));
    peer.sends(write_only(9, peer.rkey(), kBase, 10));
    peer.expects(nak(transport::kNakSequence, 6).msn(4));
    peer.sends(send_only(6, 10));
    peer.expects(rnr_nak(12, 6).msn(4));
}

TEST_P(Responder, C9_119_syndromes_are_those_of_table_46) {
    ROWS("C9-119", "C9-119.a1", "C9-129", "C9-113", "C9-221");
    XRC_ROWS("o9-71", "o9-71.a1", "o9-76", "o9-158");
    for (const std::uint8_t timer : {0, 1, 12, 31}) {
        Peer one_peer(GetParam());
        one_peer.parameters().min_rnr_timer = timer;
        one_peer.connect();
        one_peer.sends(write_only(0, one_peer.rkey(), kBase, 10).asks_ack());
        one_peer.expects(ack(0).syndrome(is_xrc() ? 0x1F : 0x00));
        one_peer.sends(send_only(1, 10));
        one_peer.expects(nak(static_cast<std::uint8_t>(0x20 | timer), 1));
        one_peer.sends(send_only(2, 10));  // waiting for PSN 1: dropped
        one_peer.expects_nothing();
        one_peer.sends(send_only(1, 10));  // not ready yet
        one_peer.expects(nak(static_cast<std::uint8_t>(0x20 | timer), 1));
        one_peer.posts_receive(0, 0, 100);
        one_peer.sends(send_only(1, 10).asks_ack());
        one_peer.expects(ack(1));
        one_peer.receives(0);
        one_peer.ends();
    }
}

}  // namespace
}  // namespace uib::conformance
