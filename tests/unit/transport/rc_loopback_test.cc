// RC end to end over a wire without loss: every operation, message sizes at the edges of the MTU, PSN wrap,
// bursts of every size, memory that is lent and memory that is copied.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

struct RcLoopback : ::testing::TestWithParam<bool> {
    RcLoopback() : pair(Service::kRc, GetParam()), a(pair.a), b(pair.b) {}
    Work rdma(WorkOpcode opcode, std::uint64_t from, std::uint32_t length, std::uint64_t to) {
        Work work;
        work.opcode = opcode;
        if (length > 0) work.entries = {a.entry(from, length)};
        work.remote_address = Station::kBase + to;
        work.rkey = b.region->key();
        return work;
    }
    Pair pair;
    Station& a;
    Station& b;
};
INSTANTIATE_TEST_SUITE_P(Memory, RcLoopback, ::testing::Values(true, false),
                         [](const auto& mode) { return mode.param ? "lent" : "copied"; });

TEST_P(RcLoopback, sends_of_all_sizes_arrive_with_the_right_packets) {
    for (const std::uint32_t mtu : {256U, 512U, 1024U, 2048U, 4096U}) {
        Pair local(Service::kRc, GetParam());
        local.a.parameters.mtu_bytes = local.b.parameters.mtu_bytes = mtu;
        local.connect();
        unsigned seed = 0;
        for (const std::uint32_t length :
             {0U, 1U, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 20 * mtu}) {
            ++seed;
            local.seen.clear();
            local.a.fill(0, length, seed);
            local.b.post_receive(seed, 300'000, length + 5);
            Work work;
            if (length > 0) work.entries = {local.a.entry(0, length)};
            local.a.post(work);
            local.settle();
            ASSERT_EQ(local.b.receives.size(), seed) << length;
            EXPECT_EQ(local.b.receives.back().status, Status::kSuccess);
            EXPECT_EQ(local.b.receives.back().byte_len, length);
            EXPECT_EQ(local.b.receives.back().wr_id, seed);
            EXPECT_TRUE(local.b.holds(300'000, length, seed));
            ASSERT_EQ(local.a.sends.size(), seed);
            EXPECT_EQ(local.a.sends.back().status, Status::kSuccess);
            const std::size_t requests = length == 0 ? 1 : (length + mtu - 1) / mtu;
            std::size_t counted = 0;
            for (const SentPacket& sent : local.seen)
                if (!net::is_response(sent.operation())) ++counted;
            EXPECT_EQ(counted, requests) << length;
        }
    }
}

TEST_P(RcLoopback, every_operation_works_across_the_psn_wrap) {
    a.parameters.sq_psn = b.parameters.rq_psn = 0xFFFFF0;
    pair.connect();
    a.fill(0, 3000, 1);
    b.fill(50'000, 3000, 2);
    std::uint64_t word = 40;
    std::memcpy(b.at(60'000), &word, sizeof word);
    b.post_receive(1, 70'000, 4000);
    b.post_receive(2, 80'000, 4000);
    a.post(rdma(WorkOpcode::kRdmaWrite, 0, 3000, 10'000));
    a.post(rdma(WorkOpcode::kRdmaRead, 20'000, 3000, 50'000));
    Work add = rdma(WorkOpcode::kFetchAdd, 30'000, 8, 60'000);
    add.compare_add = 2;
    a.post(add);
    Work swap = rdma(WorkOpcode::kCompareSwap, 30'008, 8, 60'000);
    swap.compare_add = 42;
    swap.swap = 7;
    a.post(swap);
    Work immediate = rdma(WorkOpcode::kRdmaWriteWithImmediate, 0, 700, 15'000);
    immediate.immediate = 0xAABB;
    immediate.flags |= ipc::kWorkSolicited;
    a.post(immediate);
    Work send = rdma(WorkOpcode::kSendWithImmediate, 0, 3000, 0);
    send.immediate = 0x1122;
    a.post(send);
    pair.settle();
    ASSERT_EQ(a.sends.size(), 6U);
    for (std::uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(a.sends[i].status, Status::kSuccess) << i;
        EXPECT_EQ(a.sends[i].wqe_index, i);
    }
    EXPECT_TRUE(b.holds(10'000, 3000, 1));
    EXPECT_TRUE(a.holds(20'000, 3000, 2));
    std::memcpy(&word, a.at(30'000), sizeof word);
    EXPECT_EQ(word, 40U);
    std::memcpy(&word, a.at(30'008), sizeof word);
    EXPECT_EQ(word, 42U);
    std::memcpy(&word, b.at(60'000), sizeof word);
    EXPECT_EQ(word, 7U);
    ASSERT_EQ(b.receives.size(), 2U);
    EXPECT_EQ(b.receives[0].byte_len, 700U);
    EXPECT_EQ(b.receives[0].opcode, static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceiveRdmaWithImmediate));
    EXPECT_EQ(b.receives[0].flags, ipc::kCqeReceive | ipc::kCqeImmediate | ipc::kCqeSolicited);
    EXPECT_EQ(b.receives[0].immediate, 0xAABBU);
    EXPECT_EQ(b.receives[1].immediate, 0x1122U);
    EXPECT_TRUE(b.holds(80'000, 3000, 1));
    EXPECT_EQ(a.qp->send_consumed(), 6U);
    EXPECT_EQ(a.qp->next_timer(), kNever);
    EXPECT_LT(a.qp->send_psn(), 100U);
    EXPECT_EQ(a.qp->send_psn(), b.qp->receive_psn());
    EXPECT_FALSE(a.qp->wants_run());
    EXPECT_FALSE(b.qp->wants_run());
}

TEST_P(RcLoopback, bursts_of_any_size_carry_reads_and_sends) {
    for (const std::uint32_t burst : {1U, 2U, 3U, 7U, 64U}) {
        Pair local(Service::kRc, GetParam());
        local.connect();
        local.a.fill(0, 20'000, burst);
        local.b.fill(100'000, 20'000, burst + 1);
        local.b.post_receive(1, 300'000, 20'000);
        Work work;
        work.entries = {local.a.entry(0, 9'999), local.a.entry(9'999, 0), local.a.entry(9'999, 10'001)};
        local.a.post(work);
        work.opcode = WorkOpcode::kRdmaRead;
        work.entries = {local.a.entry(50'000, 1), local.a.entry(50'001, 19'999)};
        work.remote_address = Station::kBase + 100'000;
        work.rkey = local.b.region->key();
        local.a.post(work);
        local.settle(burst);
        ASSERT_EQ(local.a.sends.size(), 2U) << burst;
        EXPECT_EQ(local.a.sends[1].status, Status::kSuccess);
        EXPECT_TRUE(local.b.holds(300'000, 20'000, burst));
        EXPECT_TRUE(local.a.holds(50'000, 20'000, burst + 1));
        EXPECT_EQ(local.a.count().retransmitted_packets, 0U);
        EXPECT_EQ(local.a.count().ghost_responses, 0U);
    }
}

TEST_P(RcLoopback, reads_beyond_the_limit_wait_at_the_requester) {
    pair.connect();
    for (unsigned i = 0; i < 10; ++i) a.post(rdma(WorkOpcode::kRdmaRead, i * 1000, 600, 5000));
    a.run();
    EXPECT_EQ(a.out.size(), 4U);
    EXPECT_FALSE(a.qp->wants_run());
    pair.settle();
    EXPECT_EQ(a.sends.size(), 10U);
    EXPECT_EQ(b.count().invalid_requests, 0U);
}

TEST_P(RcLoopback, fenced_request_waits_for_reads) {
    pair.connect();
    b.post_receive(1, 0, 100);
    a.post(rdma(WorkOpcode::kRdmaRead, 0, 600, 5000));
    Work send = rdma(WorkOpcode::kSend, 0, 10, 0);
    send.flags |= ipc::kWorkFence;
    a.post(send);
    a.run();
    EXPECT_EQ(a.out.size(), 1U);
    pair.settle();
    EXPECT_EQ(a.sends.size(), 2U);
}

TEST_P(RcLoopback, send_with_invalidate_frees_the_key_or_fails_the_receive) {
    pair.connect();
    b.post_receive(1, 0, 100);
    Work send = rdma(WorkOpcode::kSendWithInvalidate, 0, 10, 0);
    send.immediate = 0x7777;  // no such key
    a.post(send);
    pair.settle();
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].status, Status::kLocalAccess);
    EXPECT_EQ(b.qp->state(), QpState::kError);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);  // class J: the SEND was acknowledged
}

TEST_P(RcLoopback, unsignaled_requests_complete_in_silence_and_the_last_one_asks_for_the_ack) {
    pair.connect();
    for (unsigned i = 0; i < 5; ++i) {
        Work write = rdma(WorkOpcode::kRdmaWrite, 0, 100, 1000 * i);
        write.flags = 0;
        a.post(write);
    }
    pair.settle();
    EXPECT_TRUE(a.sends.empty());
    EXPECT_EQ(a.qp->send_consumed(), 5U);
    unsigned asked = 0;
    unsigned acks = 0;
    for (const SentPacket& sent : pair.seen) {
        if (sent.operation() == Operation::kAcknowledge) ++acks;
        if (sent.packet.bth.ack_req) ++asked;
    }
    EXPECT_EQ(asked, 1U);
    EXPECT_EQ(acks, 1U);
}

TEST_P(RcLoopback, acknowledges_of_a_turn_are_one_packet) {
    pair.connect();
    for (unsigned i = 0; i < 50; ++i) a.post(rdma(WorkOpcode::kRdmaWrite, 0, 64, 1000));
    pair.settle();
    EXPECT_EQ(a.sends.size(), 50U);
    unsigned acks = 0;
    for (const SentPacket& sent : pair.seen)
        if (sent.operation() == Operation::kAcknowledge) ++acks;
    EXPECT_EQ(acks, 1U);
}

TEST_P(RcLoopback, bind_and_local_invalidate_keep_their_place) {
    pair.connect();
    Work write = rdma(WorkOpcode::kRdmaWrite, 0, 10, 0);
    write.flags = 0;
    a.post(write);
    Work bind;
    bind.opcode = WorkOpcode::kBindWindow;
    a.post(bind);
    Work invalidate;
    invalidate.opcode = WorkOpcode::kLocalInvalidate;
    invalidate.immediate = 0x1234;  // fails, but only after all before it
    a.post(invalidate);
    a.run();
    EXPECT_EQ(a.binds.size(), 1U);
    EXPECT_TRUE(a.sends.empty());  // not before the WRITE is acknowledged
    pair.settle();
    ASSERT_EQ(a.sends.size(), 2U);
    EXPECT_EQ(a.sends[0].opcode, static_cast<std::uint8_t>(WorkOpcode::kBindWindow));
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);
    EXPECT_EQ(a.sends[1].status, Status::kWindowBind);
    EXPECT_EQ(a.qp->state(), QpState::kError);
}

TEST_P(RcLoopback, short_sends_land_in_the_inline_area) {
    pair.connect();
    b.receive_queue.inline_receives = true;
    a.fill(0, 300, 9);
    for (const std::uint32_t length : {1U, 192U, 193U}) {
        b.post_receive(length, 5000, 1000);
        a.post(rdma(WorkOpcode::kSend, 0, length, 0));
    }
    pair.settle();
    ASSERT_EQ(b.receives.size(), 3U);
    EXPECT_TRUE((b.receives[0].flags & ipc::kCqeInline) != 0);
    EXPECT_TRUE((b.receives[1].flags & ipc::kCqeInline) != 0);
    EXPECT_TRUE((b.receives[2].flags & ipc::kCqeInline) == 0);
    EXPECT_EQ(std::memcmp(b.receive_queue.areas[1].data(), a.at(0), 192), 0);
    EXPECT_TRUE(b.holds(5000, 193, 9));
}

TEST_P(RcLoopback, bytes_are_in_memory_when_a_completion_is_seen) {
    pair.connect();
    a.fill(0, 3000, 4);
    b.fill(50'000, 3000, 5);
    std::uint64_t word = 9;
    std::memcpy(b.at(60'000), &word, sizeof word);
    b.post_receive(1, 5000, 3000);
    b.post_receive(2, 0, 0);
    a.post(rdma(WorkOpcode::kSend, 0, 3000, 0));
    a.post(rdma(WorkOpcode::kRdmaWriteWithImmediate, 0, 3000, 10'000));
    a.post(rdma(WorkOpcode::kRdmaRead, 20'000, 3000, 50'000));
    a.post(rdma(WorkOpcode::kFetchAdd, 30'000, 8, 60'000));
    unsigned seen = 0;
    b.on_completion = [&](const Completion& completion) {
        ++seen;
        EXPECT_TRUE(b.holds(completion.wr_id == 1 ? 5000 : 10'000, 3000, 4));
    };
    a.on_completion = [&](const Completion& completion) {
        ++seen;
        if (completion.wr_id == 2) {
            EXPECT_TRUE(a.holds(20'000, 3000, 5));
        } else if (completion.wr_id == 3) {
            EXPECT_EQ(*a.at(30'000), std::byte{9});
        } else {
            EXPECT_TRUE(b.holds(completion.wr_id == 0 ? 5000 : 10'000, 3000, 4));
        }
    };
    pair.settle();
    EXPECT_EQ(seen, 6U);
}

TEST_P(RcLoopback, inline_data_is_sent_from_the_request) {
    pair.connect();
    b.post_receive(1, 5000, 1000);
    Work send;
    send.flags |= ipc::kWorkInline;
    for (unsigned i = 0; i < 600; ++i) send.inline_data.push_back(pattern(3, i));
    a.post(send);
    pair.settle();
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].byte_len, 600U);
    EXPECT_TRUE(b.holds(5000, 600, 3));
}

}  // namespace
}  // namespace uib::transport::testing
