// Packet scripts for the RC responder: order, duplicates, acknowledges, READ responses, atomics.
#include "tests/unit/transport/rc_responder_script.h"

namespace uib::transport::testing {
namespace {

TEST_F(RcResponderScript, gap_is_naked_once_until_the_expected_packet_comes) {
    b.post_receive(1, 0, 100);
    b.post_receive(2, 0, 100);
    in(Operation::kSendOnly, 1, 10, true);
    in(Operation::kSendOnly, 2, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(last[0].packet.aeth.syndrome, kNakSequence);
    in(Operation::kSendOnly, 1, 10, true);
    EXPECT_EQ(reply(), Reply{});
    EXPECT_TRUE(b.receives.empty());
    in(Operation::kSendOnly, 0, 10, true);
    in(Operation::kSendOnly, 1, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 1}}));
    EXPECT_EQ(b.receives.size(), 2U);
    in(Operation::kSendOnly, 5, 10, true);  // a new gap, a new NAK
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 2}}));
}

TEST_F(RcResponderScript, rnr_nak_names_the_packet_and_the_timer) {
    in(Operation::kSendOnly, 0, 10, true);
    in(Operation::kSendOnly, 1, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(last[0].packet.aeth.syndrome, kRnrNak | 12);
    b.post_receive(1, 0, 100);
    in(Operation::kSendOnly, 0, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(last[0].packet.aeth.msn, 1U);
    EXPECT_EQ(b.count().rnr_naks_sent, 1U);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(RcResponderScript, write_with_immediate_is_not_executed_without_a_receive) {
    b.deliver(write(Operation::kWriteOnlyImmediate, 0, 10, 10, true));
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(last[0].packet.aeth.syndrome, kRnrNak | 12);
    EXPECT_EQ(*b.at(0), std::byte{0});
}

TEST_F(RcResponderScript, no_ack_without_request_for_it) {
    b.deliver(write(Operation::kWriteOnly, 0, 10, 10, false));
    EXPECT_EQ(reply(), Reply{});
    b.deliver(write(Operation::kWriteFirst, 1, 256, 300, false));
    b.deliver(write(Operation::kWriteLast, 2, 44, 300, true));
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 2}}));
}

TEST_F(RcResponderScript, read_response_is_cut_into_packets_with_aeth_first_and_last) {
    b.fill(0, 700, 3);
    b.deliver(read(0, 0, 700));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseFirst, 0},
                              {Operation::kReadResponseMiddle, 1},
                              {Operation::kReadResponseLast, 2}}));
    EXPECT_EQ(last[0].payload.size(), 256U);
    EXPECT_EQ(last[2].payload.size(), 188U);
    EXPECT_EQ(last[2].packet.aeth.msn, 1U);
    b.deliver(read(3, 0, 0));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 3}}));
    EXPECT_EQ(b.qp->receive_psn(), kPsn + 4);
}

TEST_F(RcResponderScript, ack_of_a_later_send_follows_the_read_response) {
    b.post_receive(1, 1000, 100);
    b.deliver(read(0, 0, 700));
    in(Operation::kSendOnly, 3, 10, true);
    b.room = 2;
    b.qp->run(100);
    b.room = 100;
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseFirst, 0},
                              {Operation::kReadResponseMiddle, 1},
                              {Operation::kReadResponseLast, 2},
                              {Operation::kAcknowledge, 3}}));
}

TEST_F(RcResponderScript, atomic_sees_earlier_writes) {
    const std::uint64_t word = 77;
    net::Packet packet = write(Operation::kWriteOnly, 0, 8, 8);
    packet.payload = std::as_bytes(std::span(&word, 1));
    b.deliver(packet);
    b.deliver(add(1, 0, 1));
    reply();
    EXPECT_EQ(last[0].packet.atomic_original, 77U);
}

// Also where writes wait to be carried to memory at the end of the turn.
TEST(RcResponderTurn, atomic_sees_the_writes_of_its_turn) {
    ResponderScript script(Service::kRc, false);
    const std::uint64_t word = 77;
    net::Packet packet = script.write(Operation::kWriteOnly, 0, 8, 8);
    packet.payload = std::as_bytes(std::span(&word, 1));
    script.b.qp->on_packet(packet);
    script.b.qp->on_packet(script.add(1, 0, 1));
    script.reply();
    EXPECT_EQ(script.last.at(0).packet.atomic_original, 77U);
    EXPECT_EQ(script.word(0), 78U);
}

