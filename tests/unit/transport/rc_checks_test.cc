// Checks of the reliable responder beyond the common refusals: padding, counters check by check, what is done
// before a NAK, RNR NAKs overtaken, shared queues in error, invalidation, solicited events, credits unasked.
#include "engine/transport/credits.h"
#include "tests/unit/transport/rc_responder_script.h"

namespace uib::transport::testing {
namespace {

TEST_F(RcResponderScript, first_and_middle_packets_have_no_padding) {
    b.post_receive(1, 0, 1000);
    net::Packet padded = packet(Operation::kSendFirst, 0, 256);
    padded.bth.pad = 3;
    b.deliver(padded);
    expect_nak(kNakInvalidRequest, 0);
    EXPECT_EQ(b.count().padding_errors, 1U);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kAccessError});
    ASSERT_EQ(b.receives.size(), 1U);  // it was not taken for the packet, only flushed
    EXPECT_EQ(b.receives[0].status, Status::kFlushed);
}

TEST_F(RcResponderScript, last_packets_may_have_padding) {
    b.deliver(write(Operation::kWriteFirst, 0, 256, 257));
    net::Packet padded = write(Operation::kWriteLast, 1, 1, 0, true);
    padded.bth.pad = 3;
    b.deliver(padded);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 1}}));
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(RcResponderScript, read_responses_tell_their_padding) {
    b.deliver(read(0, 0, 257));
    b.deliver(read(2, 0, 6));
    b.deliver(add(3, 1024, 1));
    reply();
    ASSERT_EQ(last.size(), 4U);
    EXPECT_EQ(last.at(0).packet.bth.pad, 0);
    EXPECT_EQ(last[1].packet.bth.pad, 3);
    EXPECT_EQ(last[2].packet.bth.pad, 2);
    EXPECT_EQ(last[3].packet.bth.pad, 0);
}

TEST_F(RcResponderScript, write_last_must_bring_what_the_reth_says) {
    for (const std::size_t length : {std::size_t{43}, std::size_t{45}}) {
        ResponderScript fresh(Service::kRc);
        fresh.b.deliver(fresh.write(Operation::kWriteFirst, 0, 256, 300));
        fresh.b.deliver(fresh.write(Operation::kWriteLast, 1, length, 0));
        fresh.expect_nak(kNakInvalidRequest, 1);
        EXPECT_EQ(fresh.b.count().request_length_errors, 1U);
        EXPECT_EQ(fresh.b.events, std::vector<QpEvent>{QpEvent::kAccessError});
    }
}

TEST_F(RcResponderScript, each_check_has_its_counter) {
    const auto counter = [](const net::Packet& packet, std::uint64_t QpCounters::*member) {
        ResponderScript fresh(Service::kRc);
        fresh.b.deliver(packet);
        EXPECT_EQ(fresh.b.count().*member, 1U);
        EXPECT_EQ(fresh.b.qp->state(), QpState::kError);
    };
    counter(packet(Operation::kSendLast, 0, 1), &QpCounters::opcode_sequence_errors);
    counter(packet(Operation::kResync, 0), &QpCounters::unsupported_requests);
    counter(packet(static_cast<Operation>(0x1C), 0), &QpCounters::unsupported_requests);
    counter(read(0, 0, 0x80000001), &QpCounters::request_length_errors);
    counter(add(0, 4, 1), &QpCounters::misaligned_atomics);
    counter(read(0, Station::kMemory, 1), &QpCounters::remote_access_errors);
    Station none(Service::kRc, 0x12);
    none.parameters.max_dest_rd_atomic = 0;
    none.connect(0x11);
    net::Packet request = packet_for(none, Operation::kReadRequest, kPsn);
    request.reth = {Station::kBase, none.region->key(), 1};
    none.deliver(request);
    EXPECT_EQ(none.count().read_resource_errors, 1U);
}

TEST_F(RcResponderScript, read_that_fails_takes_the_place_of_a_later_refusal) {
    b.deliver(read(0, 0, 1000));
    EXPECT_EQ(reply_in_part(1), (Reply{{Operation::kReadResponseFirst, 0}}));
    in(Operation::kSendLast, 4, 1, true);
    b.keys().remove_region(b.region);
    expect_nak(kNakRemoteAccess, 1);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kRequestError});  // one is enough
}

TEST_F(RcResponderScript, read_that_fails_during_a_send_blames_no_receive) {
    b.post_receive(1, 2000, 1000);
    b.deliver(read(0, 0, 1000));
    reply_in_part(1);
    in(Operation::kSendFirst, 4, 256);
    b.keys().remove_region(b.region);
    expect_nak(kNakRemoteAccess, 1);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].status, Status::kFlushed);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kAccessError});
}

