// Packet scripts for the RC responder: order, duplicates, acknowledges, READ responses, atomics.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/transport/aeth.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using net::Operation;

struct RcResponderScript : ::testing::Test {
    static constexpr std::uint32_t kPsn = 0x1100;
    RcResponderScript() : b(Service::kRc, 0x12) { b.connect(0x11); }
    void in(Operation operation, std::uint32_t psn, std::size_t length = 0, bool ack = false) {
        b.deliver(packet_for(b, operation, kPsn + psn, std::span(data).first(length), ack));
    }
    net::Packet write(Operation operation, std::uint32_t psn, std::size_t length, std::uint32_t total,
                      bool ack = false) {
        net::Packet packet = packet_for(b, operation, kPsn + psn, std::span(data).first(length), ack);
        packet.reth = {Station::kBase, b.region->key(), total};
        return packet;
    }
    net::Packet read(std::uint32_t psn, std::uint64_t offset, std::uint32_t length) {
        net::Packet packet = packet_for(b, Operation::kReadRequest, kPsn + psn);
        packet.reth = {Station::kBase + offset, b.region->key(), length};
        return packet;
    }
    net::Packet add(std::uint32_t psn, std::uint64_t offset, std::uint64_t value) {
        net::Packet packet = packet_for(b, Operation::kFetchAdd, kPsn + psn);
        packet.atomic = {Station::kBase + offset, b.region->key(), value, 0};
        return packet;
    }
    /// What goes out now, as (operation, relative PSN).
    std::vector<std::pair<Operation, std::uint32_t>> reply() {
        b.run();
        last = b.take_out();
        std::vector<std::pair<Operation, std::uint32_t>> list;
        for (const SentPacket& sent : last)
            list.emplace_back(sent.operation(), (sent.psn() - kPsn) & 0xFFFFFF);
        return list;
    }
    Station b;
    std::vector<std::byte> data = std::vector<std::byte>(5000, std::byte{0x5A});
    std::vector<SentPacket> last;
};
using Reply = std::vector<std::pair<Operation, std::uint32_t>>;

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

TEST_F(RcResponderScript, duplicates_are_acknowledged_and_not_executed) {
    b.post_receive(1, 0, 100);
    b.post_receive(2, 0, 100);
    in(Operation::kSendOnly, 0, 10, true);
    b.deliver(write(Operation::kWriteOnly, 1, 10, 10, true));
    reply();
    std::memset(b.at(0), 0, 20);
    in(Operation::kSendOnly, 0, 10, true);
    b.deliver(write(Operation::kWriteOnly, 1, 10, 10, true));
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 1}}));
    EXPECT_EQ(last[0].packet.aeth.msn, 2U);
    EXPECT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(*b.at(0), std::byte{0});
    EXPECT_EQ(b.count().duplicate_requests, 2U);
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

TEST_F(RcResponderScript, duplicate_read_may_ask_for_a_part) {
    b.fill(0, 1000, 3);
    b.deliver(read(0, 0, 1000));
    reply();
    b.deliver(read(2, 512, 488));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseFirst, 2}, {Operation::kReadResponseLast, 3}}));
    EXPECT_EQ(std::memcmp(last[0].payload.data(), b.at(512), 256), 0);
    EXPECT_EQ(last[1].packet.aeth.msn, 1U);
    b.deliver(read(1, 0, 488));  // not the bytes of the original
    EXPECT_EQ(reply(), Reply{});
    b.deliver(read(2, 512, 600));  // beyond it
    EXPECT_EQ(reply(), Reply{});
    EXPECT_EQ(b.qp->receive_psn(), kPsn + 4);
}

TEST_F(RcResponderScript, earlier_duplicate_is_answered_first) {
    b.deliver(read(0, 0, 10));
    b.deliver(read(1, 20, 10));
    b.deliver(add(2, 1024, 1));
    reply();
    b.deliver(add(2, 1024, 1));
    b.deliver(read(0, 0, 10));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 0}, {Operation::kAtomicAcknowledge, 2}}));
}

TEST_F(RcResponderScript, duplicate_atomic_returns_the_saved_result) {
    b.deliver(add(0, 1024, 5));
    reply();
    EXPECT_EQ(last[0].packet.atomic_original, 0U);
    b.deliver(add(1, 1024, 5));
    reply();
    EXPECT_EQ(last[0].packet.atomic_original, 5U);
    b.deliver(add(0, 1024, 5));
    EXPECT_EQ(reply(), (Reply{{Operation::kAtomicAcknowledge, 0}}));
    EXPECT_EQ(last[0].packet.atomic_original, 0U);
    std::uint64_t word = 0;
    std::memcpy(&word, b.at(1024), sizeof word);
    EXPECT_EQ(word, 10U);
}

TEST_F(RcResponderScript, saved_results_are_as_many_as_negotiated) {
    for (std::uint32_t i = 0; i < 5; ++i) {
        b.deliver(add(i, 1024, 1));
        reply();
    }
    b.deliver(add(0, 1024, 1));  // the oldest of five with four places
    EXPECT_EQ(reply(), Reply{});
    b.deliver(add(1, 1024, 1));
    EXPECT_EQ(reply(), (Reply{{Operation::kAtomicAcknowledge, 1}}));
    EXPECT_EQ(last[0].packet.atomic_original, 1U);
}

TEST_F(RcResponderScript, duplicate_send_before_an_unanswered_read_does_not_acknowledge_the_read) {
    b.post_receive(1, 1000, 100);
    in(Operation::kSendOnly, 0, 10, true);
    b.deliver(read(1, 0, 10));
    reply();
    in(Operation::kSendOnly, 0, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
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
}

}  // namespace
}  // namespace uib::transport::testing
