// Packet scripts for the RC requester: this goes out, that comes back at this time.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/transport/aeth.h"
#include "engine/transport/rnr_timer.h"
#include "tests/unit/transport/rc_requester_script.h"

namespace uib::transport::testing {
namespace {

TEST_F(RcRequesterScript, coalesced_ack_completes_all_before_it) {
    connect();
    for (int i = 0; i < 4; ++i) post(WorkOpcode::kRdmaWrite, 300);
    EXPECT_EQ(psns(), (Psns{0, 1, 2, 3, 4, 5, 6, 7}));
    ack(4);
    EXPECT_EQ(a.sends.size(), 2U);
    ack(4);  // duplicate
    EXPECT_EQ(a.sends.size(), 2U);
    ack(8);  // ghost: never sent
    EXPECT_EQ(a.sends.size(), 2U);
    EXPECT_EQ(a.count().duplicate_responses, 1U);
    EXPECT_EQ(a.count().ghost_responses, 1U);
    ack(7);
    EXPECT_EQ(a.sends.size(), 4U);
    EXPECT_EQ(a.qp->next_timer(), kNever);
}

TEST_F(RcRequesterScript, read_takes_as_many_psns_as_responses) {
    connect();
    post(WorkOpcode::kRdmaRead, 700);
    post(WorkOpcode::kRdmaRead, 0);
    post(WorkOpcode::kRdmaWrite, 10);
    a.run();
    ASSERT_EQ(a.out.size(), 3U);
    EXPECT_EQ(a.out[0].psn(), kPsn);
    EXPECT_EQ(a.out[0].packet.reth.dma_length, 700U);
    EXPECT_EQ(a.out[1].psn(), kPsn + 3);
    EXPECT_EQ(a.out[2].psn(), kPsn + 4);
}

TEST_F(RcRequesterScript, sequence_nak_resends_from_its_psn_and_acknowledges_the_rest) {
    connect();
    post(WorkOpcode::kRdmaWrite, 300);
    post(WorkOpcode::kRdmaWrite, 700);
    EXPECT_EQ(psns(), (Psns{0, 1, 2, 3, 4}));
    ack(3, kNakSequence);
    EXPECT_EQ(a.sends.size(), 1U);
    a.run();
    ASSERT_EQ(a.out.size(), 2U);
    EXPECT_EQ(a.out[0].operation(), Operation::kWriteMiddle);
    EXPECT_EQ(a.out[0].psn(), kPsn + 3);
    EXPECT_FALSE(a.out[0].packet.bth.ack_req);
    EXPECT_TRUE(a.out[1].packet.bth.ack_req);
    EXPECT_EQ(a.count().retransmitted_packets, 2U);
    ack(4);
    EXPECT_EQ(a.sends.size(), 2U);
}

TEST_F(RcRequesterScript, timeout_resends_and_exhausts_its_retries) {
    a.parameters.retry_count = 2;
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    post(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(psns(), (Psns{0, 1}));
    const Time wait = ack_timeout(a.parameters.timeout);
    for (int i = 0; i < 2; ++i) {
        a.advance(wait - 1);
        EXPECT_EQ(psns(), Psns{});
        a.advance(1);
        EXPECT_EQ(psns(), (Psns{0, 1}));
    }
    a.advance(wait);
    EXPECT_EQ(psns(), Psns{});
    ASSERT_EQ(a.sends.size(), 2U);
    EXPECT_EQ(a.sends[0].status, Status::kRetryExceeded);
    EXPECT_EQ(a.sends[1].status, Status::kFlushed);
    EXPECT_EQ(a.qp->state(), QpState::kError);
    EXPECT_EQ(a.count().timeouts, 3U);
}

TEST_F(RcRequesterScript, progress_reloads_the_retry_counter) {
    a.parameters.retry_count = 1;
    connect();
    for (int i = 0; i < 5; ++i) post(WorkOpcode::kRdmaWrite, 10);
    psns();
    for (std::uint32_t i = 0; i < 5; ++i) {
        a.advance(ack_timeout(a.parameters.timeout));
        EXPECT_EQ(psns().size(), 5 - i);
        ack(i);
    }
    EXPECT_EQ(a.sends.size(), 5U);
    EXPECT_EQ(a.qp->state(), QpState::kRts);
}

TEST_F(RcRequesterScript, timeout_zero_never_expires) {
    a.parameters.timeout = 0;
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    psns();
    EXPECT_EQ(a.qp->next_timer(), kNever);
}

TEST_F(RcRequesterScript, rnr_nak_waits_its_time_and_resends_the_same_packet) {
    connect();
    post(WorkOpcode::kSend, 10);
    EXPECT_EQ(psns(), Psns{0});
    ack(0, kRnrNak | 16);
    EXPECT_EQ(psns(), Psns{});
    EXPECT_EQ(a.qp->next_timer(), a.clock + 2'560'000);
    a.advance(2'559'999);
    EXPECT_EQ(psns(), Psns{});
    a.advance(1);
    EXPECT_EQ(psns(), Psns{0});
    EXPECT_EQ(a.count().rnr_naks_received, 1U);
    ack(0);
    EXPECT_EQ(a.sends.size(), 1U);
}

TEST_F(RcRequesterScript, rnr_retries_run_out_or_never) {
    for (const std::uint8_t retries : {std::uint8_t{2}, std::uint8_t{7}}) {
        Station station(Service::kRc, 0x11);
        station.parameters.rnr_retry = retries;
        station.connect(0x12);
        Work work;
        work.entries = {station.entry(0, 10)};
        station.post(work);
        int sent = 0;
        for (int i = 0; i < 30 && station.qp->state() == QpState::kRts; ++i) {
            station.run();
            sent += static_cast<int>(station.take_out().size());
            station.deliver(response_for(station, Operation::kAcknowledge, kPsn, kRnrNak | 1));
            station.advance(10'000);
        }
        EXPECT_EQ(sent, retries == 7 ? 30 : 3);
        if (retries == 7) continue;
        ASSERT_EQ(station.sends.size(), 1U);
        EXPECT_EQ(station.sends[0].status, Status::kRnrRetryExceeded);
    }
}

TEST_F(RcRequesterScript, lost_read_response_asks_for_the_rest_only) {
    connect();
    post(WorkOpcode::kRdmaRead, 1000);
    EXPECT_EQ(psns(), Psns{0});
    std::vector<std::byte> data(1000);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = pattern(5, i);
    const std::span<const std::byte> bytes(data);
    answer(Operation::kReadResponseFirst, 0, 0x1F, bytes.subspan(0, 256));
    // 1 is lost; the two behind it are one implied NAK.
    answer(Operation::kReadResponseMiddle, 2, 0, bytes.subspan(512, 256));
    answer(Operation::kReadResponseLast, 3, 0x1F, bytes.subspan(768));
    EXPECT_EQ(a.count().implied_naks, 1U);
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_EQ(a.out[0].psn(), kPsn + 1);
    EXPECT_EQ(a.out[0].packet.reth.address, 0x5000U + 256);
    EXPECT_EQ(a.out[0].packet.reth.dma_length, 744U);
    answer(Operation::kReadResponseFirst, 1, 0x1F, bytes.subspan(256, 256));
    answer(Operation::kReadResponseMiddle, 2, 0, bytes.subspan(512, 256));
    answer(Operation::kReadResponseLast, 3, 0x1F, bytes.subspan(768));
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);
    EXPECT_TRUE(a.holds(0, 1000, 5));
}

TEST_F(RcRequesterScript, ack_behind_a_read_is_an_implied_nak) {
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    post(WorkOpcode::kRdmaRead, 10);
    post(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(psns(), (Psns{0, 1, 2}));
    ack(2);
    EXPECT_EQ(a.sends.size(), 1U);  // only what is before the READ
    EXPECT_EQ(psns(), (Psns{1, 2}));
    EXPECT_EQ(a.count().implied_naks, 1U);
}

TEST_F(RcRequesterScript, read_response_acknowledges_earlier_requests) {
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    post(WorkOpcode::kRdmaRead, 1);
    psns();
    const std::byte data[1] = {std::byte{7}};
    answer(Operation::kReadResponseOnly, 1, 0x1F, data);
    EXPECT_EQ(a.sends.size(), 2U);
}

TEST_F(RcRequesterScript, fatal_naks_have_their_statuses) {
    const std::pair<std::uint8_t, Status> cases[] = {{kNakInvalidRequest, Status::kRemoteInvalidRequest},
                                                     {kNakRemoteAccess, Status::kRemoteAccess},
                                                     {kNakRemoteOperation, Status::kRemoteOperation}};
    for (const auto& [syndrome, status] : cases) {
        Station station(Service::kRc, 0x11);
        station.connect(0x12);
        Work work;
        work.opcode = WorkOpcode::kRdmaWrite;
        work.entries = {station.entry(0, 10)};
        for (int i = 0; i < 3; ++i) station.post(work);
        station.send_queue.works[2].flags = 0;
        station.run();
        station.deliver(response_for(station, Operation::kAcknowledge, kPsn + 1, syndrome));
        station.run();
        ASSERT_EQ(station.sends.size(), 3U);
        EXPECT_EQ(station.sends[0].status, Status::kSuccess);
        EXPECT_EQ(station.sends[1].status, status);
        EXPECT_EQ(station.sends[1].vendor_error, syndrome);
        EXPECT_EQ(station.sends[2].status, Status::kFlushed);  // unsignaled ones too
        EXPECT_EQ(station.qp->state(), QpState::kError);
        EXPECT_TRUE(station.events.empty());
    }
}

TEST_F(RcRequesterScript, reserved_syndrome_is_dropped) {
    connect();
    post(WorkOpcode::kRdmaWrite, 10);
    psns();
    ack(0, 0x65);
    ack(0, 0x40);
    EXPECT_TRUE(a.sends.empty());
    EXPECT_EQ(a.qp->state(), QpState::kRts);
}

TEST_F(RcRequesterScript, wrong_kind_of_response_is_a_bad_response) {
    connect();
    post(WorkOpcode::kRdmaRead, 10);
    psns();
    ack(0);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kBadResponse);
}

TEST_F(RcRequesterScript, short_read_response_is_a_length_error) {
    connect();
    post(WorkOpcode::kRdmaRead, 300);
    psns();
    const std::byte data[44] = {};
    answer(Operation::kReadResponseOnly, 0, 0x1F, data);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kLocalLength);
}

TEST_F(RcRequesterScript, ack_during_a_resend_moves_the_cursor) {
    connect();
    for (int i = 0; i < 4; ++i) post(WorkOpcode::kRdmaWrite, 10);
    psns();
    a.advance(ack_timeout(a.parameters.timeout));
    a.room = 1;
    a.qp->run(1);
    EXPECT_EQ(a.take_out().size(), 1U);
    ack(2);  // answers the first pass
    EXPECT_EQ(a.sends.size(), 3U);
    a.room = 100;
    EXPECT_EQ(psns(), Psns{3});
    ack(3);
    EXPECT_EQ(a.sends.size(), 4U);
}

TEST_F(RcRequesterScript, no_room_sends_nothing) {
    connect();
    post(WorkOpcode::kRdmaWrite, 1000);
    for (const std::uint32_t room : {0U, 3U, 3U}) {
        const std::size_t left = 4 - a.out.size();
        const std::size_t before = a.out.size();
        a.room = room;
        a.qp->run(100);
        EXPECT_EQ(a.out.size() - before, std::min<std::size_t>(room, left));
    }
}

TEST_F(RcRequesterScript, idle_queue_does_not_want_to_run) {
    connect();
    EXPECT_FALSE(a.qp->wants_run());
    post(WorkOpcode::kRdmaRead, 10);
    EXPECT_TRUE(a.qp->wants_run());
    psns();
    EXPECT_FALSE(a.qp->wants_run());
}

}  // namespace
}  // namespace uib::transport::testing