TEST_F(RcResponderScript, solicited_bit_is_told) {
    b.post_receive(1, 0, 100);
    net::Packet packet = packet_for(b, Operation::kSendOnly, kPsn, std::span(data).first(4));
    packet.bth.solicited = true;
    b.deliver(packet);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].flags, ipc::kCqeReceive | ipc::kCqeSolicited);
}

TEST_F(RcResponderScript, wrong_address_service_key_or_state_is_dropped_and_counted) {
    b.post_receive(1, 0, 100);
    net::Packet packet = packet_for(b, Operation::kSendOnly, kPsn, std::span(data).first(4));
    packet.lrh.slid ^= 0x100;
    b.deliver(packet);
    packet = packet_for(b, Operation::kSendOnly, kPsn);
    packet.has_grh = true;
    b.deliver(packet);
    EXPECT_EQ(b.count().dropped_lid, 1U);
    EXPECT_EQ(b.count().dropped_grh, 1U);
    packet = packet_for(b, Operation::kSendOnly, kPsn);
    packet.bth.pkey = 0x8001;
    b.deliver(packet);
    EXPECT_EQ(b.count().dropped_pkey, 1U);
    packet = packet_for(b, Operation::kSendOnly, kPsn);
    packet.bth.opcode = net::opcode(net::Service::kUc, Operation::kSendOnly);
    b.deliver(packet);
    EXPECT_EQ(b.count().dropped_service, 1U);
    Station fresh(Service::kRc, 0x12);
    fresh.connect(0x11, QpState::kInit);
    fresh.deliver(packet_for(fresh, Operation::kSendOnly, kPsn));
    EXPECT_EQ(fresh.count().dropped_state, 1U);
    EXPECT_TRUE(b.receives.empty());
    EXPECT_EQ(reply(), Reply{});
    packet = packet_for(b, Operation::kSendOnly, kPsn);
    packet.bth.pkey = 0x7FFF;  // limited member of the same partition
    b.deliver(packet);
    EXPECT_EQ(b.receives.size(), 1U);
}

TEST_F(RcResponderScript, global_path_wants_its_gids) {
    Station global(Service::kRc, 0x12);
    net::Grh& grh = global.parameters.path.grh;
    global.parameters.path.global = true;
    grh.sgid = {0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xB};
    grh.dgid = {0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xA};
    global.connect(0x11);
    for (unsigned i = 0; i < 4; ++i) global.post_receive(i, 0, 10);
    net::Packet packet = packet_for(global, Operation::kSendOnly, kPsn);
    global.deliver(packet);  // no GRH
    packet.has_grh = true;
    packet.grh.sgid = grh.dgid;
    packet.grh.dgid = grh.dgid;
    global.deliver(packet);  // for somebody else
    EXPECT_EQ(global.count().dropped_grh, 1U);
    EXPECT_EQ(global.count().dropped_gid, 1U);
    packet.grh.dgid = grh.sgid;
    packet.lrh.slid = 0x77;  // not checked with a GRH
    global.deliver(packet);
    packet.bth.psn = kPsn + 1;
    packet.grh.dgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xB};
    global.deliver(packet);
    EXPECT_EQ(global.receives.size(), 2U);
}

TEST_F(RcResponderScript, first_packet_in_rtr_raises_one_event) {
    Station fresh(Service::kRc, 0x12);
    fresh.connect(0x11, QpState::kRtr);
    fresh.post_receive(1, 0, 10);
    fresh.post_receive(2, 0, 10);
    fresh.deliver(packet_for(fresh, Operation::kSendOnly, kPsn));
    fresh.deliver(packet_for(fresh, Operation::kSendOnly, kPsn + 1));
    EXPECT_EQ(fresh.events, std::vector<QpEvent>{QpEvent::kCommunicationEstablished});
    EXPECT_EQ(fresh.receives.size(), 2U);
    fresh.qp->apply(QpState::kReset, fresh.parameters, false);
    fresh.connect(0x11, QpState::kRtr);
    fresh.post_receive(3, 0, 10);
    fresh.deliver(packet_for(fresh, Operation::kSendOnly, kPsn));
    EXPECT_EQ(fresh.events.size(), 2U);  // the next connection has its own
}

}  // namespace
}  // namespace uib::transport::testing
