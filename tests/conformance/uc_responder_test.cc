// The responder of an unreliable connection (IBA 9.8.2.2, Table 54, Figure 114; classes A, D1, E, G): what is
// not whole and in order leaves no trace but in memory, and nothing is ever sent back.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;
constexpr std::uint32_t kNoKey = 0xDEAD;

class Uc : public UcResponder {
  protected:
    /// After whatever came before: an Only SEND of any PSN is taken, by the first receive.
    void next_message_arrives(int psn, std::uint64_t wr_id = 0, Where where = Where::current()) {
        peer.expects_nothing(where);
        peer.receives_nothing(where);
        peer.raises_nothing(where);
        peer.sends(send_only(psn, 10).bytes(8));
        peer.receives(wr_id, Status::kSuccess, where);
        EXPECT_TRUE(peer.machine().holds(0, 10, 8)) << where.line();
        EXPECT_EQ(peer.state(), QpState::kRts) << where.line();
    }
};

TEST_F(Uc, C9_170_messages_in_order_are_executed) {
    ROWS("C9-170", "C9-11", "C9-181", "C9-185", "C9-191", "C9-169");
    connect();
    int psn = 0;
    for (std::uint64_t i = 0; i < 6; ++i) {  // over the wrap
        peer.posts_receive(i, 0, 1000);
        peer.sends(send_first(psn++).bytes(2, 0));
        peer.sends(send_middle(psn++).bytes(2, 256));
        peer.sends(send_last_imm(psn++, 188, 5).bytes(2, 512));
        EXPECT_EQ(peer.receives(i).byte_len, 700U);
        EXPECT_TRUE(peer.machine().holds(0, 700, 2));
        peer.sends(write_first(psn++, peer.rkey(), kBase + 2000, 300).bytes(3, 0));
        peer.sends(write_last(psn++, 44).bytes(3, 256));
        EXPECT_TRUE(peer.machine().holds(2000, 300, 3));
    }
    peer.posts_receive(9, 0, 10);
    peer.sends(write_only_imm(psn, peer.rkey(), kBase + 2000, 10, 77).solicited());
    const Completion done = peer.receives(9);
    EXPECT_EQ(done.immediate, 77U);
    EXPECT_NE(done.flags & ipc::kCqeSolicited, 0);
    peer.expects_nothing();
}

TEST_F(Uc, C9_186_a_message_with_a_gap_is_dropped_and_its_receive_used_again) {
    ROWS("C9-166", "C9-183", "C9-186", "C9-224", "C9-191", "C9-181");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0));
    peer.sends(send_middle(2));
    peer.sends(send_last(3, 10));
    next_message_arrives(4);
    peer.posts_receive(1, 0, 1000);
    peer.sends(send_first(5));
    peer.sends(send_last(6 - 2, 10));  // behind
    next_message_arrives(100, 1);
}

TEST_F(Uc, C9_184_a_first_or_only_packet_has_any_psn) {
    ROWS("C9-184", "C9-186");
    connect();
    for (std::uint64_t i = 0; i < 3; ++i) peer.posts_receive(i, 0, 1000);
    next_message_arrives(1000, 0);
    next_message_arrives(-5000, 1);
    peer.sends(send_first(70));
    peer.sends(send_last(71, 10));
    EXPECT_EQ(peer.receives(2).byte_len, 266U);
}

TEST_F(Uc, C9_187_opcodes_out_of_sequence_drop_their_message) {
    ROWS("C9-167", "C9-187", "C9-188", "C9-224");
    const std::uint32_t key = peer.rkey();
    const std::vector<Frame> sequences[] = {
        {send_middle(0)},
        {send_last(0, 10)},
        {write_last(0, 10)},
        {send_first(0), write_middle(1), write_last(2, 10)},
        {send_first(0), write_last(1, 10), send_last(2, 10)},
        {write_first(0, key, kBase + 4096, 600), send_middle(1), send_last(2, 10)},
        {write_only(0, key, kBase + 4096, 10), write_last(1, 10)},
        {write_first(0, key, kBase + 4096, 266), write_last(1, 10), write_last(2, 10)},
    };
    for (const std::vector<Frame>& frames : sequences) {
        Peer one_peer(transport::Service::kUc);
        one_peer.connect();
        one_peer.posts_receive(0, 0, 1000);
        for (const Frame& frame : frames) one_peer.sends(frame);
        one_peer.expects_nothing();
        one_peer.receives_nothing();
        one_peer.raises_nothing();
        one_peer.sends(send_only(static_cast<int>(frames.size()), 10));
        one_peer.receives(0);
        EXPECT_EQ(one_peer.state(), QpState::kRts);
        one_peer.ends();
    }
}

