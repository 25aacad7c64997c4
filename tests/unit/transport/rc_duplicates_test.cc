// Duplicate requests at the RC responder (IBA 9.7.5.1.4, Table 44): order, parts of a READ, saved results,
// and what is dropped without a word.
#include "tests/unit/transport/rc_responder_script.h"

namespace uib::transport::testing {
namespace {

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

// A requester with as many PSNs outstanding as may be sends the oldest again from just so far behind.
TEST_F(RcResponderScript, half_of_the_circle_away_is_behind_and_less_is_ahead) {
    b.deliver(write(Operation::kWriteOnly, 0, 10, 10));
    b.deliver(write(Operation::kWriteOnly, 1 + (1U << 23), 10, 10));
    EXPECT_EQ(b.count().duplicate_requests, 1U);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(last[0].packet.aeth.msn, 1U);
    b.deliver(write(Operation::kWriteOnly, 1U << 23, 10, 10));
    expect_nak(kNakSequence, 1);
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

TEST_F(RcResponderScript, duplicate_read_may_end_within_the_original) {
    b.fill(0, 1000, 3);
    b.deliver(read(0, 0, 1000));
    reply();
    b.deliver(read(1, 256, 300));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseFirst, 1}, {Operation::kReadResponseLast, 2}}));
    EXPECT_EQ(last[0].payload.size(), 256U);
    EXPECT_EQ(last[1].payload.size(), 44U);
    EXPECT_EQ(std::memcmp(last[1].payload.data(), b.at(512), 44), 0);
    b.deliver(read(3, 768, 1));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 3}}));
    EXPECT_EQ(b.count().dropped_duplicates, 0U);
}

TEST_F(RcResponderScript, duplicate_read_is_read_again) {
    b.fill(0, 100, 3);
    b.deliver(read(0, 0, 100));
    reply();
    b.fill(0, 100, 4);
    b.deliver(read(0, 0, 100));
    reply();
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(std::memcmp(last[0].payload.data(), b.at(0), 100), 0);
}

TEST_F(RcResponderScript, duplicate_read_of_other_bytes_is_dropped) {
    b.deliver(read(0, 0, 1000));
    reply();
    b.deliver(read(1, 257, 100));  // not where its PSN is
    b.deliver(read(0, 0, 1001));   // longer
    b.deliver(read(0, 0, 0));      // nothing of something
    net::Packet other = read(0, 0, 1000);
    memory::RegionInit twin;  // the same bytes by another name
    twin.pd = 1;
    twin.access = ipc::kAccessRemoteRead;
    twin.iova = Station::kBase;
    twin.length = 4096;
    twin.space = b.space;
    twin.space_address = Station::kBase;
    other.reth.rkey = b.keys().add_region(std::move(twin))->key();
    b.deliver(other);
    EXPECT_EQ(reply(), Reply{});
    EXPECT_EQ(b.count().dropped_duplicates, 4U);
    EXPECT_EQ(b.qp->receive_psn(), kPsn + 4);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(RcResponderScript, earlier_duplicate_interrupts_a_response_which_then_begins_anew) {
    b.deliver(read(0, 0, 10));
    reply();
    b.deliver(read(1, 0, 1000));
    EXPECT_EQ(reply_in_part(2),
              (Reply{{Operation::kReadResponseFirst, 1}, {Operation::kReadResponseMiddle, 2}}));
    b.deliver(read(0, 0, 10));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 0},
                              {Operation::kReadResponseFirst, 1},
                              {Operation::kReadResponseMiddle, 2},
                              {Operation::kReadResponseMiddle, 3},
                              {Operation::kReadResponseLast, 4}}));
}

TEST_F(RcResponderScript, duplicate_send_is_acknowledged_after_duplicate_reads) {
    b.post_receive(1, 2000, 100);
    b.deliver(read(0, 0, 300));
    in(Operation::kSendOnly, 2, 10, true);
    reply();
    in(Operation::kSendOnly, 2, 10, true);
    b.deliver(read(0, 0, 300));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseFirst, 0},
                              {Operation::kReadResponseLast, 1},
                              {Operation::kAcknowledge, 2}}));
    EXPECT_EQ(last[2].packet.aeth.msn, 2U);
    EXPECT_EQ(b.receives.size(), 1U);
}

TEST_F(RcResponderScript, duplicate_read_without_its_key_is_dropped_in_silence) {
    b.deliver(read(0, 0, 1000));
    reply();
    b.keys().remove_region(b.region);
    b.deliver(read(0, 0, 1000));
    EXPECT_EQ(reply(), Reply{});
    EXPECT_EQ(b.count().dropped_duplicates, 1U);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
    EXPECT_TRUE(b.events.empty());
}

TEST_F(RcResponderScript, duplicate_read_that_fails_on_its_way_just_ends) {
    b.deliver(read(0, 0, 1000));
    reply();
    b.deliver(read(0, 0, 1000));
    EXPECT_EQ(reply_in_part(2),
              (Reply{{Operation::kReadResponseFirst, 0}, {Operation::kReadResponseMiddle, 1}}));
    b.keys().remove_region(b.region);
    EXPECT_EQ(reply(), Reply{});
    EXPECT_EQ(b.count().dropped_duplicates, 1U);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(RcResponderScript, duplicate_atomic_of_another_kind_or_psn_is_dropped) {
    b.deliver(add(0, 1024, 5));
    b.deliver(read(1, 0, 10));
    reply();
    net::Packet other = add(0, 1024, 5);
    other.bth.opcode = net::opcode(net::Service::kRc, Operation::kCompareSwap);
    b.deliver(other);
    b.deliver(add(1, 1024, 5));
    in(Operation::kResync, 0);
    EXPECT_EQ(reply(), Reply{});
    EXPECT_EQ(b.count().dropped_duplicates, 3U);
    EXPECT_EQ(word(1024), 5U);
}

TEST_F(RcResponderScript, duplicate_atomic_needs_no_key_any_more) {
    b.deliver(add(0, 1024, 5));
    reply();
    b.keys().remove_region(b.region);
    b.deliver(add(0, 1024, 5));
    EXPECT_EQ(reply(), (Reply{{Operation::kAtomicAcknowledge, 0}}));
}

TEST_F(RcResponderScript, duplicates_are_served_while_it_waits_after_a_nak) {
    b.post_receive(1, 2000, 100);
    in(Operation::kSendOnly, 0, 10, true);
    b.deliver(read(1, 0, 10));
    reply();
    in(Operation::kSendOnly, 3, 10, true);
    expect_nak(kNakSequence, 2);
    in(Operation::kSendOnly, 0, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(aeth_kind(last[0].packet.aeth.syndrome), AethKind::kAck);
    b.deliver(read(1, 0, 10));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 1}}));
    in(Operation::kSendOnly, 4, 10, true);  // still no second NAK
    EXPECT_EQ(reply(), Reply{});
    EXPECT_EQ(b.qp->receive_psn(), kPsn + 2);
}

TEST_F(RcResponderScript, new_request_takes_the_place_of_a_duplicate_that_waits) {
    for (std::uint32_t i = 0; i < 4; ++i) b.deliver(read(i, 0, 10));
    reply();
    b.deliver(read(0, 0, 10));
    b.deliver(read(4, 0, 10));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 4}}));
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

}  // namespace
}  // namespace uib::transport::testing