struct LateFault : ::testing::Test, ResponderScript {
    LateFault() : ResponderScript(Service::kRc, false) {
        memory::RegionInit init;
        init.pd = 1;
        init.access = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite;
        init.iova = kHole;
        init.length = 8192;
        init.space = std::make_shared<memory::BufferSpace>(4096, kHole, false);
        init.space_address = kHole;
        region = b.keys().add_region(std::move(init));
    }
    /// A WRITE to where there is no memory behind the region, which shows when it is flushed.
    net::Packet lost_write(std::uint32_t psn) {
        net::Packet made = write(Operation::kWriteOnly, psn, 10, 10);
        made.reth = {kHole + 5000, region->key(), 10};
        return made;
    }
    static constexpr std::uint64_t kHole = 0x900000;
    const memory::Region* region = nullptr;
};

TEST_F(LateFault, is_told_before_anything_is_acknowledged) {
    b.qp->on_packet(read(0, 0, 10));
    b.qp->on_packet(lost_write(1));
    b.qp->on_packet(write(Operation::kWriteOnly, 2, 10, 10, true));
    b.qp->on_packet(read(3, 0, 10));
    // The READ before it is answered; the WRITE and the READ behind it are not acknowledged.
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 0}, {Operation::kAcknowledge, 1}}));
    EXPECT_EQ(last.back().packet.aeth.syndrome, kNakRemoteOperation);
    EXPECT_EQ(b.qp->state(), QpState::kError);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kFatal});
}

TEST_F(LateFault, keeps_a_later_atomic_from_being_executed) {
    b.qp->on_packet(lost_write(0));
    b.qp->on_packet(add(1, 0, 1));
    expect_nak(kNakRemoteOperation, 0);
    EXPECT_EQ(word(0), 0U);
}

TEST_F(LateFault, takes_the_place_of_a_nak) {
    b.qp->on_packet(lost_write(0));
    b.qp->on_packet(packet(Operation::kSendOnly, 5, 1));
    expect_nak(kNakRemoteOperation, 0);
}

TEST_F(LateFault, of_an_earlier_connection_is_forgotten) {
    b.deliver(lost_write(0));
    b.qp->apply(QpState::kReset, b.parameters, false);
    b.connect(0x11);
    b.deliver(write(Operation::kWriteOnly, 0, 10, 10, true));
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(aeth_kind(last.back().packet.aeth.syndrome), AethKind::kAck);
}

TEST_F(RcResponderScript, rnr_nak_is_withdrawn_when_the_packet_comes_again_before_it) {
    in(Operation::kSendOnly, 0, 10);
    b.post_receive(1, 0, 100);
    in(Operation::kSendOnly, 0, 10);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(aeth_kind(last.at(0).packet.aeth.syndrome), AethKind::kAck);
    EXPECT_EQ(b.count().rnr_naks_sent, 0U);
    EXPECT_EQ(b.receives.size(), 1U);
}

TEST_F(RcResponderScript, rnr_nak_uses_no_receive_and_says_nothing_to_the_client) {
    in(Operation::kSendFirst, 0, 256, true);
    expect_nak(kRnrNak | 12, 0);
    EXPECT_TRUE(b.receives.empty());
    EXPECT_TRUE(b.events.empty());
    in(Operation::kSendMiddle, 1, 256, true);  // of the message that waits
    EXPECT_EQ(reply(), Reply{});
}

TEST_F(RcResponderScript, shared_queue_in_error_ends_the_queue_pair) {
    b.receive_queue.is_shared = true;
    b.receive_queue.is_failed = true;
    in(Operation::kSendOnly, 0, 10);
    expect_nak(kNakRemoteOperation, 0);
    ASSERT_FALSE(b.events.empty());
    EXPECT_EQ(b.events[0], QpEvent::kFatal);
}

TEST_F(RcResponderScript, send_whose_invalidation_fails_is_acknowledged) {
    b.post_receive(1, 0, 100);
    b.post_receive(2, 0, 100);
    net::Packet send = packet(Operation::kSendOnlyInvalidate, 0, 10);
    send.invalidate_key = b.region->key() ^ 1;
    b.deliver(send);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(aeth_kind(last.at(0).packet.aeth.syndrome), AethKind::kAck);
    EXPECT_EQ(last.at(0).packet.aeth.msn, 1U);
    ASSERT_EQ(b.receives.size(), 2U);
    EXPECT_EQ(b.receives[0].status, Status::kLocalAccess);
    EXPECT_EQ(b.receives[1].status, Status::kFlushed);
    EXPECT_EQ(b.qp->state(), QpState::kError);
    EXPECT_EQ(b.count().remote_invalidate_errors, 1U);
    EXPECT_TRUE(b.events.empty());
}

