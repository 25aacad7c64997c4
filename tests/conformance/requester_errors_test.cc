// Error classes of the reliable requester (IBA 9.9.2, Tables 59 and 60).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint32_t kNoKey = 0xBAD00;

TEST_P(Requester, C9_209_a_local_error_waits_for_the_requests_before_it) {
    ROWS("C9-209", "C9-211.1.1", "C9-214");
    XRC_ROWS("o9-149", "o9-150");
    connect_without_credits();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 10);
    Work bad = peer.work(WorkOpcode::kRdmaWrite, 10);
    bad.entries[0].lkey = kNoKey;
    peer.posts(bad);
    peer.posts(WorkOpcode::kSend, 10);
    peer.expects(write_only(0, kRemoteKey, kRemoteAddress, 10));
    peer.expects(read(1, kRemoteKey, kRemoteAddress, 10));
    peer.expects_nothing();
    peer.completes_nothing();
    peer.sends(ack(0));
    peer.completes();
    peer.completes_nothing();
    peer.sends(response_only(1, 10));
    peer.completes();
    peer.completes(Status::kLocalProtection);
    peer.completes(Status::kFlushed);
    EXPECT_EQ(peer.state(), QpState::kError);
    peer.posts(WorkOpcode::kSend, 10);
    peer.completes(Status::kFlushed);
}

TEST_P(Requester, C9_211_1_1_local_errors_have_the_statuses_of_table_59) {
    ROWS("C9-211.1.1");
    const auto one_case = [](const char* name, Status status, const auto& change, WorkOpcode opcode) {
        SCOPED_TRACE(name);
        Peer one_peer(GetParam());
        one_peer.connect();
        Work work = one_peer.work(opcode, 8);
        change(work);
        one_peer.posts(work);
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.expects_nothing();
        one_peer.completes(status);
        one_peer.completes(Status::kFlushed);
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.ends();
    };
    const auto no_key = [](Work& work) { work.entries[0].lkey = kNoKey; };
    const auto outside = [](Work& work) { work.entries[0].address += Station::kMemory - 4; };
    const auto malformed = [](Work& work) { work.malformed = true; };
    const auto longer = [](Work& work) { work.entries[0].length = 9; };
    one_case("protection", Status::kLocalProtection, no_key, WorkOpcode::kRdmaWrite);
    one_case("protection, SEND", Status::kLocalProtection, no_key, WorkOpcode::kSend);
    one_case("protection of a READ's list", Status::kLocalProtection, no_key, WorkOpcode::kRdmaRead);
    one_case("protection of an atomic's list", Status::kLocalProtection, no_key, WorkOpcode::kFetchAdd);
    one_case("out of bounds", Status::kLocalProtection, outside, WorkOpcode::kRdmaWrite);
    one_case("malformed", Status::kLocalQpOperation, malformed, WorkOpcode::kRdmaWrite);
    one_case("length of an atomic", Status::kLocalLength, longer, WorkOpcode::kCompareSwap);
}

TEST_P(Requester, C9_211_1_1_naks_have_the_statuses_of_table_59) {
    ROWS("C9-211.1.1", "C9-214");
    struct Case {
        std::uint8_t nak;
        Status status;
        bool on_rc;
    };
    for (const Case& one : {Case{transport::kNakInvalidRequest, Status::kRemoteInvalidRequest, true},
                            Case{transport::kNakRemoteAccess, Status::kRemoteAccess, true},
                            Case{transport::kNakRemoteOperation, Status::kRemoteOperation, true},
                            Case{transport::kNakInvalidRdRequest, Status::kRemoteInvalidRdRequest, false}}) {
        if (!one.on_rc && !is_xrc()) continue;
        Peer one_peer(GetParam());
        one_peer.connect();
        for (int i = 0; i < 4; ++i) one_peer.posts(WorkOpcode::kRdmaWrite, 300);
        EXPECT_EQ(one_peer.hears_all().size(), 8U);
        one_peer.sends(nak(one.nak, 3));  // acknowledges the first message and half of the second
        one_peer.completes();
        one_peer.completes(one.status);
        one_peer.completes(Status::kFlushed);
        one_peer.completes(Status::kFlushed);
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.after(ms(1000));
        one_peer.expects_nothing();
        one_peer.ends();
    }
}

TEST_P(Requester, C9_211_1_1_a_nak_in_place_of_a_read_response_ends_the_read) {
    ROWS("C9-211.1.1", "C9-214");
    connect();
    peer.posts(WorkOpcode::kRdmaRead, 700);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(response_first(0));
    peer.sends(nak(transport::kNakRemoteAccess, 1));
    peer.completes(Status::kRemoteAccess);
    peer.completes(Status::kFlushed);
}

