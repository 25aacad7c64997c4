// The requester of an unreliable connection (IBA 9.8.2.1, Table 54): as that of RC, without responses.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

TEST_F(UcRequester, C9_176_opcodes_follow_table_54_and_complete_without_acknowledge) {
    ROWS("C9-176", "C9-172", "C9-173", "C9-177", "C9-179", "C9-180", "C9-13", "C9-11");
    connect();
    peer.machine().fill(0, 700, 1);
    peer.posts(WorkOpcode::kSend, 700);
    peer.posts(WorkOpcode::kSendWithImmediate, 512);
    peer.posts(WorkOpcode::kRdmaWrite, 700);
    peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 300);
    peer.expects(send_first(0).asks_ack(false).bytes(1, 0));
    peer.expects(send_middle(1).asks_ack(false).bytes(1, 256));
    peer.expects(send_last(2, 188).asks_ack(false).bytes(1, 512));
    peer.expects(send_first(3));
    peer.expects(Frame(Op::kSendLastImmediate, 4, 256));
    peer.expects(write_first(5, kRemoteKey, kRemoteAddress, 700));
    peer.expects(write_middle(6));
    peer.expects(write_last(7, 188).asks_ack(false));
    peer.expects(write_first(8, kRemoteKey, kRemoteAddress, 300));
    peer.expects(Frame(Op::kWriteLastImmediate, 9, 44));
    for (int i = 0; i < 4; ++i) peer.completes();
}

TEST_F(UcRequester, C9_176_opcodes_are_those_of_table_38) {
    ROWS("C9-176", "C9-2", "C9-1", "C9-5");
    connect();
    const std::pair<WorkOpcode, std::uint32_t> works[] = {
        {WorkOpcode::kSend, 700},      {WorkOpcode::kSendWithImmediate, 300},
        {WorkOpcode::kSend, 1},        {WorkOpcode::kSendWithImmediate, 1},
        {WorkOpcode::kRdmaWrite, 700}, {WorkOpcode::kRdmaWriteWithImmediate, 300},
        {WorkOpcode::kRdmaWrite, 1},   {WorkOpcode::kRdmaWriteWithImmediate, 1}};
    const std::uint8_t opcodes[] = {0x20, 0x21, 0x22, 0x20, 0x23, 0x24, 0x25,
                                    0x26, 0x27, 0x28, 0x26, 0x29, 0x2A, 0x2B};
    for (const auto& [opcode, length] : works) peer.posts(opcode, length);
    for (const std::uint8_t opcode : opcodes) EXPECT_EQ(peer.hears().byte(Part::kBth, 0), opcode);
    for (std::size_t i = 0; i < std::size(works); ++i) peer.completes();
}

TEST_F(UcRequester, C9_3_the_last_packet_has_the_solicited_bit_and_the_immediate) {
    ROWS("C9-3", "C9-176");
    connect();
    for (const WorkOpcode opcode : {WorkOpcode::kSend, WorkOpcode::kSendWithImmediate,
                                    WorkOpcode::kRdmaWriteWithImmediate, WorkOpcode::kRdmaWrite}) {
        Work work = peer.work(opcode, 300);
        work.flags = ipc::kWorkSignaled | ipc::kWorkSolicited;
        work.immediate = 0x11223344;
        peer.posts(work);
    }
    peer.expects(send_first(0).solicited(false));
    peer.expects(send_last(1, 44).solicited());
    peer.expects(send_first(2).solicited(false));
    peer.expects(send_last_imm(3, 44, 0x11223344).solicited());
    peer.expects(write_first(4, kRemoteKey, kRemoteAddress, 300).solicited(false));
    peer.expects(write_last_imm(5, 44, 0x11223344).solicited());
    peer.expects(write_first(6, kRemoteKey, kRemoteAddress, 300).solicited(false));
    peer.expects(write_last(7, 44).solicited(false));
    for (int i = 0; i < 4; ++i) peer.completes();
}

TEST_F(UcRequester, C9_178_a_message_up_to_the_mtu_is_one_packet) {
    ROWS("C9-178", "C9-179");
    connect();
    for (const std::uint32_t length : {0U, 1U, 256U, 512U}) peer.posts(WorkOpcode::kSend, length);
    peer.expects(send_only(0, 0));
    peer.expects(send_only(1, 1).pad(3));
    peer.expects(send_only(2, 256));
    peer.expects(send_first(3));
    peer.expects(send_last(4, 256));
    for (int i = 0; i < 4; ++i) peer.completes();
}

