// The requester of unreliable datagrams (IBA 9.8.3.1): one packet a message, addressed by the work request.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint32_t kQkey = 0x1234;

Work datagram(Peer& peer, std::uint32_t length, WorkOpcode opcode = WorkOpcode::kSend) {
    Work work = peer.work(opcode, length);
    work.remote_qpn = kPeerQp;
    work.remote_qkey = kQkey;
    work.address_vector.dlid = kPeerQp;
    return work;
}

TEST_F(UdRequester, C9_12_a_message_is_one_packet_up_to_the_mtu) {
    ROWS("C9-12", "C9-200", "C9-203", "C9-201");
    connect();
    for (const std::uint32_t length : {0U, 1U, 256U}) peer.posts(datagram(peer, length));
    peer.expects(send_only(0, 0).asks_ack(false).deth(kQkey, kMachineQp));
    peer.expects(send_only(1, 1).pad(3));
    peer.expects(send_only(2, 256));
    for (int i = 0; i < 3; ++i) peer.completes();  // without acknowledge
    peer.posts(datagram(peer, 257));
    peer.expects_nothing();
    peer.completes(Status::kLocalLength);
}

TEST_F(UdRequester, C9_2_opcodes_and_headers_are_those_of_table_38) {
    ROWS("C9-1", "C9-2", "C9-5", "C9-6", "C9-7", "C9-8");
    connect();
    peer.posts(datagram(peer, 4));
    peer.posts(datagram(peer, 4, WorkOpcode::kSendWithImmediate));
    for (const auto& [opcode, size] :
         {std::pair<std::uint8_t, std::size_t>{0x64, 8 + 12 + 8 + 4 + 4 + 2},
          std::pair<std::uint8_t, std::size_t>{0x65, 8 + 12 + 8 + 4 + 4 + 4 + 2}}) {
        const Carried heard = peer.hears();
        EXPECT_EQ(heard.byte(Part::kBth, 0), opcode);
        EXPECT_EQ(heard.byte(Part::kBth, 1) & 0x0F, 0) << "TVer";
        EXPECT_EQ(heard.byte(Part::kBth, 4), 0) << "Resv6";
        EXPECT_EQ(heard.byte(Part::kBth, 8), 0) << "AckReq, Resv7";
        EXPECT_EQ(heard.byte(Part::kExtension, 4), 0) << "DETH";
        EXPECT_EQ(heard.frame->size(), size);
        peer.completes();
    }
}

TEST_F(UdRequester, C9_3_a_datagram_has_the_solicited_bit_and_the_immediate_of_its_request) {
    ROWS("C9-3", "C9-2");
    connect();
    for (const bool solicited : {true, false}) {
        Work work = datagram(peer, 4, WorkOpcode::kSendWithImmediate);
        work.flags = static_cast<std::uint8_t>(ipc::kWorkSignaled | (solicited ? ipc::kWorkSolicited : 0));
        work.immediate = 0x11223344;
        peer.posts(work);
    }
    peer.expects(send_only_imm(0, 4, 0x11223344).solicited());
    peer.expects(send_only_imm(1, 4, 0x11223344).solicited(false));
    peer.completes();
    peer.completes();
}

TEST_F(UdRequester, C9_204_psns_rise_by_one_and_wrap) {
    ROWS("C9-204", "C9-203");
    connect();
    for (int i = 0; i < 40; ++i) peer.posts(datagram(peer, 10));
    const std::vector<Carried> heard = peer.hears_all();
    ASSERT_EQ(heard.size(), 40U);
    for (std::size_t i = 0; i < heard.size(); ++i)
        EXPECT_EQ(heard[i].packet.bth.psn, (kStartPsn + i) & 0xFFFFFF);
    for (int i = 0; i < 40; ++i) peer.completes();
}

TEST_F(UdRequester, C9_202_a_local_error_ends_the_request_and_stops_the_queue) {
    ROWS("C9-202", "C9-203", "C9-209", "C9-211.1.1", "C9-214");
    struct Case {
        Status status;
        std::function<void(Work&)> change;
    };
    const Case cases[] = {
        {Status::kLocalProtection, [](Work& work) { work.entries[0].lkey = 0xBAD00; }},
        {Status::kLocalQpOperation, [](Work& work) { work.malformed = true; }},
        {Status::kLocalQpOperation, [](Work& work) { work.opcode = WorkOpcode::kRdmaWrite; }},
        {Status::kLocalLength, [](Work& work) { work.entries[0].length = 300; }}};
    for (const Case& one : cases) {
        Peer one_peer(transport::Service::kUd);
        one_peer.connect();
        one_peer.posts(datagram(one_peer, 10));
        Work bad = datagram(one_peer, 10);
        one.change(bad);
        one_peer.posts(bad);
        one_peer.posts(datagram(one_peer, 10));
        one_peer.expects(send_only(0, 10));
        one_peer.expects_nothing();
        one_peer.completes();
        one_peer.completes(one.status);
        one_peer.completes(Status::kFlushed);
        EXPECT_EQ(one_peer.state(), QpState::kSqe);
        one_peer.moves_to(QpState::kRts);
        one_peer.posts(datagram(one_peer, 10));
        one_peer.expects(send_only(1, 10));
        one_peer.completes();
        one_peer.ends();
    }
}

TEST_F(UdRequester, C9_218_a_completion_queue_without_room_puts_the_qp_into_error) {
    ROWS("C9-218", "C9-202");
    connect();
    peer.machine().queue_full = true;
    peer.posts(datagram(peer, 10));
    peer.expects(send_only(0, 10));
    peer.raises(QpEvent::kFatal);
    EXPECT_EQ(peer.state(), QpState::kError);
}

}  // namespace
}  // namespace uib::conformance
