// The order of work at the reliable requester (IBA 9.5, 9.7): messages are not mixed, the payload follows the
// segments, completions follow the posts, fences hold.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

TEST_P(Requester, C9_25_messages_go_out_whole_and_in_post_order) {
    ROWS("C9-25", "C9-13", "C9-18");
    connect_without_credits();
    peer.hold();
    peer.posts(WorkOpcode::kSend, 300);
    peer.posts(WorkOpcode::kRdmaWrite, 600);
    peer.posts(WorkOpcode::kRdmaRead, 300);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 300);
    peer.posts(WorkOpcode::kSendWithImmediate, 10);
    for (int i = 0; i < 30; ++i) peer.step(1);
    peer.release();
    peer.expects(send_first(0));
    peer.expects(send_last(1, 44));
    peer.expects(write_first(2, kRemoteKey, kRemoteAddress, 600));
    peer.expects(write_middle(3));
    peer.expects(write_last(4, 88));
    peer.expects(read(5, kRemoteKey, kRemoteAddress, 300));
    peer.expects(Frame(Op::kFetchAdd, 7));
    peer.expects(write_first(8, kRemoteKey, kRemoteAddress, 300));
    peer.expects(Frame(Op::kWriteLastImmediate, 9, 44));
    peer.expects(Frame(Op::kSendOnlyImmediate, 10, 10));
}

TEST_P(Requester, C9_26_the_payload_follows_the_data_segments) {
    ROWS("C9-26");
    connect_without_credits();
    Work work = peer.work(WorkOpcode::kSend, 0);
    std::vector<std::byte> expected;
    const std::pair<std::uint64_t, std::uint32_t> segments[] = {{0, 3}, {1001, 301}, {5003, 1}, {7007, 395}};
    unsigned seed = 1;
    for (const auto& [offset, length] : segments) {
        peer.machine().fill(offset, length, ++seed);
        work.entries.push_back(peer.machine().entry(offset, length));
        for (std::uint32_t i = 0; i < length; ++i) expected.push_back(transport::testing::pattern(seed, i));
    }
    peer.posts(work);
    std::vector<std::byte> got;
    for (const Carried& one : peer.hears_all())
        got.insert(got.end(), one.packet.payload.begin(), one.packet.payload.end());
    EXPECT_EQ(got, expected);
}

TEST_P(Requester, C9_30_requests_complete_in_the_order_they_were_posted) {
    ROWS("C9-30", "C9-32");
    connect_without_credits();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaRead, 300);
    peer.posts(WorkOpcode::kSend, 10);
    peer.posts(WorkOpcode::kCompareSwap, 8);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 5U);
    peer.completes_nothing();
    peer.sends(ack(0));
    peer.completes(Status::kSuccess, 0);
    peer.sends(response_first(1));
    peer.completes_nothing();
    peer.sends(response_last(2, 44));
    peer.completes(Status::kSuccess, 1);
    peer.sends(atomic_ack(4, 7));  // acknowledges the SEND, too
    peer.completes(Status::kSuccess, 2);
    peer.completes(Status::kSuccess, 3);
    peer.sends(ack(5));
    peer.completes(Status::kSuccess, 4);
}

TEST_P(Requester, C9_32_a_send_does_not_complete_before_the_read_ahead_of_it) {
    ROWS("C9-32");
    connect_without_credits();
    peer.posts(WorkOpcode::kRdmaRead, 10);
    peer.posts(WorkOpcode::kSend, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(ack(1));  // the READ's response was lost: an implied NAK of the READ
    peer.completes_nothing();
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 10));
    peer.expects(send_only(1, 10));
    peer.sends(response_only(0, 10));
    peer.completes(Status::kSuccess, 0);
    peer.sends(ack(1));
    peer.completes(Status::kSuccess, 1);
}

TEST_P(Requester, C9_31_a_fenced_request_waits_for_reads_and_atomics) {
    ROWS("C9-31");
    connect_without_credits();
    peer.posts(WorkOpcode::kRdmaRead, 300);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kSend, 10, ipc::kWorkSignaled | ipc::kWorkFence);
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 300));
    peer.expects(Frame(Op::kFetchAdd, 2));
    peer.expects(write_only(3, kRemoteKey, kRemoteAddress, 10));
    peer.expects_nothing();
    peer.sends(response_first(0));
    peer.sends(response_last(1, 44));
    peer.completes();
    peer.expects_nothing();
    peer.sends(atomic_ack(2, 1));
    peer.completes();
    peer.expects(send_only(4, 10));
    peer.sends(ack(4));
    peer.completes();
    peer.completes();
}

TEST_P(Requester, C9_60_nothing_completes_before_its_response_and_the_last_packet_asks_for_one) {
    ROWS("C9-60");
    connect_without_credits();
    peer.posts(WorkOpcode::kRdmaWrite, 300, 0);
    peer.posts(WorkOpcode::kRdmaWrite, 10, 0);
    peer.posts(WorkOpcode::kSend, 600);
    const std::vector<Carried> heard = peer.hears_all();
    ASSERT_EQ(heard.size(), 6U);
    EXPECT_TRUE(heard.back().packet.bth.ack_req);
    peer.completes_nothing();
    peer.sends(ack(4));
    peer.completes_nothing();
    peer.sends(ack(5));
    peer.completes(Status::kSuccess, 2);
}

}  // namespace
}  // namespace uib::conformance
