// The responder of unreliable datagrams (IBA 9.8.3.2, Figure 114; classes A, D, E, G).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint32_t kSender = 0x77;

class Ud : public UdResponder {
  protected:
    static Frame datagram(int psn, std::size_t length) {
        return Frame(Op::kSendOnly, psn, length).deth(kQkey, kSender);
    }
    void dropped(const Frame& frame, Where where = Where::current()) {
        peer.sends(frame);
        peer.expects_nothing(where);
        peer.receives_nothing(where);
        peer.raises_nothing(where);
    }
};

TEST_F(Ud, o9_144_datagrams_of_any_psn_are_delivered) {
    ROWS("o9-144", "C9-201", "C9-169");
    connect();
    std::uint64_t wr_id = 0;
    for (const int psn : {0, 1, 500, -3, 500, 2}) {
        peer.posts_receive(wr_id, 0, 1000);
        peer.sends(datagram(psn, 100).bytes(4).solicited());
        const Completion done = peer.receives(wr_id++);
        EXPECT_EQ(done.byte_len, 140U);
        EXPECT_EQ(done.source_qp, kSender);
        EXPECT_EQ(done.slid, kPeerQp);
        EXPECT_NE(done.flags & ipc::kCqeSolicited, 0);
        EXPECT_TRUE(peer.machine().holds(40, 100, 4));
    }
    peer.posts_receive(9, 0, 1000);
    peer.sends(Frame(Op::kSendOnlyImmediate, 3, 4).immediate(0xABCD).deth(kQkey, kSender));
    EXPECT_EQ(peer.receives(9).immediate, 0xABCDU);
    peer.expects_nothing();
}

// What tells a datagram's addresses to the client: SrcQP, SLID, SL and which of the port's LIDs it came to.
TEST_F(Ud, C9_201_the_completion_tells_where_a_datagram_came_from) {
    ROWS("C9-201");
    connect();
    const std::pair<net::Lid, std::uint8_t> ways[] = {
        {kMachineQp, 0}, {kMachineQp + 2, 2}, {kMachineQp + 6, 6}, {0xC012, 0}};
    std::uint64_t wr_id = 0;
    for (const auto& [lid, path_bits] : ways) {
        peer.posts_receive(wr_id, 0, 1000);
        peer.sends(datagram(0, 10).with([to = lid](net::Packet& packet) {
            packet.lrh.dlid = to;
            packet.lrh.slid = 0x321;
            packet.lrh.sl = 5;
        }));
        const Completion done = peer.receives(wr_id++);
        EXPECT_EQ(done.dlid_path_bits, path_bits);
        EXPECT_EQ(done.slid, 0x321);
        EXPECT_EQ(done.sl, 5);
        EXPECT_EQ(done.source_qp, kSender);
    }
}

TEST_F(Ud, C9_205_what_does_not_fit_is_dropped) {
    ROWS("C9-205", "C9-165", "C9-201", "C9-202");
    connect();
    peer.posts_receive(0, 0, 139);
    dropped(datagram(0, 100));  // with the 40 bytes of the GRH's place
    peer.sends(datagram(0, 99));
    EXPECT_EQ(peer.receives(0).byte_len, 139U);
    peer.posts_receive(1, 0, 296);
    peer.sends(datagram(0, 256));
    EXPECT_EQ(peer.receives(1).byte_len, 296U);
    peer.posts_receive(2, 0, 1000);
    dropped(datagram(0, 257));  // more than the MTU
    dropped(datagram(0, 300));
    peer.sends(datagram(0, 0));
    EXPECT_EQ(peer.receives(2).byte_len, 40U);
}

TEST_F(Ud, C9_206_other_opcodes_are_dropped) {
    ROWS("C9-206", "C9-168", "C9-165");
    connect();
    peer.posts_receive(0, 0, 1000);
    for (std::uint8_t operation = 0; operation < 32; ++operation) {
        if (operation == 4 || operation == 5) continue;
        dropped(datagram(0, 100).bits(Part::kBth, 0, operation, 0x1F));
    }
    peer.sends(datagram(0, 10));
    peer.receives(0);
}

TEST_F(Ud, C9_207_without_a_receive_a_datagram_is_dropped) {
    ROWS("C9-207", "C9-169");
    connect();
    dropped(datagram(0, 10));
    peer.posts_receive(0, 0, 100);
    peer.receives_nothing();
    peer.sends(datagram(1, 10));
    peer.receives(0);
}

TEST_F(Ud, C9_171_the_first_check_in_the_order_of_the_figure_decides) {
    ROWS("C9-171", "C9-165");
    connect();
    // A receive at fault would stop the QP: nothing that is dropped before may take it.
    peer.machine().receive_queue.posted.push_back({7, {peer.machine().entry(0, 10)}, true});
    dropped(Frame(Op::kSendOnly, 0, 10).deth(kQkey + 1, kSender));
    dropped(datagram(0, 10).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    dropped(datagram(0, 10).bits(Part::kBth, 0, 0x06, 0x1F));
    dropped(datagram(0, 300));
    EXPECT_EQ(peer.state(), QpState::kRts);
}

TEST_F(Ud, C9_220_a_receive_at_fault_puts_the_qp_into_error) {
    ROWS("C9-220", "C9-202", "C9-219.1.1");
    for (const bool malformed : {true, false}) {
        Peer one_peer(transport::Service::kUd);
        one_peer.connect();
        ipc::ScatterGatherEntry entry = one_peer.machine().entry(0, 100);
        if (!malformed) entry.lkey = 0xBAD00;
        one_peer.machine().receive_queue.posted.push_back({7, {entry}, malformed});
        one_peer.sends(datagram(0, 10));
        one_peer.receives(7, malformed ? Status::kLocalQpOperation : Status::kLocalProtection);
        one_peer.expects_nothing();
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.ends();
    }
}

TEST_F(Ud, C9_225_a_completion_queue_without_room_puts_the_qp_into_error) {
    ROWS("C9-225", "C9-202");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.machine().queue_full = true;
    peer.sends(datagram(0, 10));
    peer.raises(QpEvent::kFatal);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_F(Ud, o9_161_2_1_on_an_srq_a_datagram_that_does_not_fit_ends_its_receive) {
    ROWS("o9-161.2.1", "C9-219.1.1");
    peer.machine().receive_queue.is_shared = true;
    connect();
    peer.posts_receive(0, 0, 100);
    peer.posts_receive(1, 0, 200);
    peer.posts_receive(2, 0, 200);
    peer.sends(datagram(0, 100));
    peer.receives(0, Status::kLocalLength);
    EXPECT_EQ(peer.state(), QpState::kRts);
    peer.sends(datagram(1, 100));
    peer.receives(1);
    EXPECT_EQ(peer.machine().receive_queue.available(), 1U);
}

}  // namespace
}  // namespace uib::conformance
