// Responder refusals of RC: the NAK, the receive's status, the event, the state (IBA 9.9.3, Tables 61 and
// 62).
#include <gtest/gtest.h>

#include "engine/transport/aeth.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using net::Operation;

struct RcRefusal : ::testing::Test {
    static constexpr std::uint32_t kPsn = 0x1100;
    RcRefusal() : b(Service::kRc, 0x12) {}
    net::Packet make(Operation operation, std::uint32_t psn, std::size_t length) {
        net::Packet packet = packet_for(b, operation, kPsn + psn, std::span(data).first(length), true);
        if (net::is_atomic(operation)) {
            packet.atomic = {Station::kBase, b.region->key(), 1, 0};
        } else {
            packet.reth = {Station::kBase, b.region->key(), static_cast<std::uint32_t>(length)};
        }
        return packet;
    }
    /// The last packet sent must be this NAK, and the QP in error.
    void expect_nak(std::uint8_t syndrome, std::uint32_t psn) {
        b.run();
        ASSERT_FALSE(b.out.empty());
        EXPECT_EQ(b.out.back().operation(), Operation::kAcknowledge);
        EXPECT_EQ(b.out.back().packet.aeth.syndrome, syndrome);
        EXPECT_EQ(b.out.back().psn(), kPsn + psn);
        EXPECT_EQ(b.qp->state(), QpState::kError);
    }
    Station b;
    std::vector<std::byte> data = std::vector<std::byte>(5000, std::byte{1});
};

TEST_F(RcRefusal, opcode_sequence) {
    for (const Operation operation :
         {Operation::kSendMiddle, Operation::kSendLast, Operation::kWriteLast, Operation::kResync}) {
        Station fresh(Service::kRc, 0x12);
        fresh.connect(0x11);
        fresh.deliver(packet_for(fresh, operation, kPsn, std::span(data).first(256)));
        fresh.run();
        ASSERT_EQ(fresh.out.size(), 1U);
        EXPECT_EQ(fresh.out[0].packet.aeth.syndrome, kNakInvalidRequest);
        EXPECT_EQ(fresh.events, std::vector<QpEvent>{QpEvent::kRequestError});
    }
    b.connect(0x11);
    b.post_receive(1, 0, 1000);
    b.post_receive(2, 0, 1000);
    b.deliver(make(Operation::kSendFirst, 0, 256));
    b.deliver(make(Operation::kWriteOnly, 1, 10));
    expect_nak(kNakInvalidRequest, 1);
    ASSERT_EQ(b.receives.size(), 2U);
    EXPECT_EQ(b.receives[0].status, Status::kRemoteInvalidRequest);
    EXPECT_EQ(b.receives[1].status, Status::kFlushed);
    EXPECT_TRUE(b.events.empty());
}

TEST_F(RcRefusal, send_longer_than_its_receive) {
    b.connect(0x11);
    b.post_receive(1, 0, 255);
    b.deliver(make(Operation::kSendOnly, 0, 256));
    expect_nak(kNakInvalidRequest, 0);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].status, Status::kLocalLength);
}

TEST_F(RcRefusal, receive_buffer_with_a_bad_key) {
    b.connect(0x11);
    b.post_receive(1, 0, 255);
    b.receive_queue.posted[0].entries[0].lkey ^= 1;
    b.deliver(make(Operation::kSendOnly, 0, 10));
    expect_nak(kNakRemoteOperation, 0);
    EXPECT_EQ(b.receives.at(0).status, Status::kLocalProtection);
}

TEST_F(RcRefusal, malformed_receive) {
    b.connect(0x11);
    b.post_receive(1, 0, 255);
    b.receive_queue.posted[0].malformed = true;
    b.deliver(make(Operation::kSendOnly, 0, 10));
    expect_nak(kNakRemoteOperation, 0);
    EXPECT_EQ(b.receives.at(0).status, Status::kLocalQpOperation);
}

TEST_F(RcRefusal, wrong_remote_key) {
    b.connect(0x11);
    net::Packet packet = make(Operation::kWriteOnly, 0, 10);
    packet.reth.rkey ^= 1;
    b.deliver(packet);
    expect_nak(kNakRemoteAccess, 0);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kAccessError});
}

TEST_F(RcRefusal, write_with_immediate_and_wrong_key_costs_the_receive) {
    b.connect(0x11);
    b.post_receive(1, 0, 255);
    net::Packet packet = make(Operation::kWriteOnlyImmediate, 0, 10);
    packet.reth.rkey ^= 1;
    b.deliver(packet);
    expect_nak(kNakRemoteAccess, 0);
    EXPECT_EQ(b.receives.at(0).status, Status::kLocalAccess);
    EXPECT_TRUE(b.events.empty());
}

