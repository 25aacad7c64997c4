// End-to-end credits that the responder of a reliable connection generates (IBA 9.7.7.2, Table 50).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;

TEST_F(RcResponder, C9_158_2_1_the_code_is_the_largest_that_does_not_exceed_the_receives) {
    ROWS("C9-158.2.1", "C9-150.2.1", "C9-161", "C9-119");
    const std::uint32_t credits[] = {0,  1,  2,  3,   4,   6,   8,   12,  16,  24,  32,
                                     48, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
    for (std::uint32_t receives = 0; receives < 800; receives += receives < 50 ? 1 : 37) {
        Peer one_peer(transport::Service::kRc);
        one_peer.connect();
        for (std::uint32_t i = 0; i < receives; ++i) one_peer.posts_receive(i, 0, 10);
        one_peer.sends(write_only(0, one_peer.rkey(), kBase, 10).asks_ack());
        std::uint8_t code = 0;
        while (credits[code + 1] <= receives) ++code;
        one_peer.expects(ack(0).credits(code).msn(1));
        one_peer.ends();
    }
}

TEST_F(RcResponder, C9_157_2_1_credits_are_receives_posted_less_receives_used) {
    ROWS("C9-157.2.1", "C9-161", "C9-158.2.1");
    connect();
    for (int i = 0; i < 4; ++i) peer.posts_receive(static_cast<std::uint64_t>(i), 0, 1000);
    const std::uint32_t key = peer.rkey();
    peer.sends(write_only(0, key, kBase, 10).asks_ack());
    peer.expects(ack(0).credits(4).msn(1));  // code 4 is four
    peer.sends(send_only(1, 10).asks_ack());
    peer.expects(ack(1).credits(3).msn(2));
    peer.receives(0);
    peer.sends(read(2, key, kBase, 10));
    peer.expects(response_only(2, 10).credits(3).msn(3));
    peer.sends(fetch_add(3, key, kBase, 1));
    peer.expects(Frame(Op::kAtomicAcknowledge, 3).credits(3).msn(4));
    peer.sends(write_only_imm(4, key, kBase, 10, 1).asks_ack());
    peer.expects(ack(4).credits(2).msn(5));
    peer.receives(1);
    // A message under way has not completed: its receive still counts beyond the MSN.
    peer.sends(send_first(5).asks_ack());
    peer.expects(ack(5).credits(2).msn(5));
    peer.sends(send_last(6, 10).asks_ack());
    peer.expects(ack(6).credits(1).msn(6));
    peer.receives(2);
    peer.posts_receive(4, 0, 10);
    peer.posts_receive(5, 0, 10);
    peer.sends(write_only(7, key, kBase, 10).asks_ack());
    peer.expects(ack(7).credits(3).msn(7));
    peer.sends(send_only(1, 10).asks_ack());  // a duplicate uses none
    peer.expects(ack(7).credits(3).msn(7));
}

TEST_F(RcResponder, C9_155_receives_posted_in_init_are_told_by_the_first_acknowledge) {
    ROWS("C9-155", "C9-157.2.1");
    connect(QpState::kInit);
    for (int i = 0; i < 3; ++i) peer.posts_receive(static_cast<std::uint64_t>(i), 0, 1000);
    peer.moves_to(QpState::kRtr);
    peer.moves_to(QpState::kRts);
    peer.expects_nothing();  // the initial acknowledge is the responder's choice
    peer.sends(send_first(0).asks_ack());
    peer.expects(ack(0).credits(3).msn(0));
}

// When to send one is left to the responder: uib tells a peer that began its newest SEND as one without
// credits does, after an acknowledge that gave none.
TEST_F(RcResponder, C9_152_an_unsolicited_acknowledge_repeats_the_psn_with_msn_and_credits) {
    ROWS("C9-152", "C9-155");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0).asks_ack());
    peer.expects(ack(0).msn(0));
    peer.sends(send_last(1, 10).asks_ack());
    peer.expects(ack(1).credits(0).msn(1));
    peer.receives(0);
    peer.expects_nothing();
    peer.posts_receive(1, 0, 1000);
    peer.posts_receive(2, 0, 1000);
    peer.expects(ack(1).credits(2).msn(1));
    peer.posts_receive(3, 0, 1000);
    peer.expects_nothing();
}

TEST_F(RcResponder, o9_95_2_2_a_queue_pair_on_an_srq_generates_no_credits) {
    ROWS("o9-95.2.2", "C9-150.2.1", "C9-158.2.1", "C9-157.2.1");
    peer.machine().receive_queue.is_shared = true;
    connect();
    for (int i = 0; i < 4; ++i) peer.posts_receive(static_cast<std::uint64_t>(i), 0, 1000);
    peer.sends(write_only(0, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(ack(0).credits(0x1F));
    peer.sends(send_only(1, 10).asks_ack());
    peer.expects(ack(1).credits(0x1F));
    peer.receives(0);
    peer.sends(read(2, peer.rkey(), kBase, 10));
    peer.expects(response_only(2, 10).credits(0x1F));
}

}  // namespace
}  // namespace uib::conformance