// Nor does a packet go on with an older message, that another has ended.
TEST_F(Uc, C9_187_a_write_that_was_left_open_is_not_gone_on_with) {
    ROWS("C9-187", "C9-188", "C9-186");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.machine().fill(4096, 1000, 9);
    peer.sends(write_first(0, peer.rkey(), kBase + 8192, 600));
    peer.sends(send_first(1));
    peer.sends(write_middle(2));
    peer.sends(write_last(3, 88));
    peer.sends(write_first(4, peer.rkey(), kBase + 4096 - 256, 600));
    peer.sends(send_first(5));
    peer.sends(write_middle(6));
    EXPECT_TRUE(peer.machine().holds(4096, 1000, 9));
    next_message_arrives(7);
}

TEST_F(Uc, C9_224_a_receive_kept_for_the_next_message_is_flushed) {
    ROWS("C9-224");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.posts_receive(1, 0, 1000);
    peer.sends(send_first(0));
    peer.sends(send_last(2, 10));
    peer.receives_nothing();
    peer.moves_to(QpState::kError);
    peer.receives(0, Status::kFlushed);
    peer.receives(1, Status::kFlushed);
}

TEST_F(Uc, C9_189_a_first_packet_out_of_sequence_begins_a_new_message) {
    ROWS("C9-189", "C9-186", "C9-224");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0).bytes(1));
    peer.sends(send_middle(1).bytes(1));
    peer.sends(send_first(2).bytes(6, 0));
    peer.sends(send_last(3, 44).bytes(6, 256));
    EXPECT_EQ(peer.receives(0).byte_len, 300U);
    EXPECT_TRUE(peer.machine().holds(0, 300, 6));
    peer.posts_receive(1, 0, 1000);
    peer.sends(send_first(4));
    next_message_arrives(5, 1);  // an Only, too
}

TEST_F(Uc, C9_168_what_the_queue_does_not_support_is_dropped) {
    ROWS("C9-168", "C9-190", "C9-191");
    peer.parameters().access = 0;
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.machine().fill(4096, 10, 9);
    peer.sends(write_only(0, peer.rkey(), kBase + 4096, 10));
    EXPECT_TRUE(peer.machine().holds(4096, 10, 9));
    // READ, atomics, invalidate and reserved codes: none of UC's.
    for (const std::uint8_t operation : {0x0C, 0x11, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1D, 0x1F})
        peer.sends(send_only(1, 100).bits(Part::kBth, 0, operation, 0x1F));
    next_message_arrives(2);
}

TEST_F(Uc, C9_169_without_a_receive_a_message_is_dropped) {
    ROWS("C9-169", "C9-191");
    connect();
    peer.sends(send_first(0));
    peer.sends(send_last(1, 10));
    peer.sends(write_only_imm(2, peer.rkey(), kBase + 4096, 10, 1));
    peer.expects_nothing();
    peer.posts_receive(0, 0, 1000);
    next_message_arrives(3);
}

TEST_F(Uc, C9_192_2_1_a_bad_key_leaves_memory_alone) {
    ROWS("C9-170", "C9-192.2.1", "C9-191");
    connect();
    peer.posts_receive(0, 0, 1000);
    memory::RegionInit init = peer.machine().region->init();
    init.access = ipc::kAccessLocalWrite;
    const std::uint32_t no_rights = peer.machine().keys().add_region(init)->key();
    init.access = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite;
    init.pd = 2;
    const std::uint32_t foreign = peer.machine().keys().add_region(init)->key();
    peer.machine().fill(4096, 300, 9);
    int psn = 0;
    for (const std::uint32_t key : {kNoKey, no_rights, foreign}) {
        peer.sends(write_only(psn++, key, kBase + 4096, 10));
        peer.sends(write_first(psn++, key, kBase + 4096, 300));
        peer.sends(write_last(psn++, 44));
    }
    peer.sends(write_only(psn++, peer.rkey(), kBase + Station::kMemory - 9, 10));
    EXPECT_TRUE(peer.machine().holds(4096, 300, 9));
    next_message_arrives(psn);
}

TEST_F(Uc, C9_170_a_write_that_is_not_as_long_as_it_says_is_dropped) {
    ROWS("C9-170", "C9-224", "C9-219.1.1");
    connect();
    peer.posts_receive(0, 0, 1000);
    const std::uint32_t key = peer.rkey();
    peer.sends(write_first(0, key, kBase + 4096, 600));
    peer.sends(write_last_imm(1, 10, 7));
    peer.sends(write_first(2, key, kBase + 4096, 300));
    peer.sends(write_last_imm(3, 45, 7));
    peer.sends(write_only_imm(4, key, kBase + 4096, 10, 7).length(8));
    peer.sends(write_first(5, key, kBase + 4096, 0x80000001));
    next_message_arrives(6);
    EXPECT_EQ(peer.machine().count().dropped_length, 4U);
    EXPECT_EQ(peer.machine().count().remote_access_errors, 0U);
}

