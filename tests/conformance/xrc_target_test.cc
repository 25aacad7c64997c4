// The XRC target queue pair (IBA 9.7.9.2): receives, protection domain and completion queue are those of the
// SRQ that a request names.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;
constexpr std::uint32_t kOtherSrq = 0x78;

using XrcTarget = OnService<transport::Service::kXrcTarget>;

TEST_F(XrcTarget, o9_114_a6_an_srq_that_is_not_of_the_domain_is_an_invalid_rd_request) {
    ROWS("o9-24.a1", "o9-114.a6", "C9-219.1.1");
    for (const bool foreign : {false, true}) {
        for (const Frame& frame : {send_only(0, 10), send_first(0), write_only(0, peer.rkey(), kBase, 10),
                                   read(0, peer.rkey(), kBase, 10), fetch_add(0, peer.rkey(), kBase, 1)}) {
            Peer one_peer(transport::Service::kXrcTarget);
            if (foreign) one_peer.machine().srq_domain = Station::kXrcDomain + 1;
            one_peer.connect();
            one_peer.posts_receive(0, 0, 1000);
            Frame request = frame;
            one_peer.sends(request.xrc_srq(foreign ? kXrcSrq : kOtherSrq));
            one_peer.expects(nak(transport::kNakInvalidRdRequest, 0).msn(0));
            one_peer.raises(QpEvent::kAccessError);
            one_peer.receives_nothing();
            EXPECT_EQ(one_peer.state(), QpState::kError);
            one_peer.ends();
        }
    }
}

// The check of Middle and Last packets is optional; uib makes it.
TEST_F(XrcTarget, o9_114_a6_all_packets_of_a_message_name_the_srq_of_the_first) {
    ROWS("o9-114.a6");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_first(0));
    peer.machine().srq_number = kOtherSrq;  // there is one of this name in the domain, too
    peer.sends(send_last(1, 10).xrc_srq(kOtherSrq));
    peer.expects(nak(transport::kNakInvalidRdRequest, 1));
    peer.receives(0, Status::kRemoteInvalidRdRequest);
    peer.raises(QpEvent::kAccessError);
}

TEST_F(XrcTarget, o9_114_a7_keys_are_those_of_the_srq_s_protection_domain) {
    ROWS("o9-114.a7");
    constexpr memory::PdId kSrqPd = 2;
    for (const bool of_srq : {true, false}) {
        Peer one_peer(transport::Service::kXrcTarget);
        memory::RegionInit init = one_peer.machine().region->init();
        init.pd = kSrqPd;
        const std::uint32_t srq_key = one_peer.machine().keys().add_region(std::move(init))->key();
        one_peer.machine().srq_pd = kSrqPd;
        one_peer.connect();
        one_peer.sends(write_only(0, of_srq ? srq_key : one_peer.rkey(), kBase, 10).asks_ack());
        if (of_srq) {
            one_peer.expects(ack(0).msn(1));
        } else {
            one_peer.expects(nak(transport::kNakRemoteAccess, 0));
            one_peer.raises(QpEvent::kAccessError);
        }
        one_peer.ends();
    }
}

/// A key of the SRQ's protection domain, which is not that of the queue pair.
std::uint32_t key_of_srq(Peer& peer, bool may_be_invalidated = false) {
    constexpr memory::PdId kSrqPd = 2;
    memory::RegionInit init = peer.machine().region->init();
    init.pd = peer.machine().srq_pd = kSrqPd;
    init.may_be_invalidated = may_be_invalidated;
    return peer.machine().keys().add_region(std::move(init))->key();
}

TEST_F(XrcTarget, o9_114_a7_receives_are_in_the_srq_s_protection_domain) {
    ROWS("o9-114.a7");
    for (const bool of_srq : {true, false}) {
        Peer one_peer(transport::Service::kXrcTarget);
        ipc::ScatterGatherEntry entry = one_peer.machine().entry(0, 1000);
        const std::uint32_t key = key_of_srq(one_peer);
        if (of_srq) entry.lkey = key;
        one_peer.machine().receive_queue.posted.push_back({7, {entry}, false});
        one_peer.connect();
        one_peer.sends(send_first(0));
        if (of_srq) {
            one_peer.sends(send_last(1, 10).asks_ack());
            one_peer.expects(ack(1));
            one_peer.receives(7);
        } else {
            one_peer.expects(nak(transport::kNakRemoteOperation, 0));
            one_peer.receives(7, Status::kLocalProtection);
            one_peer.raises(QpEvent::kFatal);
        }
        one_peer.ends();
    }
}

