// The XRC target QP: SRQs by number, their PD and completions, refusals of class K, and an initiator against
// it.
#include "tests/unit/transport/rc_responder_script.h"

namespace uib::transport::testing {
namespace {

struct XrcTargetScript : ::testing::Test, ResponderScript {
    XrcTargetScript() : ResponderScript(Service::kXrcTarget) {}
};

TEST_F(XrcTargetScript, send_takes_its_receive_from_the_srq_it_names) {
    b.post_receive(7, 0, 1000);
    in(Operation::kSendFirst, 0, 256);
    in(Operation::kSendLast, 1, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 1}}));
    EXPECT_EQ(last[0].packet.bth.opcode, 0xB1);
    EXPECT_EQ(last[0].packet.aeth.syndrome, 0x1F);
    EXPECT_EQ(last[0].packet.aeth.msn, 1U);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].wr_id, 7U);
    EXPECT_EQ(b.receives[0].xrc_srq, b.srq_number);
    EXPECT_EQ(b.receives[0].byte_len, 266U);
    EXPECT_EQ(b.receives[0].flags, ipc::kCqeReceive | ipc::kCqeSrq);
}

TEST_F(XrcTargetScript, completion_of_a_write_with_immediate_names_the_srq) {
    b.post_receive(7, 0, 0);
    net::Packet request = write(Operation::kWriteOnlyImmediate, 0, 10, 10);
    request.immediate = 0x1234;
    b.deliver(request);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].xrc_srq, b.srq_number);
    EXPECT_EQ(b.receives[0].immediate, 0x1234U);
}

TEST_F(XrcTargetScript, responses_have_the_opcodes_of_xrc_and_no_credits) {
    b.deliver(read(0, 0, 700));
    b.deliver(add(3, 1024, 4));
    b.deliver(read(4, 0, 10));
    reply();
    std::vector<unsigned> opcodes;
    for (const SentPacket& sent : last) {
        opcodes.push_back(sent.packet.bth.opcode);
        if (sent.operation() != Operation::kReadResponseMiddle) {
            EXPECT_EQ(sent.packet.aeth.syndrome, 0x1F);
        }
    }
    EXPECT_EQ(opcodes, (std::vector<unsigned>{0xAD, 0xAE, 0xAF, 0xB2, 0xB0}));
    EXPECT_EQ(word(1024), 4U);
}

TEST_F(XrcTargetScript, unknown_srq_or_foreign_domain_is_an_invalid_rd_request) {
    for (const Operation operation : {Operation::kSendFirst, Operation::kSendOnly, Operation::kWriteOnly,
                                      Operation::kReadRequest, Operation::kFetchAdd}) {
        for (const bool foreign : {false, true}) {
            ResponderScript fresh(Service::kXrcTarget);
            fresh.b.post_receive(1, 0, 1000);
            if (foreign) fresh.b.srq_domain = Station::kXrcDomain + 1;
            net::Packet request =
                fresh.packet(operation, 0, operation == Operation::kSendFirst ? 256 : 0, true);
            if (operation == Operation::kFetchAdd) request = fresh.add(0, 1024, 1);
            if (!foreign) request.xrc_srq ^= 1;
            fresh.b.deliver(request);
            fresh.expect_nak(kNakInvalidRdRequest, 0);
            EXPECT_EQ(fresh.last.at(0).packet.bth.opcode, 0xB1);
            EXPECT_EQ(fresh.b.count().xrc_domain_errors, 1U);
            EXPECT_EQ(fresh.b.events, std::vector<QpEvent>{QpEvent::kAccessError});
            EXPECT_TRUE(fresh.b.receives.empty());
            EXPECT_EQ(fresh.b.receive_queue.posted.size(), 1U);
        }
    }
}

TEST_F(XrcTargetScript, all_packets_of_a_message_name_one_srq) {
    b.post_receive(1, 0, 1000);
    in(Operation::kSendFirst, 0, 256);
    const std::uint32_t first_srq = b.srq_number;
    b.srq_number ^= 1;
    in(Operation::kSendLast, 1, 10);  // names an SRQ that exists
    expect_nak(kNakInvalidRdRequest, 1);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].status, Status::kRemoteInvalidRdRequest);
    EXPECT_EQ(b.receives[0].xrc_srq, first_srq);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kAccessError});  // class K tells both ways
}

TEST_F(XrcTargetScript, srq_that_goes_away_ends_the_message) {
    b.post_receive(1, 0, 1000);
    in(Operation::kSendFirst, 0, 256);
    const std::uint32_t number = b.srq_number;
    net::Packet next = packet(Operation::kSendLast, 1, 10);
    b.srq_number = 0;
    b.deliver(next);
    expect_nak(kNakInvalidRdRequest, 1);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].xrc_srq, number);
}

TEST_F(XrcTargetScript, keys_are_those_of_the_pd_of_the_srq) {
    b.srq_pd = 2;
    b.deliver(write(Operation::kWriteOnly, 0, 10, 10));
    expect_nak(kNakRemoteAccess, 0);
    ResponderScript reader(Service::kXrcTarget);
    reader.b.srq_pd = 2;
    reader.b.deliver(reader.read(0, 0, 10));
    reader.expect_nak(kNakRemoteAccess, 0);
    for (const bool inlined : {false, true}) {
        ResponderScript receiver(Service::kXrcTarget);
        receiver.b.srq_pd = 2;
        receiver.b.receive_queue.inline_receives = inlined;
        receiver.b.post_receive(1, 0, 100);
        receiver.in(Operation::kSendOnly, 0, 10);
        receiver.expect_nak(kNakRemoteOperation, 0);
        ASSERT_EQ(receiver.b.receives.size(), 1U);
        EXPECT_EQ(receiver.b.receives[0].status, Status::kLocalProtection);
        EXPECT_EQ(receiver.b.events, std::vector<QpEvent>{QpEvent::kFatal});
    }
}