TEST_F(Uc, C9_193_a_zero_length_needs_no_key) {
    ROWS("C9-193");
    connect();
    peer.posts_receive(0, 0, 10);
    peer.sends(write_only_imm(0, kNoKey, 0, 0, 3));
    EXPECT_EQ(peer.receives(0).immediate, 3U);
}

TEST_F(Uc, C9_195_lengths_must_fit_the_opcode) {
    ROWS("C9-194", "C9-195", "C9-196", "C9-197", "C9-199", "C9-169", "C9-191");
    const std::vector<Frame> sequences[] = {
        {send_first(0).length(252), send_last(1, 10)},
        {send_first(0).length(260), send_last(1, 10)},
        {send_first(0), send_middle(1).length(252), send_last(2, 10)},
        {send_first(0), send_last(1, 0)},
        {send_first(0), send_last(1, 260)},
        {send_only(0, 260)},
        {send_first(0).pad(2), send_last(1, 10)},
        {send_first(0), send_middle(1).pad(1), send_last(2, 10)},
        {send_first(0), send_middle(1), send_middle(2), send_last(3, 240)},  // longer than the receive
    };
    for (const std::vector<Frame>& frames : sequences) {
        Peer one_peer(transport::Service::kUc);
        one_peer.connect();
        one_peer.posts_receive(0, 0, 1000);
        for (const Frame& frame : frames) one_peer.sends(frame);
        one_peer.expects_nothing();
        one_peer.receives_nothing();
        one_peer.raises_nothing();
        one_peer.sends(send_only(9, 10));
        one_peer.receives(0);
        one_peer.ends();
    }
}

TEST_F(Uc, C9_165_header_faults_are_dropped) {
    ROWS("C9-165");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_only(0, 10).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    peer.sends(send_only(0, 10).with([](net::Packet& packet) { packet.lrh.slid = 0x99; }));
    peer.sends(send_only(0, 10).service(net::Service::kRc));
    peer.sends(send_only(0, 10).bits(Part::kBth, 1, 2, 0x0F));
    next_message_arrives(0);
}

TEST_F(Uc, C9_171_the_first_check_in_the_order_of_the_figure_decides) {
    ROWS("C9-171", "C9-185");
    connect();
    peer.posts_receive(0, 0, 1000);
    ipc::ScatterGatherEntry bad = peer.machine().entry(0, 100);
    bad.lkey = 0xBAD00;
    // Header before all: a receive that would stop the QP is not taken.
    peer.machine().receive_queue.posted.push_front({7, {bad}, true});
    peer.sends(send_only(0, 10).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    peer.sends(send_middle(5));     // sequence before resources
    peer.sends(send_only(6, 300));  // length of the packet, too
    peer.sends(write_only_imm(7, kNoKey, kBase, 300, 1));
    peer.raises_nothing();
    peer.machine().receive_queue.posted.pop_front();
    next_message_arrives(8);
}

TEST_F(Uc, C9_220_a_receive_at_fault_puts_the_qp_into_error) {
    ROWS("C9-220", "C9-219.1.1");
    connect();
    peer.machine().receive_queue.posted.push_back({7, {peer.machine().entry(0, 10)}, true});
    peer.sends(send_only(0, 10));
    peer.receives(7, Status::kLocalQpOperation);
    peer.expects_nothing();
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(Uc, C9_225_a_completion_queue_without_room_puts_the_qp_into_error) {
    ROWS("C9-225");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.machine().queue_full = true;
    peer.sends(send_only(0, 10));
    peer.raises(QpEvent::kFatal);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(Uc, o9_131_lost_messages_are_counted) {
    ROWS("o9-131");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0));
    peer.sends(send_last(2, 10));
    EXPECT_EQ(peer.machine().count().dropped_sequence, 1U);
}

TEST_F(Uc, o9_161_2_2_on_an_srq_the_receive_of_a_lost_message_ends_in_error) {
    ROWS("o9-161.2.2", "C9-219.1.1");
    peer.machine().receive_queue.is_shared = true;
    connect();
    for (std::uint64_t i = 0; i < 4; ++i) peer.posts_receive(i, 0, 500);
    peer.sends(send_first(0));
    peer.sends(send_last(2, 10));
    peer.receives(0, Status::kRemoteInvalidRequest);
    peer.sends(send_first(3));
    peer.sends(send_middle(4));
    peer.receives(1, Status::kLocalLength);
    next_message_arrives(5, 2);
    EXPECT_EQ(peer.machine().receive_queue.available(), 1U);
}

}  // namespace
}  // namespace uib::conformance
