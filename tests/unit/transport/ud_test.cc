// UD: addresses, keys, the 40 bytes in front, one packet a message (IBA 9.8.3).
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

struct Ud : ::testing::Test {
    Ud() : a(Service::kUd, 0x11), b(Service::kUd, 0x12) {
        a.parameters.path.grh.sgid[15] = 0xA;
        a.connect(0x12);
        b.connect(0x11);
    }
    Work datagram(std::uint32_t length) {
        Work work;
        if (length > 0) work.entries = {a.entry(0, length)};
        work.remote_qpn = 0x12;
        work.remote_qkey = 0x1234;
        work.address_vector.dlid = 0x12;
        work.address_vector.sl = 3;
        return work;
    }
    void carry() {
        a.run();
        for (const SentPacket& sent : a.take_out()) b.deliver(sent.whole());
    }
    Station a;
    Station b;
};

TEST_F(Ud, payload_lies_behind_forty_bytes) {
    a.fill(0, 100, 1);
    std::memset(b.at(0), 0xCC, 200);
    b.post_receive(1, 0, 140);
    a.post(datagram(100));
    carry();
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].byte_len, 140U);
    EXPECT_EQ(b.receives[0].flags, ipc::kCqeReceive);
    EXPECT_EQ(b.receives[0].source_qp, 0x11U);
    EXPECT_EQ(b.receives[0].slid, 0x11U);
    EXPECT_EQ(b.receives[0].sl, 3U);
    EXPECT_TRUE(b.holds(40, 100, 1));
    EXPECT_EQ(*b.at(39), std::byte{0xCC});
    EXPECT_EQ(*b.at(140), std::byte{0xCC});
    EXPECT_EQ(a.sends.size(), 1U);
}

TEST_F(Ud, grh_is_given_to_the_client) {
    for (const bool inline_receives : {false, true}) {
        b.receive_queue.inline_receives = inline_receives;
        b.receives.clear();
        b.post_receive(1, 0, 1000);
        Work work = datagram(20);
        work.address_vector.is_global = 1;
        work.address_vector.dgid[15] = 0xB;
        work.address_vector.hop_limit = 9;
        a.post(work);
        carry();
        ASSERT_EQ(b.receives.size(), 1U);
        EXPECT_TRUE((b.receives[0].flags & ipc::kCqeGrh) != 0);
        EXPECT_EQ((b.receives[0].flags & ipc::kCqeInline) != 0, inline_receives);
        const std::byte* grh = inline_receives ? b.receive_queue.areas.back().data() : b.at(0);
        EXPECT_EQ(grh[0], std::byte{0x60});
        EXPECT_EQ(grh[7], std::byte{9});
        EXPECT_EQ(grh[23], std::byte{0xA});
        EXPECT_EQ(grh[39], std::byte{0xB});
        EXPECT_EQ(std::memcmp(grh + 40, a.at(0), 20), 0);
    }
}

TEST_F(Ud, buffer_must_hold_the_forty_bytes_too) {
    b.post_receive(1, 0, 49);
    a.post(datagram(10));
    carry();
    EXPECT_TRUE(b.receives.empty());
    EXPECT_EQ(b.count().dropped_length, 1U);
    a.post(datagram(9));  // the same receive serves it
    carry();
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].byte_len, 49U);
}

TEST_F(Ud, longer_than_the_mtu_is_a_length_error) {
    a.post(datagram(256));
    a.post(datagram(257));
    a.post(datagram(1));
    a.run();
    EXPECT_EQ(a.out.size(), 1U);
    ASSERT_EQ(a.sends.size(), 3U);
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);
    EXPECT_EQ(a.sends[1].status, Status::kLocalLength);
    EXPECT_EQ(a.sends[2].status, Status::kFlushed);
    EXPECT_EQ(a.qp->state(), QpState::kSqe);
}

TEST_F(Ud, after_the_send_queue_error_state_only_new_requests_are_sent) {
    a.post(datagram(257));
    a.run();
    a.post(datagram(1));
    a.run();
    ASSERT_EQ(a.sends.size(), 2U);
    EXPECT_EQ(a.sends[1].status, Status::kFlushed);
    a.qp->apply(QpState::kRts, a.parameters, false);
    EXPECT_FALSE(a.qp->wants_run());
    a.post(datagram(2));
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_EQ(a.out[0].payload.size(), 2U);
}

TEST_F(Ud, controlled_qkey_stands_for_that_of_the_queue_pair) {
    Work work = datagram(1);
    work.remote_qkey = 0x80000000;
    a.post(work);
    work.remote_qkey = 0x55;
    a.post(work);
    a.run();
    ASSERT_EQ(a.out.size(), 2U);
    EXPECT_EQ(a.out[0].packet.deth.qkey, 0x1234U);
    EXPECT_EQ(a.out[1].packet.deth.qkey, 0x55U);
    EXPECT_EQ(a.out[1].psn(), a.out[0].psn() + 1);
}

TEST_F(Ud, wrong_keys_and_no_receive_are_dropped_and_counted) {
    Work work = datagram(1);
    work.remote_qkey = 0x55;
    b.post_receive(1, 0, 100);
    a.post(work);
    carry();
    EXPECT_EQ(b.count().dropped_qkey, 1U);
    net::Packet packet = packet_for(b, Operation::kSendOnly, 0);
    packet.bth.pkey = 0x8003;
    b.deliver(packet);
    EXPECT_EQ(b.count().dropped_pkey, 1U);
    a.post(datagram(1));
    a.post(datagram(1));
    carry();
    EXPECT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.count().dropped_no_receive, 1U);
}

TEST_F(Ud, immediate_and_multicast) {
    b.post_receive(1, 0, 100);
    Work work = datagram(1);
    work.opcode = WorkOpcode::kSendWithImmediate;
    work.immediate = 0x99;
    work.remote_qpn = net::kMulticastQp;
    work.address_vector.dlid = 0xC001;
    work.address_vector.is_global = 1;
    work.address_vector.dgid[0] = 0xFF;
    a.post(work);
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_EQ(a.out[0].packet.bth.dest_qp, net::kMulticastQp);
    EXPECT_EQ(a.out[0].packet.lrh.dlid, 0xC001);
    b.deliver(a.out[0].whole());
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].immediate, 0x99U);
    EXPECT_EQ(b.receives[0].dlid_path_bits, 0);
}

}  // namespace
}  // namespace uib::transport::testing