// [S?] The status of a READ response of another length is LOC_LEN_ERR, as mlx5 has it; of a response of
// another kind BAD_RESP_ERR.
TEST_P(Requester, C9_211_1_1_responses_that_do_not_fit_end_the_request) {
    ROWS("C9-211.1.1", "C9-214");
    struct Case {
        WorkOpcode opcode;
        std::uint32_t length;
        std::vector<Frame> answers;
        Status status;
    };
    const Case cases[] = {
        {WorkOpcode::kRdmaRead, 20, {response_only(0, 24)}, Status::kLocalLength},
        {WorkOpcode::kRdmaRead, 20, {response_only(0, 19)}, Status::kLocalLength},
        {WorkOpcode::kRdmaRead, 20, {response_first(0)}, Status::kLocalLength},
        {WorkOpcode::kRdmaRead, 700, {response_first(0), response_last(1, 188)}, Status::kLocalLength},
        {WorkOpcode::kRdmaRead, 700, {response_only(0, 256)}, Status::kLocalLength},
        {WorkOpcode::kRdmaRead, 300, {response_first(0), response_middle(1)}, Status::kLocalLength},
        {WorkOpcode::kRdmaRead, 20, {atomic_ack(0, 1)}, Status::kBadResponse},
        {WorkOpcode::kRdmaRead, 20, {ack(0)}, Status::kBadResponse},
        {WorkOpcode::kFetchAdd, 8, {response_only(0, 8)}, Status::kBadResponse},
        {WorkOpcode::kFetchAdd, 8, {ack(0)}, Status::kBadResponse},
        {WorkOpcode::kRdmaWrite, 8, {atomic_ack(0, 1)}, Status::kBadResponse},
        {WorkOpcode::kRdmaWrite, 8, {response_only(0, 8)}, Status::kBadResponse},
    };
    int number = 0;
    for (const Case& one : cases) {
        SCOPED_TRACE(number++);
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts(one.opcode, one.length);
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        EXPECT_EQ(one_peer.hears_all().size(), 2U);
        for (const Frame& answer : one.answers) one_peer.sends(answer);
        one_peer.completes(one.status);
        one_peer.completes(Status::kFlushed);
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.ends();
    }
}

TEST_P(Requester, C9_215_a_send_queue_in_error_drops_acknowledges) {
    ROWS("C9-215");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(nak(transport::kNakRemoteAccess, 0));
    peer.completes(Status::kRemoteAccess);
    peer.sends(ack(1));
    peer.completes(Status::kFlushed);
    peer.sends(ack(1));
    peer.sends(nak(transport::kNakSequence, 1));
    peer.sends(rnr_nak(1, 1));
    peer.after(ms(1000));
    peer.expects_nothing();
    peer.completes_nothing();
}

TEST_P(Requester, C9_215_a_client_that_moves_the_qp_to_error_has_all_flushed) {
    ROWS("C9-215");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.moves_to(QpState::kError);
    peer.completes(Status::kFlushed);
    peer.completes(Status::kFlushed);
    peer.sends(ack(0));
    peer.sends(response_only(1, 10));
    peer.completes_nothing();
}

// An error of the QP that belongs to no send request: here one that its responder half meets.
TEST_F(RcRequester, C9_216_an_error_outside_the_send_queue_flushes_it) {
    ROWS("C9-216");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(write_only(0, kNoKey, Station::kBase, 10));
    peer.expects(nak(transport::kNakRemoteAccess, 0));
    peer.raises(QpEvent::kAccessError);
    peer.completes(Status::kFlushed);
    peer.completes(Status::kFlushed);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(Requester, C9_218_a_completion_queue_without_room_puts_the_qp_into_error) {
    ROWS("C9-218");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.machine().queue_full = true;
    peer.sends(ack(0));
    EXPECT_EQ(peer.state(), QpState::kError);
    peer.raises(QpEvent::kFatal);
    peer.raises_nothing();
    peer.sends(ack(1));
    peer.after(ms(1000));
    peer.expects_nothing();
}

TEST_F(RcRequester, C9_146_a_window_that_cannot_be_bound_is_an_error_of_its_request) {
    ROWS("C9-146", "C9-211.1.1");
    connect();
    peer.machine().bind_result = Status::kWindowBind;
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kBindWindow, 0);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(write_only(0, kRemoteKey, kRemoteAddress, 10).asks_ack());
    peer.expects_nothing();
    peer.sends(ack(0));
    peer.completes();
    peer.completes(Status::kWindowBind);
    peer.completes(Status::kFlushed);
}

}  // namespace
}  // namespace uib::conformance