TEST_F(XrcTargetScript, empty_srq_gives_an_rnr_nak) {
    in(Operation::kSendOnly, 0, 10, true);
    expect_nak(kRnrNak | 12, 0);
    b.post_receive(1, 0, 100);
    in(Operation::kSendOnly, 0, 10, true);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    EXPECT_EQ(b.receives.size(), 1U);
}

TEST_F(XrcTargetScript, duplicates_are_served_and_never_naked) {
    b.post_receive(1, 0, 100);
    in(Operation::kSendOnly, 0, 10, true);
    b.deliver(read(1, 0, 300));
    b.deliver(add(3, 1024, 1));
    reply();
    b.srq_number = 0;
    in(Operation::kSendOnly, 0, 10, true);
    b.deliver(read(1, 0, 300));
    b.deliver(add(3, 1024, 1));
    EXPECT_EQ(reply(), (Reply{{Operation::kReadResponseFirst, 1},
                              {Operation::kReadResponseLast, 2},
                              {Operation::kAtomicAcknowledge, 3},
                              {Operation::kAcknowledge, 0}}));
    EXPECT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(word(1024), 1U);
    EXPECT_EQ(b.qp->state(), QpState::kRts);
}

TEST_F(XrcTargetScript, other_services_and_responses_are_dropped) {
    net::Packet foreign = packet(Operation::kSendOnly, 0);
    foreign.bth.opcode = net::opcode(net::Service::kRc, Operation::kSendOnly);
    b.deliver(foreign);
    in(Operation::kAcknowledge, 0);
    EXPECT_EQ(b.count().dropped_service, 2U);
    Station fresh(Service::kXrcTarget, 0x12);
    fresh.connect(0x11, QpState::kInit);
    fresh.deliver(packet_for(fresh, Operation::kSendOnly, kPsn));
    EXPECT_EQ(fresh.count().dropped_state, 1U);
    EXPECT_EQ(reply(), Reply{});
}

TEST_F(XrcTargetScript, receives_in_rtr_and_leaves_the_receives_of_others_alone_in_error) {
    Station fresh(Service::kXrcTarget, 0x12);
    fresh.connect(0x11, QpState::kRtr);
    fresh.post_receive(1, 0, 1000);
    fresh.post_receive(2, 0, 1000);
    fresh.deliver(packet_for(fresh, Operation::kSendFirst, kPsn, std::span(data).first(256)));
    EXPECT_EQ(fresh.events, std::vector<QpEvent>{QpEvent::kCommunicationEstablished});
    fresh.qp->apply(QpState::kError, fresh.parameters, false);
    fresh.run();
    ASSERT_EQ(fresh.receives.size(), 1U);
    EXPECT_EQ(fresh.receives[0].status, Status::kFlushed);
    EXPECT_EQ(fresh.receives[0].xrc_srq, fresh.srq_number);
    EXPECT_EQ(fresh.receive_queue.posted.size(), 1U);
    EXPECT_FALSE(fresh.qp->wants_run());
    EXPECT_TRUE(fresh.qp->drained());
}

TEST_F(XrcTargetScript, failed_invalidation_is_told_both_ways) {
    b.post_receive(1, 0, 100);
    net::Packet send = packet(Operation::kSendOnlyInvalidate, 0, 10, true);
    send.invalidate_key = b.region->key() ^ 1;
    b.deliver(send);
    EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, 0}}));
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_EQ(b.receives[0].status, Status::kLocalAccess);
    EXPECT_EQ(b.events, std::vector<QpEvent>{QpEvent::kAccessError});
    EXPECT_EQ(b.qp->state(), QpState::kError);
}

TEST(Xrc, initiator_and_target_exchange_all_operations) {
    Station a(Service::kXrcInitiator, 0x11);
    Station b(Service::kXrcTarget, 0x12);
    a.connect(0x12);
    b.connect(0x11);
    a.fill(0, 1000, 3);
    b.post_receive(1, 5000, 1000);
    const auto post = [&](ipc::WorkOpcode opcode, std::uint64_t from, std::uint32_t length,
                          std::uint64_t to) {
        Work work;
        work.opcode = opcode;
        work.entries = {a.entry(from, length)};
        work.remote_address = Station::kBase + to;
        work.rkey = b.region->key();
        work.compare_add = 9;
        work.xrc_srq = b.srq_number;
        a.post(work);
    };
    post(ipc::WorkOpcode::kSend, 0, 1000, 0);
    post(ipc::WorkOpcode::kRdmaWrite, 0, 700, 8000);
    post(ipc::WorkOpcode::kFetchAdd, 2000, 8, 16000);
    post(ipc::WorkOpcode::kRdmaRead, 10000, 700, 8000);
    for (int round = 0; round < 100; ++round) {
        a.run();
        for (const SentPacket& sent : a.take_out()) b.deliver(sent.whole());
        b.run();
        for (const SentPacket& sent : b.take_out()) a.deliver(sent.whole());
    }
    ASSERT_EQ(a.sends.size(), 4U);
    for (const Completion& completion : a.sends) EXPECT_EQ(completion.status, Status::kSuccess);
    ASSERT_EQ(b.receives.size(), 1U);
    EXPECT_TRUE(b.holds(5000, 1000, 3));
    EXPECT_TRUE(b.holds(8000, 700, 3));
    EXPECT_TRUE(a.holds(10000, 700, 3));
    EXPECT_EQ(static_cast<unsigned>(*b.at(16000)), 9U);
}

}  // namespace
}  // namespace uib::transport::testing
