// Responses that the RC requester must not believe, and the edges of its PSN arithmetic (IBA 9.7.6, 9.9.2,
// Table 59).
#include <gtest/gtest.h>

#include "engine/transport/aeth.h"
#include "engine/transport/rnr_timer.h"
#include "tests/unit/transport/rc_requester_script.h"

namespace uib::transport::testing {
namespace {

TEST_F(RcRequesterScript, reserved_codes_are_dropped_in_all_responses) {
    connect();
    post(WorkOpcode::kRdmaRead, 4);
    post(WorkOpcode::kFetchAdd, 8);
    post(WorkOpcode::kRdmaWrite, 10);
    psns();
    const std::byte data[4] = {};
    std::uint64_t dropped = 0;
    for (unsigned syndrome = 0x40; syndrome < 0x80; ++syndrome) {
        if (syndrome >= kNakSequence && syndrome <= kNakInvalidRdRequest) continue;
        answer(Operation::kReadResponseOnly, 0, static_cast<std::uint8_t>(syndrome), data);
        ack(2, static_cast<std::uint8_t>(syndrome));
        dropped += 2;
    }
    // NAKs and RNR NAKs come as Acknowledges only.
    for (const std::uint8_t syndrome : {kRnrNak, kNakSequence, kNakRemoteAccess}) {
        answer(Operation::kReadResponseOnly, 0, syndrome, data);
        answer(Operation::kAtomicAcknowledge, 1, syndrome);
        dropped += 2;
    }
    EXPECT_EQ(a.count().reserved_syndromes, dropped);
    EXPECT_TRUE(a.sends.empty());
    EXPECT_EQ(a.qp->state(), QpState::kRts);
    answer(Operation::kReadResponseOnly, 0, 0x1F, data);
    answer(Operation::kAtomicAcknowledge, 1);
    ack(2);
    EXPECT_EQ(a.sends.size(), 3U);
}

TEST_F(RcRequesterScript, dropped_responses_do_not_hold_up_the_timer) {
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    psns();
    const Time deadline = a.qp->next_timer();
    a.advance(1000);
    ack(0, 0x41);
    ack(0xFFFFFF);
    ack(1);
    EXPECT_EQ(a.qp->next_timer(), deadline);
    EXPECT_EQ(a.count().duplicate_responses, 1U);
    EXPECT_EQ(a.count().ghost_responses, 1U);
}

TEST_F(RcRequesterScript, read_starts_with_first_or_only) {
    connect();
    post(WorkOpcode::kRdmaRead, 300);
    psns();
    const std::byte data[256] = {};
    answer(Operation::kReadResponseMiddle, 0, 0, data);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kBadResponse);
    EXPECT_EQ(a.count().bad_responses, 1U);
}

TEST_F(RcRequesterScript, responses_of_the_wrong_kind_are_bad) {
    const std::tuple<WorkOpcode, std::uint32_t, Operation> cases[] = {
        {WorkOpcode::kRdmaWrite, 8, Operation::kReadResponseOnly},
        {WorkOpcode::kRdmaWrite, 8, Operation::kAtomicAcknowledge},
        {WorkOpcode::kRdmaRead, 8, Operation::kAtomicAcknowledge},
        {WorkOpcode::kFetchAdd, 8, Operation::kReadResponseOnly},
        {WorkOpcode::kFetchAdd, 8, Operation::kAcknowledge},
        {WorkOpcode::kAtomicWrite, 8, Operation::kAtomicAcknowledge},
        {WorkOpcode::kAtomicWrite, 8, Operation::kAcknowledge},
        {WorkOpcode::kAtomicWrite, 8, Operation::kReadResponseFirst},
    };
    for (const auto& [opcode, length, operation] : cases) {
        Station station(Service::kRc, 0x11);
        station.connect(0x12);
        Work work;
        work.opcode = opcode;
        work.entries = {station.entry(0, length)};
        station.post(work);
        station.run();
        station.deliver(response_for(station, operation, kPsn, 0x1F));
        ASSERT_EQ(station.sends.size(), 1U);
        EXPECT_EQ(station.sends[0].status, Status::kBadResponse)
            << static_cast<int>(opcode) << ' ' << static_cast<int>(operation);
    }
}

TEST_F(RcRequesterScript, sequence_numbers_wrap) {
    a.parameters.sq_psn = 0xFFFFF0;
    connect();
    post(WorkOpcode::kRdmaWrite, 256 * 20);
    post(WorkOpcode::kRdmaRead, 256 * 3);
    post(WorkOpcode::kRdmaWrite, 1);
    a.run();
    ASSERT_EQ(a.out.size(), 22U);
    for (std::uint32_t i = 0; i < 21; ++i) EXPECT_EQ(a.out[i].psn(), (0xFFFFF0 + i) & 0xFFFFFF);
    EXPECT_EQ(a.out[21].psn(), 7U);
    a.deliver(response_for(a, Operation::kAcknowledge, 0xFFFFFF, 0x1F));
    EXPECT_TRUE(a.sends.empty());
    a.deliver(response_for(a, Operation::kAcknowledge, 0xFFFFFE, 0x1F));
    EXPECT_EQ(a.count().duplicate_responses, 1U);
    a.take_out();
    a.deliver(response_for(a, Operation::kAcknowledge, 0, kNakSequence));
    a.run();
    ASSERT_EQ(a.out.size(), 6U);
    EXPECT_EQ(a.out[0].psn(), 0U);
    EXPECT_EQ(a.out[4].operation(), Operation::kReadRequest);
    EXPECT_EQ(a.out[4].psn(), 4U);
    a.deliver(response_for(a, Operation::kAcknowledge, 3, 0x1F));
    EXPECT_EQ(a.sends.size(), 1U);
}

TEST_F(RcRequesterScript, any_code_above_the_largest_message_is_a_length_error) {
    for (const WorkOpcode opcode : {WorkOpcode::kSend, WorkOpcode::kRdmaWrite, WorkOpcode::kRdmaRead}) {
        Station station(Service::kRc, 0x11);
        station.connect(0x12);
        Work work;
        work.opcode = opcode;
        work.entries = {station.entry(0, kMaxMessageBytes), station.entry(0, 1)};
        station.post(work);
        station.run();
        ASSERT_EQ(station.sends.size(), 1U);
        EXPECT_EQ(station.sends[0].status, Status::kLocalLength);
        EXPECT_TRUE(station.out.empty());
    }
}

// T_tr <= T_o <= 4 T_tr for every code from the smallest supported one up (C9-140, C9-141).
TEST(AckTimeout, lies_between_one_and_four_times_its_code) {
    EXPECT_EQ(ack_timeout(0), kNever);
    for (unsigned code = kSmallestAckTimeout; code < 32; ++code) {
        const Time t_tr = Time{4096} << code;
        EXPECT_GE(ack_timeout(static_cast<std::uint8_t>(code)), t_tr);
        EXPECT_LE(ack_timeout(static_cast<std::uint8_t>(code)), 4 * t_tr);
    }
    for (unsigned code = 1; code < kSmallestAckTimeout; ++code)
        EXPECT_EQ(ack_timeout(static_cast<std::uint8_t>(code)), ack_timeout(kSmallestAckTimeout));
}

// Atomic writes.

struct AtomicWriteScript : RcRequesterScript {
    void done(std::uint32_t psn) { answer(Operation::kReadResponseOnly, psn); }
};

TEST_F(AtomicWriteScript, is_one_packet_answered_by_an_empty_read_response) {
    connect();
    a.fill(0, 8, 3);
    post(WorkOpcode::kAtomicWrite, 8);
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    const SentPacket sent = a.out[0];
    EXPECT_EQ(sent.packet.bth.opcode, 0x1D);
    EXPECT_EQ(sent.packet.reth.address, 0x5000U);
    EXPECT_EQ(sent.packet.reth.rkey, 0x99U);
    EXPECT_EQ(sent.packet.reth.dma_length, 8U);
    EXPECT_TRUE(sent.packet.bth.ack_req);
    ASSERT_EQ(sent.payload.size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(sent.payload[i], pattern(3, i));
    done(0);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);
    EXPECT_EQ(a.sends[0].opcode, static_cast<std::uint8_t>(WorkOpcode::kAtomicWrite));
    EXPECT_EQ(a.sends[0].byte_len, 8U);
    EXPECT_EQ(a.qp->next_timer(), kNever);
}

TEST_F(AtomicWriteScript, response_with_data_is_bad) {
    connect();
    post(WorkOpcode::kAtomicWrite, 8);
    a.run();
    const std::byte data[8] = {};
    answer(Operation::kReadResponseOnly, 0, 0x1F, data);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kBadResponse);
}