TEST_F(XrcTarget, o9_114_a7_a_key_to_invalidate_is_one_of_the_srq_s_protection_domain) {
    ROWS("o9-114.a7", "o9-5.2.2");
    const std::uint32_t key = key_of_srq(peer, true);
    connect();
    peer.posts_receive(0, 0, 0);
    peer.sends(send_only_inv(0, 0, key).asks_ack());
    peer.expects(ack(0));
    EXPECT_NE(peer.receives(0).flags & ipc::kCqeInvalidate, 0);
}

// A READ is answered later, perhaps again, and with requests to other SRQs in between.
TEST_F(XrcTarget, o9_114_a7_a_read_keeps_the_protection_domain_of_its_srq) {
    ROWS("o9-114.a7", "o9-44");
    const std::uint32_t key = key_of_srq(peer);
    connect();
    peer.hold();
    peer.sends(read(0, key, kBase, 300));
    peer.machine().srq_number = kOtherSrq;
    peer.machine().srq_pd = 1;
    peer.sends(write_only(2, peer.rkey(), kBase + 1000, 10).xrc_srq(kOtherSrq).asks_ack());
    peer.release();
    for (int i = 0; i < 2; ++i) {
        peer.expects(response_first(0));
        peer.expects(response_last(1, 44));
        if (i == 0) {
            peer.expects(ack(2));
            peer.sends(read(0, key, kBase, 300));
        }
    }
}

TEST_F(XrcTarget, o9_114_a8_receive_and_completion_are_those_of_the_named_srq) {
    ROWS("o9-114.a8", "o9-114.a9");
    connect();
    peer.posts_receive(4, 0, 100);
    peer.sends(send_only(0, 10).asks_ack());
    peer.expects(ack(0));
    EXPECT_EQ(peer.receives(4).xrc_srq, kXrcSrq);
    peer.machine().srq_number = kOtherSrq;  // the other one's receives from now on
    peer.posts_receive(5, 0, 100);
    peer.posts_receive(6, 0, 100);
    peer.sends(send_only(1, 10).xrc_srq(kOtherSrq).asks_ack());
    peer.expects(ack(1));
    EXPECT_EQ(peer.receives(5).xrc_srq, kOtherSrq);
    peer.sends(write_only_imm(2, peer.rkey(), kBase, 10, 9).xrc_srq(kOtherSrq).asks_ack());
    peer.expects(ack(2));
    const Completion done = peer.receives(6);
    EXPECT_EQ(done.xrc_srq, kOtherSrq);
    EXPECT_NE(done.flags & ipc::kCqeSrq, 0);
}

TEST_F(XrcTarget, o9_114_a10_the_credit_code_is_always_invalid) {
    ROWS("o9-114.a10", "o9-91.a1");
    connect();
    for (int i = 0; i < 4; ++i) peer.posts_receive(static_cast<std::uint64_t>(i), 0, 100);
    peer.sends(send_only(0, 10).asks_ack());
    peer.expects(ack(0).credits(0x1F).msn(1));
    peer.receives(0);
    peer.sends(write_only(1, peer.rkey(), kBase, 10).asks_ack());
    peer.expects(ack(1).credits(0x1F).msn(2));
    peer.sends(read(2, peer.rkey(), kBase, 10));
    peer.expects(response_only(2, 10).credits(0x1F).msn(3));
    peer.sends(fetch_add(3, peer.rkey(), kBase, 1));
    peer.expects(Frame(Op::kAtomicAcknowledge, 3).credits(0x1F).msn(4));
}

}  // namespace
}  // namespace uib::conformance
