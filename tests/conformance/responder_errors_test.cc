// Errors of a reliable responder that are its own side's: receives at fault, memory that goes away,
// completion queues without room, invalidation (IBA 9.9.3.1, Tables 61 and 62; classes A, C, G, J, on XRC K,
// L, M).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;

TEST_P(Responder, C9_220_a_malformed_receive_is_a_remote_operational_error) {
    ROWS("C9-126", "C9-220", "C9-219.1.1");
    connect();
    peer.machine().receive_queue.posted.push_back({7, {peer.machine().entry(0, 100)}, true});
    peer.sends(write_only(0, peer.rkey(), kBase, 10));
    peer.sends(send_only(1, 10));
    peer.expects(nak(transport::kNakRemoteOperation, 1).msn(1));
    peer.receives(7, Status::kLocalQpOperation);
    if (is_xrc()) peer.raises(QpEvent::kFatal);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(Responder, C9_220_a_receive_without_right_to_its_memory_is_a_remote_operational_error) {
    ROWS("C9-126", "C9-220", "C9-219.1.1");
    connect();
    ipc::ScatterGatherEntry entry = peer.machine().entry(0, 100);
    entry.lkey = 0xBAD00;
    peer.machine().receive_queue.posted.push_back({7, {entry}, false});
    peer.posts_receive(8, 0, 100);
    peer.sends(send_only(0, 10));
    peer.expects(nak(transport::kNakRemoteOperation, 0).msn(0));
    peer.receives(7, Status::kLocalProtection);
    if (!is_xrc()) peer.receives(8, Status::kFlushed);
    if (is_xrc()) peer.raises(QpEvent::kFatal);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(Responder, C9_100_a_read_that_fails_on_its_way_is_cut_by_a_nak) {
    ROWS("C9-100", "C9-112", "C9-113.a1", "C9-89");
    connect();
    memory::RegionInit init = peer.machine().region->init();
    memory::Region* region = peer.machine().keys().add_region(std::move(init));
    peer.hold();
    peer.sends(read(0, region->key(), kBase, 1000));
    peer.sends(write_only(4, peer.rkey(), kBase, 10).asks_ack());
    peer.step(2);
    peer.expects(response_first(0));
    peer.expects(response_middle(1));
    peer.machine().keys().remove_region(region);
    peer.release();
    peer.expects(nak(transport::kNakRemoteAccess, 2));
    peer.raises(QpEvent::kAccessError);
    EXPECT_EQ(peer.state(), QpState::kError);
}

// A duplicate's fault is told to nobody, but one of a READ that has never been answered in full is no
// duplicate's.
TEST_P(Responder, C9_100_a_read_that_fails_is_told_of_though_it_has_been_repeated) {
    ROWS("C9-100", "C9-112");
    connect();
    memory::RegionInit init = peer.machine().region->init();
    memory::Region* region = peer.machine().keys().add_region(std::move(init));
    const std::uint32_t key = region->key();
    peer.hold();
    peer.sends(read(0, key, kBase, 700));
    peer.step(1);
    peer.expects(response_first(0));
    peer.sends(read(0, key, kBase, 700));
    peer.machine().keys().remove_region(region);
    peer.release();
    peer.expects(nak(transport::kNakRemoteAccess, 0));
    peer.raises(QpEvent::kAccessError);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(Responder, C9_101_a_bad_read_keeps_what_follows_from_being_executed) {
    ROWS("C9-101", "C9-89");
    XRC_ROWS("o9-63");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.hold();
    peer.sends(read(0, 0xDEAD, kBase, 10));
    peer.sends(send_only(1, 10).asks_ack());
    peer.release();
    peer.expects(nak(transport::kNakRemoteAccess, 0).msn(0));
    peer.raises(QpEvent::kAccessError);
    if (!is_xrc()) peer.receives(0, Status::kFlushed);
}

TEST_P(Responder, C9_222_1_1_a_bad_write_with_immediate_ends_its_receive) {
    ROWS("C9-222.1.1", "C9-219.1.1");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.sends(write_only_imm(0, 0xDEAD, kBase, 10, 1));
    peer.expects(nak(transport::kNakRemoteAccess, 0));
    peer.receives(0, Status::kLocalAccess);  // [S?]: mlx5 and rdma_rxe tell it so
    if (is_xrc()) peer.raises(QpEvent::kAccessError);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(Responder, C9_222_1_1_a_misaligned_atomic_is_an_invalid_request) {
    ROWS("C9-222.1.1", "C9-219.1.1", "C9-125");
    for (const int offset : {1, 4, 7}) {
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.sends(fetch_add(0, one_peer.rkey(), kBase + offset, 1));
        one_peer.expects(nak(transport::kNakInvalidRequest, 0));
        one_peer.raises(QpEvent::kAccessError);
        one_peer.ends();
    }
}

TEST_P(Responder, C9_225_a_completion_queue_without_room_puts_the_qp_into_error) {
    ROWS("C9-225");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.machine().queue_full = true;
    peer.sends(send_only(0, 10).asks_ack());
    EXPECT_EQ(peer.state(), QpState::kError);
    peer.raises(QpEvent::kFatal);
    peer.raises_nothing();
    peer.sends(write_only(1, peer.rkey(), kBase, 10).asks_ack());
    peer.forgets();
    peer.sends(write_only(2, peer.rkey(), kBase, 10).asks_ack());
    peer.expects_nothing();
}

TEST_P(Responder, C9_223_1_1_a_header_at_fault_is_told_to_nobody) {
    ROWS("C9-223.1.1");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.sends(send_only(0, 10).asks_ack().with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    peer.sends(send_only(0, 10).asks_ack().with([](net::Packet& packet) { packet.lrh.slid = 0x99; }));
    peer.sends(send_only(0, 10).asks_ack().service(net::Service::kUd));
    peer.expects_nothing();
    peer.receives_nothing();
    peer.raises_nothing();
    peer.sends(send_only(0, 10).asks_ack());
    peer.expects(ack(0));
    peer.receives(0);
}

// On XRC every receive is of an SRQ.
class SharedReceives : public RcResponder {
  protected:
    SharedReceives() { peer.machine().receive_queue.is_shared = true; }
};

TEST_F(SharedReceives, o9_157_2_1_a_receive_at_fault_stops_the_qp_and_not_the_srq) {
    ROWS("o9-157.2.1", "C9-220");
    connect();
    ipc::ScatterGatherEntry entry = peer.machine().entry(0, 100);
    entry.lkey = 0xBAD00;
    peer.machine().receive_queue.posted.push_back({7, {entry}, false});
    peer.posts_receive(8, 0, 100);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 1U);
    peer.sends(send_only(0, 10));
    peer.expects(nak(transport::kNakRemoteOperation, 0));
    peer.receives(7, Status::kLocalProtection);
    peer.completes(Status::kFlushed);
    peer.raises(QpEvent::kLastWqeReached);
    EXPECT_EQ(peer.state(), QpState::kError);
    EXPECT_EQ(peer.machine().receive_queue.available(), 1U);  // for the other QPs
}

TEST_F(SharedReceives, o9_157_2_3_an_srq_in_error_stops_the_qp_that_takes_from_it) {
    ROWS("o9-157.2.2", "o9-157.2.3");
    connect();
    peer.machine().receive_queue.is_failed = true;
    peer.sends(send_only(0, 10));
    peer.expects(nak(transport::kNakRemoteOperation, 0));
    EXPECT_EQ(peer.state(), QpState::kError);
    peer.raises(QpEvent::kFatal);
    peer.raises(QpEvent::kLastWqeReached);
    peer.receives_nothing();
}

class Invalidation : public Responder {
  protected:
    /// A region that may be invalidated, as a window of the SRQ's and QP's PD.
    std::uint32_t good_key() {
        memory::RegionInit init = peer.machine().region->init();
        init.may_be_invalidated = true;
        return peer.machine().keys().add_region(std::move(init))->key();
    }
    bool usable(std::uint32_t key) {
        return peer.machine().keys().check_remote(1, kMachineQp, key, kBase, 8, ipc::kAccessRemoteRead).ok();
    }
};

TEST_P(Invalidation, o9_5_2_1_the_key_goes_with_a_good_packet_only) {
    ROWS("o9-5.2.1");
    connect();
    const std::uint32_t key = good_key();
    peer.posts_receive(0, 0, 600);
    peer.sends(send_first(0));
    peer.sends(send_last_inv(2, 10, key));  // another PSN
    peer.expects(nak(transport::kNakSequence, 1));
    EXPECT_TRUE(usable(key));
    peer.sends(send_last_inv(1, 10, key).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    EXPECT_TRUE(usable(key));
    peer.sends(send_last_inv(1, 10, key).asks_ack());
    EXPECT_FALSE(usable(key));
    peer.expects(ack(1));
    const Completion done = peer.receives(0);
    EXPECT_NE(done.flags & ipc::kCqeInvalidate, 0);
    EXPECT_EQ(done.immediate, key);
    peer.sends(send_last_inv(1, 10, key).asks_ack());  // a duplicate
    peer.expects(ack(1));
}

TEST_P(Invalidation, o9_5_2_1_a_send_at_fault_is_told_first_and_invalidates_nothing) {
    ROWS("o9-5.2.1", "o9-162.2.1");
    connect();
    const std::uint32_t key = good_key();
    peer.posts_receive(0, 0, 100);
    peer.sends(send_only_inv(0, 101, key));
    peer.expects(nak(transport::kNakInvalidRequest, 0));
    peer.receives(0, Status::kLocalLength);
    if (is_xrc()) peer.raises(QpEvent::kAccessError);
    EXPECT_TRUE(usable(key));
}

// [S?] The status of a failed invalidation is LOC_ACCESS_ERR, as mlx5 has it.
TEST_P(Invalidation, o9_162_2_1_a_bad_key_fails_the_receive_and_not_the_send) {
    ROWS("o9-162.2.1", "o9-5.2.2", "C9-219.1.1");
    memory::RegionInit init = peer.machine().region->init();
    init.may_be_invalidated = true;
    init.pd = 2;
    const std::uint32_t of_other_pd = peer.machine().keys().add_region(init)->key();
    const std::uint32_t of_reg_mr = peer.rkey();
    const std::uint32_t type_1 = peer.machine().keys().add_window(1, memory::WindowType::kType1)->key();
    for (const std::uint32_t key : {of_other_pd, of_reg_mr, type_1, 0xDEAD00U, 0U}) {
        Peer one_peer(GetParam());
        memory::KeyTable& keys = one_peer.machine().keys();  // the same keys as above: the seed is the same
        memory::RegionInit again = one_peer.machine().region->init();
        again.may_be_invalidated = true;
        again.pd = 2;
        keys.add_region(again);
        keys.add_window(1, memory::WindowType::kType1);
        one_peer.connect();
        one_peer.posts_receive(0, 0, 100);
        one_peer.posts_receive(1, 0, 100);
        one_peer.sends(send_only_inv(0, 10, key).asks_ack());
        one_peer.expects(ack(0).msn(1));
        one_peer.receives(0, Status::kLocalAccess);
        if (!is_xrc()) one_peer.receives(1, Status::kFlushed);
        if (is_xrc()) one_peer.raises(QpEvent::kAccessError);
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.ends();
    }
}

TEST_P(Invalidation, o9_5_2_2_windows_of_type_2_belong_to_their_qp) {
    ROWS("o9-5.2.2");
    connect();
    memory::KeyTable& keys = peer.machine().keys();
    const auto bound = [&](std::uint32_t qp) {
        memory::Window* window = keys.add_window(1, memory::WindowType::kType2);
        memory::BindRequest request;
        request.pd = 1;
        request.qp_number = qp;
        request.region_key = peer.machine().region->key();
        request.new_key = (window->key() & ~0xFFU) | ((window->key() + 1) & 0xFF);
        request.address = kBase;
        request.length = 100;
        request.access = ipc::kAccessRemoteRead;
        EXPECT_EQ(keys.bind(window, request), memory::AccessError::kNone);
        return window->key();
    };
    const std::uint32_t own = bound(kMachineQp);
    const std::uint32_t foreign = bound(kMachineQp + 1);
    peer.posts_receive(0, 0, 100);
    peer.posts_receive(1, 0, 100);
    peer.posts_receive(2, 0, 100);
    peer.sends(send_only_inv(0, 10, own).asks_ack());
    peer.expects(ack(0));
    peer.receives(0);
    EXPECT_FALSE(usable(own));
    peer.sends(send_only_inv(1, 10, own).asks_ack());  // free already: stays so
    peer.expects(ack(1));
    peer.receives(1);
    peer.sends(send_only_inv(2, 10, foreign).asks_ack());
    peer.expects(ack(2));
    peer.receives(2, Status::kLocalAccess);
    if (is_xrc()) peer.raises(QpEvent::kAccessError);
}

INSTANTIATE_TEST_SUITE_P(On, Invalidation,
                         ::testing::Values(transport::Service::kRc, transport::Service::kXrcTarget),
                         service_name);

}  // namespace
}  // namespace uib::conformance