TEST_F(AtomicWriteScript, inline_data_is_sent) {
    connect();
    Work work;
    work.opcode = WorkOpcode::kAtomicWrite;
    work.flags = ipc::kWorkSignaled | ipc::kWorkInline;
    for (unsigned i = 0; i < 8; ++i) work.inline_data.push_back(static_cast<std::byte>(i));
    a.post(work);
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_EQ(a.out[0].payload, work.inline_data);
}

TEST_F(AtomicWriteScript, counts_with_reads_and_fences_wait_for_it) {
    a.parameters.max_rd_atomic = 2;
    connect();
    for (int i = 0; i < 3; ++i) post(WorkOpcode::kAtomicWrite, 8);
    EXPECT_EQ(psns(), (Psns{0, 1}));
    done(0);
    EXPECT_EQ(psns(), Psns{2});
    post(WorkOpcode::kRdmaWrite, 1, ipc::kWorkSignaled | ipc::kWorkFence);
    EXPECT_EQ(psns(), Psns{});
    done(1);
    EXPECT_EQ(psns(), Psns{});
    done(2);
    EXPECT_EQ(psns(), Psns{3});
}

TEST_F(AtomicWriteScript, acknowledge_behind_it_is_an_implied_nak) {
    connect();
    post(WorkOpcode::kRdmaWrite, 1);
    post(WorkOpcode::kAtomicWrite, 8);
    post(WorkOpcode::kRdmaWrite, 1);
    EXPECT_EQ(psns(), (Psns{0, 1, 2}));
    ack(2);
    EXPECT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(psns(), (Psns{1, 2}));
    done(1);  // acknowledges what is before it, too
    EXPECT_EQ(a.sends.size(), 2U);
}