TEST_F(RcRefusal, write_beyond_its_region_leaves_no_byte) {
    b.connect(0x11);
    net::Packet packet = make(Operation::kWriteFirst, 0, 256);
    packet.reth.address = Station::kBase + Station::kMemory - 300;
    packet.reth.dma_length = 301;
    b.deliver(packet);
    expect_nak(kNakRemoteAccess, 0);
    EXPECT_EQ(*b.at(Station::kMemory - 300), std::byte{0});
}

TEST_F(RcRefusal, zero_length_never_checks_the_key) {
    b.connect(0x11);
    b.post_receive(1, 0, 0);
    net::Packet packet = make(Operation::kWriteOnlyImmediate, 0, 0);
    packet.reth.rkey = 0xDEAD;
    b.deliver(packet);
    packet = make(Operation::kReadRequest, 1, 0);
    packet.reth.rkey = 0xDEAD;
    b.deliver(packet);
    EXPECT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(RcRefusal, function_that_the_queue_pair_does_not_allow) {
    for (const Operation operation : {Operation::kWriteOnly, Operation::kReadRequest, Operation::kFetchAdd}) {
        Station fresh(Service::kRc, 0x12);
        fresh.parameters.access = 0;
        fresh.connect(0x11);
        fresh.deliver(packet_for(fresh, operation, kPsn));
        fresh.run();
        ASSERT_EQ(fresh.out.size(), 1U);
        EXPECT_EQ(fresh.out[0].packet.aeth.syndrome, kNakInvalidRequest);
        EXPECT_EQ(fresh.events, std::vector<QpEvent>{QpEvent::kRequestError});
    }
}

TEST_F(RcRefusal, lengths_against_opcode_and_reth) {
    struct Case {
        Operation operation;
        std::size_t length;
        std::uint32_t total;
    };
    const Case cases[] = {{Operation::kWriteFirst, 255, 1000}, {Operation::kWriteOnly, 257, 257},
                          {Operation::kWriteOnly, 10, 11},     {Operation::kWriteFirst, 256, 100},
                          {Operation::kSendFirst, 100, 0},     {Operation::kReadRequest, 0, 0x80000001}};
    for (const Case& one : cases) {
        Station fresh(Service::kRc, 0x12);
        fresh.connect(0x11);
        fresh.post_receive(1, 0, 1000);
        net::Packet packet = packet_for(fresh, one.operation, kPsn, std::span(data).first(one.length));
        packet.reth = {Station::kBase, fresh.region->key(), one.total};
        fresh.deliver(packet);
        fresh.run();
        ASSERT_EQ(fresh.out.size(), 1U);
        EXPECT_EQ(fresh.out[0].packet.aeth.syndrome, kNakInvalidRequest);
        EXPECT_EQ(fresh.qp->state(), QpState::kError);
    }
}

TEST_F(RcRefusal, misaligned_atomic) {
    b.connect(0x11);
    net::Packet packet = make(Operation::kFetchAdd, 0, 0);
    packet.atomic.address += 4;
    b.deliver(packet);
    expect_nak(kNakInvalidRequest, 0);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kAccessError});
}

TEST_F(RcRefusal, more_reads_than_negotiated) {
    b.connect(0x11);
    for (std::uint32_t i = 0; i < 5; ++i) {
        net::Packet packet = make(Operation::kReadRequest, i, 0);
        packet.reth.dma_length = 10;
        b.deliver(packet);
    }
    expect_nak(kNakInvalidRequest, 4);
    EXPECT_EQ(b.out.size(), 5U);  // the four are answered first
}

TEST_F(RcRefusal, key_that_goes_during_a_read_ends_it_with_a_nak) {
    b.connect(0x11);
    net::Packet packet = make(Operation::kReadRequest, 0, 0);
    packet.reth.dma_length = 2000;
    b.deliver(packet);
    b.room = 3;
    b.qp->run(100);
    b.mover().end_turn();
    b.keys().remove_region(b.region);
    b.room = 100;
    expect_nak(kNakRemoteAccess, 3);
    EXPECT_EQ(b.out.size(), 4U);
}

TEST_F(RcRefusal, nothing_is_taken_after_it) {
    b.connect(0x11);
    b.deliver(make(Operation::kSendLast, 0, 10));
    b.run();
    b.take_out();
    b.post_receive(1, 0, 100);
    b.deliver(make(Operation::kSendOnly, 0, 10));
    EXPECT_EQ(b.count().dropped_state, 1U);
    b.run();
    EXPECT_TRUE(b.out.empty());
    ASSERT_EQ(b.receives.size(), 1U);  // posted later, flushed
    EXPECT_EQ(b.receives[0].status, Status::kFlushed);
}

}  // namespace
}  // namespace uib::transport::testing