TEST_F(UcRequester, C9_175_psns_rise_by_one_and_wrap) {
    ROWS("C9-175", "C9-172", "C9-173");
    connect();
    peer.posts(WorkOpcode::kRdmaWrite, 40 * kMtu);
    const std::vector<Carried> heard = peer.hears_all();
    ASSERT_EQ(heard.size(), 40U);
    for (std::size_t i = 0; i < heard.size(); ++i)
        EXPECT_EQ(heard[i].packet.bth.psn, (kStartPsn + i) & 0xFFFFFF);
    peer.completes();
}

TEST_F(UcRequester, C9_173_the_first_psn_is_that_of_the_client) {
    ROWS("C9-173");
    for (const std::uint32_t first : {0U, 1U, 0x123456U, 0xFFFFFFU}) {
        Peer one_peer(transport::Service::kUc);
        one_peer.parameters().sq_psn = first;
        one_peer.connect();
        one_peer.posts(WorkOpcode::kSend, 300);
        EXPECT_EQ(one_peer.hears().packet.bth.psn, first);
        EXPECT_EQ(one_peer.hears().packet.bth.psn, (first + 1) & 0xFFFFFF);
        one_peer.completes();
        one_peer.ends();
    }
}

TEST_F(UcRequester, C9_174_the_psn_stands_still_until_the_queue_may_send) {
    ROWS("C9-174");
    connect(QpState::kRtr);
    peer.posts(WorkOpcode::kSend, 10);
    peer.expects_nothing();
    peer.moves_to(QpState::kRts);
    peer.expects(send_only(0, 10));
    peer.completes();
    EXPECT_EQ(peer.machine().qp->send_psn(), Wire::psn(1));
}

TEST_F(UcRequester, C9_180_a_local_error_ends_the_request_and_stops_the_queue) {
    ROWS("C9-180", "C9-209", "C9-211.1.1", "C9-214");
    connect();
    peer.posts(WorkOpcode::kSend, 10);
    Work bad = peer.work(WorkOpcode::kSend, 300);
    bad.entries[0].lkey = 0xBAD00;
    peer.posts(bad);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(send_only(0, 10));
    peer.expects_nothing();
    peer.completes();
    peer.completes(Status::kLocalProtection);
    peer.completes(Status::kFlushed);
    EXPECT_EQ(peer.state(), QpState::kSqe);
    peer.moves_to(QpState::kRts);  // the way out of SQE
    peer.posts(WorkOpcode::kSend, 10);
    peer.expects(send_only(1, 10));
    peer.completes();
}

TEST_F(UcRequester, C9_180_a_message_that_fails_while_the_queue_drains_stops_it) {
    ROWS("C9-180", "C9-209", "C9-214");
    connect();
    memory::RegionInit init = peer.machine().region->init();
    memory::Region* region = peer.machine().keys().add_region(std::move(init));
    Work work = peer.work(WorkOpcode::kSend, 600);
    work.entries[0].lkey = region->key();
    peer.hold();
    peer.posts(work);
    peer.posts(WorkOpcode::kSend, 10);
    peer.step(1);
    peer.expects(send_first(0));
    peer.moves_to(QpState::kSqd, true);
    peer.machine().keys().remove_region(region);
    peer.release();
    peer.completes(Status::kLocalProtection);
    peer.completes(Status::kFlushed);
    EXPECT_EQ(peer.state(), QpState::kSqe);
}

TEST_F(UcRequester, C9_211_1_1_what_uc_does_not_have_is_a_local_operation_error) {
    ROWS("C9-211.1.1");
    for (const WorkOpcode opcode : {WorkOpcode::kRdmaRead, WorkOpcode::kFetchAdd, WorkOpcode::kCompareSwap,
                                    WorkOpcode::kSendWithInvalidate, WorkOpcode::kAtomicWrite}) {
        Peer one_peer(transport::Service::kUc);
        one_peer.connect();
        one_peer.posts(opcode, 8);
        one_peer.expects_nothing();
        one_peer.completes(Status::kLocalQpOperation);
        EXPECT_EQ(one_peer.state(), QpState::kSqe);
        one_peer.ends();
    }
}

TEST_F(UcRequester, C9_218_a_completion_queue_without_room_puts_the_qp_into_error) {
    ROWS("C9-218");
    connect();
    peer.machine().queue_full = true;
    peer.posts(WorkOpcode::kSend, 10);
    peer.expects(send_only(0, 10));
    peer.raises(QpEvent::kFatal);
    EXPECT_EQ(peer.state(), QpState::kError);
}

}  // namespace
}  // namespace uib::conformance