TEST_F(AtomicWriteScript, wrong_length_no_right_and_no_resources_fail_locally) {
    for (const std::uint32_t length : {0U, 4U, 16U}) {
        Station station(Service::kRc, 0x11);
        station.connect(0x12);
        Work work;
        work.opcode = WorkOpcode::kAtomicWrite;
        if (length > 0) work.entries = {station.entry(0, length)};
        station.post(work);
        station.run();
        ASSERT_EQ(station.sends.size(), 1U);
        EXPECT_EQ(station.sends[0].status, Status::kLocalLength);
        EXPECT_TRUE(station.out.empty());
    }
    connect();
    post(WorkOpcode::kAtomicWrite, 8);
    a.send_queue.works[0].entries[0].lkey ^= 1;
    a.run();
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kLocalProtection);
    Station none(Service::kRc, 0x11);
    none.parameters.max_rd_atomic = 0;
    none.connect(0x12);
    Work work;
    work.opcode = WorkOpcode::kAtomicWrite;
    work.entries = {none.entry(0, 8)};
    none.post(work);
    none.run();
    ASSERT_EQ(none.sends.size(), 1U);
    EXPECT_EQ(none.sends[0].status, Status::kLocalQpOperation);
}

TEST_F(AtomicWriteScript, is_not_for_unreliable_connections) {
    Station uc(Service::kUc, 0x11);
    uc.connect(0x12);
    Work work;
    work.opcode = WorkOpcode::kAtomicWrite;
    work.entries = {uc.entry(0, 8)};
    uc.post(work);
    uc.run();
    ASSERT_EQ(uc.sends.size(), 1U);
    EXPECT_EQ(uc.sends[0].status, Status::kLocalQpOperation);
    EXPECT_EQ(uc.qp->state(), QpState::kSqe);
}

// Neither end of a connection has a multicast or loopback address, whatever its client says (C9-47.1.1,
// C9-56).
TEST_F(RcRequesterScript, impossible_addresses_match_nothing) {
    const net::Gid good = {0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xB};
    const net::Gid loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const net::Gid multicast = {0xFF, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    for (const net::Gid& bad : {loopback, multicast, net::Gid{}}) {
        for (const bool source : {true, false}) {
            Station station(Service::kRc, 0x11);
            station.parameters.path.global = true;
            station.parameters.path.grh.sgid = source ? good : bad;
            station.parameters.path.grh.dgid = source ? bad : good;
            station.connect(0x12);
            net::Packet packet = packet_for(station, Operation::kSendOnly, station.parameters.rq_psn);
            packet.has_grh = true;
            packet.grh.sgid = station.parameters.path.grh.dgid;
            packet.grh.dgid = station.parameters.path.grh.sgid;
            station.deliver(packet);
            EXPECT_EQ(station.count().dropped_gid, 1U);
        }
    }
    Station station(Service::kRc, 0x11);
    station.connect(0xC012);
    station.deliver(packet_for(station, Operation::kSendOnly, station.parameters.rq_psn));
    EXPECT_EQ(station.count().dropped_lid, 1U);
}

// What every packet carries.

TEST_F(RcRequesterScript, pad_count_fills_the_last_word) {
    connect();
    for (const std::uint32_t length : {1U, 2U, 3U, 4U, 257U, 511U}) post(WorkOpcode::kRdmaWrite, length);
    post(WorkOpcode::kRdmaRead, 5);
    a.run();
    std::vector<unsigned> pads;
    for (const SentPacket& sent : a.out) pads.push_back(sent.packet.bth.pad);
    EXPECT_EQ(pads, (std::vector<unsigned>{3, 2, 1, 0, 0, 3, 0, 1, 0}));
}

}  // namespace
}  // namespace uib::transport::testing