TEST_F(RcResponderScript, fault_of_the_send_comes_before_its_invalidation) {
    b.post_receive(1, 0, 5);
    net::Packet send = packet(Operation::kSendOnlyInvalidate, 0, 10, true);
    send.invalidate_key = b.region->key() ^ 1;
    b.deliver(send);
    expect_nak(kNakInvalidRequest, 0);
    EXPECT_EQ(b.receives.at(0).status, Status::kLocalLength);
    EXPECT_EQ(b.count().remote_invalidate_errors, 0U);
}

TEST_F(RcResponderScript, solicited_bit_where_it_does_not_belong_is_ignored) {
    b.post_receive(1, 0, 1000);
    net::Packet send = packet(Operation::kSendFirst, 0, 256);
    send.bth.solicited = true;
    b.deliver(send);
    in(Operation::kSendLast, 1, 10, true);
    net::Packet request = read(2, 0, 10);
    request.bth.solicited = true;
    b.deliver(request);
    reply();
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].flags, ipc::kCqeReceive);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

struct UnsolicitedAcknowledge : RcResponderScript {
    /// A SEND of two packets as of a peer without credits, which takes the only receive.
    void starve() {
        b.post_receive(1, 0, 1000);
        in(Operation::kSendFirst, 0, 256, true);
        in(Operation::kSendLast, 1, 10, true);
        EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 1}}));
        EXPECT_EQ(last.at(0).packet.aeth.syndrome, encode_credits(0));
        EXPECT_FALSE(b.qp->wants_run());
    }
};

TEST_F(UnsolicitedAcknowledge, brings_credits_once_after_none_were_given) {
    starve();
    b.post_receive(2, 0, 1000);
    b.post_receive(3, 0, 1000);
    EXPECT_TRUE(b.qp->wants_run());
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 1}}));
    EXPECT_EQ(last.at(0).packet.aeth.syndrome, encode_credits(2));
    EXPECT_EQ(last.at(0).packet.aeth.msn, 1U);
    EXPECT_EQ(b.count().unsolicited_acknowledges, 1U);
    b.post_receive(4, 0, 1000);
    EXPECT_FALSE(b.qp->wants_run());
    EXPECT_EQ(reply(), Reply{});
}

TEST_F(UnsolicitedAcknowledge, never_repeats_a_nak_nor_stands_for_a_read) {
    starve();
    in(Operation::kSendOnly, 2, 10, true);
    expect_nak(kRnrNak | 12, 2);
    b.post_receive(2, 0, 1000);
    EXPECT_EQ(reply(), Reply{});
    ResponderScript after_read(Service::kRc);
    after_read.b.post_receive(1, 0, 1000);
    after_read.in(Operation::kSendFirst, 0, 256, true);
    after_read.in(Operation::kSendLast, 1, 10, true);
    after_read.reply();
    after_read.b.deliver(after_read.read(2, 0, 10));
    after_read.reply();
    after_read.b.post_receive(2, 0, 1000);
    EXPECT_EQ(after_read.reply(), Reply{});
}

TEST_F(UnsolicitedAcknowledge, not_for_a_peer_that_sends_single_packets) {
    b.post_receive(1, 0, 1000);
    in(Operation::kSendOnly, 0, 10, true);
    reply();
    b.post_receive(2, 0, 1000);
    EXPECT_EQ(reply(), Reply{});
}

TEST_F(RcResponderScript, read_response_stands_for_the_acknowledge_of_what_is_before_it) {
    b.deliver(write(Operation::kWriteOnly, 0, 10, 10, true));
    b.deliver(read(1, 0, 10));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 1}}));
    b.deliver(write(Operation::kWriteOnly, 2, 10, 10, true));
    b.deliver(add(3, 1024, 1));
    EXPECT_EQ(reply(), (Reply{{Operation::kAtomicAcknowledge, 3}}));
}

TEST_F(RcResponderScript, place_of_an_answered_read_is_free_and_order_is_kept) {
    b.deliver(read(0, 0, 10));
    EXPECT_EQ(reply_in_part(1), (Reply{{Operation::kReadResponseOnly, 0}}));
    for (std::uint32_t i = 1; i < 5; ++i) b.deliver(read(i, 0, 10));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseOnly, 1},
                              {Operation::kReadResponseOnly, 2},
                              {Operation::kReadResponseOnly, 3},
                              {Operation::kReadResponseOnly, 4}}));
}

}  // namespace
}  // namespace uib::transport::testing
