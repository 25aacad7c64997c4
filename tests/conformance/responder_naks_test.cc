// What a reliable responder refuses, in the order of Figure 89: PSN, opcode sequence, opcode, PadCnt,
// resources, R_Key, length (IBA 9.7.4.1, 9.7.5.1.5, 9.7.5.2; classes B and C of 9.9.3, on XRC K).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;
constexpr std::uint32_t kNoKey = 0xDEAD;

/// A NAK of class C or K ends the connection; `event` is raised where no receive tells of it, on XRC always.
void refused(Peer& peer, std::uint8_t syndrome, int psn, QpEvent event, Where where = Where::current()) {
    peer.expects(nak(syndrome, psn), where);
    peer.raises(event, where);
    EXPECT_EQ(peer.state(), QpState::kError) << where.line();
    peer.expects_nothing(where);
    peer.forgets();
}

/// One request to a fresh connection is refused; `prepare` sets it up.
struct Refused {
    const char* name;
    std::vector<Frame> frames;  ///< all but the last are good
    std::uint8_t syndrome;
    QpEvent event;
};

void run_refused(transport::Service service, const Refused& one, const std::function<void(Peer&)>& prepare) {
    SCOPED_TRACE(one.name);
    Peer peer(service);
    prepare(peer);
    peer.connect();
    for (const Frame& frame : one.frames) peer.sends(frame);
    refused(peer, one.syndrome, static_cast<int>(one.frames.size()) - 1, one.event);
    peer.ends();
}

TEST_P(Responder, C9_79_a_psn_ahead_gets_one_sequence_nak) {
    ROWS("C9-79", "C9-80", "C9-114", "C9-121", "C9-122", "C9-111", "C9-74", "C9-113.a1", "C9-221");
    XRC_ROWS("o9-45", "o9-46", "o9-39", "o9-158");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.sends(write_only(0, peer.rkey(), kBase, 10));
    peer.sends(send_only(2, 10).asks_ack());
    peer.expects(nak(transport::kNakSequence, 1).msn(1));
    peer.sends(send_only(3, 10).asks_ack());
    peer.sends(send_middle(4).asks_ack());  // other faults do not count either
    peer.sends(write_only(5, kNoKey, kBase, 10).asks_ack());
    peer.sends(read(6, kNoKey, kBase, 10));
    peer.expects_nothing();
    peer.receives_nothing();
    peer.raises_nothing();
    EXPECT_EQ(peer.machine().qp->receive_psn(), Wire::psn(1));
    peer.sends(write_only(1, peer.rkey(), kBase, 10));
    peer.sends(send_only(2, 10).asks_ack());
    peer.expects(ack(2).msn(3));
    peer.receives(0);
    peer.sends(send_only(9, 10));  // a new gap, a new NAK
    peer.expects(nak(transport::kNakSequence, 3));
}

TEST_P(Responder, C9_79_earlier_requests_are_executed_before_the_sequence_nak) {
    ROWS("C9-79", "C9-111");
    XRC_ROWS("o9-45");
    connect();
    peer.hold();
    peer.sends(read(0, peer.rkey(), kBase, 300));
    peer.sends(write_only(2, peer.rkey(), kBase + 1000, 10));
    peer.sends(write_only(5, peer.rkey(), kBase, 10));
    peer.release();
    peer.expects(response_first(0));
    peer.expects(response_last(1, 44));
    peer.expects(nak(transport::kNakSequence, 3).msn(2));
}

TEST_P(Responder, C9_81_opcodes_out_of_sequence_are_invalid_requests) {
    ROWS("C9-81", "C9-125", "C9-111", "C9-113.a1", "C9-222.1.1", "C9-219.1.1");
    XRC_ROWS("o9-47");
    const auto nothing = [](Peer&) {};
    const auto key = peer.rkey();
    const Refused cases[] = {
        {"Middle at the start", {send_middle(0)}, 0x61, QpEvent::kRequestError},
        {"Last at the start", {send_last(0, 10)}, 0x61, QpEvent::kRequestError},
        {"WRITE Middle at the start", {write_middle(0)}, 0x61, QpEvent::kRequestError},
        {"WRITE Last behind Only",
         {write_only(0, key, kBase, 9), write_last(1, 9)},
         0x61,
         QpEvent::kRequestError},
        {"WRITE First behind First",
         {write_first(0, key, kBase, 600), write_first(1, key, kBase, 600)},
         0x61,
         QpEvent::kRequestError},
        {"SEND Last behind WRITE First",
         {write_first(0, key, kBase, 300), send_last(1, 44)},
         0x61,
         QpEvent::kRequestError},
        {"READ inside a WRITE",
         {write_first(0, key, kBase, 600), read(1, key, kBase, 10)},
         0x61,
         QpEvent::kRequestError},
        {"atomic inside a WRITE",
         {write_first(0, key, kBase, 600), fetch_add(1, key, kBase, 1)},
         0x61,
         QpEvent::kRequestError},
    };
    for (const Refused& one : cases) run_refused(GetParam(), one, nothing);
}

TEST_P(Responder, C9_81_an_open_send_takes_nothing_but_its_rest) {
    ROWS("C9-81", "C9-222.1.1");
    XRC_ROWS("o9-47");
    const auto key = peer.rkey();
    const Frame breakers[] = {send_first(1),
                              send_only(1, 10),
                              write_middle(1),
                              write_last(1, 10),
                              write_only(1, key, kBase, 10),
                              read(1, key, kBase, 10)};
    for (const Frame& breaker : breakers) {
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts_receive(0, 0, 1000);
        one_peer.posts_receive(1, 0, 1000);
        one_peer.sends(send_first(0));
        one_peer.sends(breaker);
        one_peer.expects(nak(transport::kNakInvalidRequest, 1).msn(0));
        one_peer.receives(0, Status::kRemoteInvalidRequest);
        if (!is_xrc()) one_peer.receives(1, Status::kFlushed);
        if (is_xrc()) one_peer.raises(QpEvent::kRequestError);
        EXPECT_EQ(one_peer.state(), QpState::kError);
        one_peer.ends();
    }
}

TEST_P(Responder, C9_83_a_function_that_the_qp_was_not_set_up_for_is_an_invalid_request) {
    ROWS("C9-82", "C9-83", "C9-125");
    XRC_ROWS("o9-50");
    const auto without_rights = [](Peer& one_peer) { one_peer.parameters().access = 0; };
    const auto key = peer.rkey();
    for (const Frame& frame :
         {write_only(0, key, kBase, 10), write_first(0, key, kBase, 300), write_only(0, key, kBase, 0),
          read(0, key, kBase, 10), read(0, key, kBase, 0), fetch_add(0, key, kBase, 1),
          compare_swap(0, key, kBase, 1, 2), atomic_write(0, key, kBase)})
        run_refused(GetParam(), {"function", {frame}, 0x61, QpEvent::kRequestError}, without_rights);
}

// 0x1D is ATOMIC WRITE since release 1.7 and not reserved here.
TEST_P(Responder, C9_84_reserved_opcodes_are_invalid_requests) {
    ROWS("C9-82", "C9-84");
    XRC_ROWS("o9-51");
    for (const std::uint8_t operation : {0x15, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1E, 0x1F}) {
        const Frame frame = send_only(0, 100).bits(Part::kBth, 0, operation, 0x1F);
        run_refused(GetParam(), {"opcode", {frame}, 0x61, QpEvent::kRequestError}, [](Peer&) {});
    }
}

TEST_P(Responder, C9_85_first_and_middle_have_no_padding) {
    ROWS("C9-85", "C9-92", "C9-93");
    XRC_ROWS("o9-52");
    const auto receive = [](Peer& one_peer) { one_peer.posts_receive(0, 0, 1000); };
    const auto key = peer.rkey();
    for (const std::uint8_t pad : {1, 2, 3}) {
        run_refused(GetParam(), {"SEND First", {send_first(0).pad(pad)}, 0x61, QpEvent::kAccessError},
                    receive);
        run_refused(GetParam(),
                    {"WRITE First", {write_first(0, key, kBase, 600).pad(pad)}, 0x61, QpEvent::kAccessError},
                    receive);
        run_refused(GetParam(),
                    {"WRITE Middle",
                     {write_first(0, key, kBase, 600), write_middle(1).pad(pad)},
                     0x61,
                     QpEvent::kAccessError},
                    receive);
    }
}

TEST_P(Responder, C9_86_more_reads_and_atomics_than_agreed_are_an_invalid_request) {
    ROWS("C9-86", "C9-82", "C9-87");
    XRC_ROWS("o9-53", "o9-54");
    peer.parameters().max_dest_rd_atomic = 2;
    connect();
    peer.hold();
    peer.sends(read(0, peer.rkey(), kBase, 10));
    peer.sends(fetch_add(1, peer.rkey(), kBase, 1));
    peer.sends(read(2, peer.rkey(), kBase, 10));
    peer.release();
    peer.expects(response_only(0, 10));
    peer.expects(Frame(Op::kAtomicAcknowledge, 1));
    refused(peer, transport::kNakInvalidRequest, 2, QpEvent::kAccessError);
}

TEST_P(Responder, C9_86_without_places_every_read_is_an_invalid_request) {
    ROWS("C9-86");
    XRC_ROWS("o9-53");
    const auto none = [](Peer& one_peer) { one_peer.parameters().max_dest_rd_atomic = 0; };
    run_refused(GetParam(), {"READ", {read(0, peer.rkey(), kBase, 10)}, 0x61, QpEvent::kAccessError}, none);
    run_refused(GetParam(), {"atomic", {fetch_add(0, peer.rkey(), kBase, 1)}, 0x61, QpEvent::kAccessError},
                none);
}

TEST_P(Responder, C9_86_places_are_free_again_once_answered) {
    ROWS("C9-86");
    XRC_ROWS("o9-53");
    peer.parameters().max_dest_rd_atomic = 2;
    connect();
    for (int psn = 0; psn < 20; psn += 2) {
        peer.hold();
        peer.sends(read(psn, peer.rkey(), kBase, 10));
        peer.sends(fetch_add(psn + 1, peer.rkey(), kBase, 1));
        peer.release();
        peer.expects(response_only(psn, 10));
        peer.expects(Frame(Op::kAtomicAcknowledge, psn + 1));
    }
}

TEST_P(Responder, C9_87_everything_before_an_invalid_request_is_done_first) {
    ROWS("C9-87", "C9-90", "C9-28");
    XRC_ROWS("o9-54");
    for (const bool bad_key : {false, true}) {
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts_receive(0, 0, 100);
        one_peer.hold();
        one_peer.sends(read(0, one_peer.rkey(), kBase, 300));
        one_peer.sends(send_only(2, 10).bytes(3));
        one_peer.sends(bad_key ? write_only(3, kNoKey, kBase, 10) : send_last(3, 10));
        one_peer.release();
        one_peer.expects(response_first(0));
        one_peer.expects(response_last(1, 44));
        one_peer.receives(0);
        EXPECT_TRUE(one_peer.machine().holds(0, 10, 3));
        one_peer.expects(nak(bad_key ? 0x62 : 0x61, 3).msn(2));
        one_peer.raises(bad_key ? QpEvent::kAccessError : QpEvent::kRequestError);
        one_peer.ends();
    }
}

TEST_P(Responder, C9_88_a_zero_length_needs_no_key) {
    ROWS("C9-88");
    XRC_ROWS("o9-55");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.sends(write_only_imm(0, kNoKey, 0, 0, 5).asks_ack());
    peer.expects(ack(0));
    EXPECT_EQ(peer.receives(0).immediate, 5U);
    peer.sends(write_only(1, kNoKey, 0, 0).asks_ack());
    peer.expects(ack(1));
    peer.sends(read(2, kNoKey, 0, 0));
    peer.expects(response_only(2, 0).msn(3));
}

TEST_P(Responder, C9_89_r_key_violations_are_remote_access_errors) {
    ROWS("C9-89", "C9-124", "C9-222.1.1", "C9-219.1.1");
    XRC_ROWS("o9-73");
    if (!is_xrc()) ROWS("C9-89", "C9-124", "C9-222.1.1", "C9-219.1.1", "o9-73");
    memory::Region* read_only = nullptr;
    memory::Region* foreign = nullptr;
    const auto make = [](Peer& one_peer, memory::PdId pd, std::uint32_t access) {
        memory::RegionInit init;
        init.pd = pd;
        init.access = access;
        init.iova = init.space_address = kBase;
        init.length = 1000;
        init.space = one_peer.machine().space;
        return one_peer.machine().keys().add_region(std::move(init));
    };
    // Keys are the same in each fresh station.
    Peer probe(GetParam());
    read_only = make(probe, 1, ipc::kAccessLocalWrite);
    foreign = make(probe, 2, ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead);
    const std::uint32_t no_rights_key = read_only->key();
    const std::uint32_t foreign_key = foreign->key();
    const auto prepare = [&](Peer& one_peer) {
        make(one_peer, 1, ipc::kAccessLocalWrite);
        make(one_peer, 2, ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead);
    };
    const std::uint64_t end = kBase + Station::kMemory;
    const std::uint32_t key = peer.rkey();
    for (const Frame& frame :
         {write_only(0, kNoKey, kBase, 10), write_only(0, key, kBase - 1, 10),
          write_only(0, key, end - 9, 10), write_only(0, key, ~0ULL - 4, 10),
          write_only(0, no_rights_key, kBase, 10), write_only(0, foreign_key, kBase, 10),
          read(0, kNoKey, kBase, 10), read(0, key, end - 9, 10), read(0, no_rights_key, kBase, 10),
          read(0, foreign_key, kBase, 10), fetch_add(0, kNoKey, kBase, 1), fetch_add(0, key, end - 7, 1),
          compare_swap(0, foreign_key, kBase, 1, 2), atomic_write(0, kNoKey, kBase)})
        run_refused(GetParam(), {"key", {frame}, 0x62, QpEvent::kAccessError}, prepare);
}

// The whole range of a WRITE is checked with its First packet, so a range that ends outside is refused there
// (as rdma_rxe does); a key that goes away is noticed by the packet that comes after.
TEST_P(Responder, C9_124_the_nak_has_the_psn_of_the_packet_at_fault) {
    ROWS("C9-124", "C9-89");
    connect();
    memory::RegionInit init = peer.machine().region->init();
    memory::Region* region = peer.machine().keys().add_region(std::move(init));
    peer.sends(write_first(0, region->key(), kBase, 600));
    peer.machine().keys().remove_region(region);
    peer.sends(write_middle(1));
    refused(peer, transport::kNakRemoteAccess, 1, QpEvent::kAccessError);
    Peer other(GetParam());
    other.connect();
    other.sends(write_first(0, other.rkey(), kBase + Station::kMemory - 300, 600));
    refused(other, transport::kNakRemoteAccess, 0, QpEvent::kAccessError);
    other.ends();
}

TEST_P(Responder, C9_91_a_send_longer_than_the_receive_is_an_invalid_request) {
    ROWS("C9-91", "C9-222.1.1", "C9-219.1.1");
    connect();
    peer.posts_receive(0, 0, 100);
    peer.posts_receive(1, 0, 100);
    peer.sends(send_only(0, 101));
    peer.expects(nak(transport::kNakInvalidRequest, 0).msn(0));
    peer.receives(0, Status::kLocalLength);
    if (!is_xrc()) peer.receives(1, Status::kFlushed);
    if (is_xrc()) peer.raises(QpEvent::kAccessError);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(Responder, C9_92_lengths_must_fit_the_opcode) {
    ROWS("C9-92", "C9-93");
    const std::uint32_t key = peer.rkey();
    const auto nothing = [](Peer&) {};
    const Refused writes[] = {
        {"short First", {write_first(0, key, kBase, 600).length(252)}, 0x61, QpEvent::kAccessError},
        {"long First", {write_first(0, key, kBase, 600).length(260)}, 0x61, QpEvent::kAccessError},
        {"short Middle",
         {write_first(0, key, kBase, 600), write_middle(1).length(252)},
         0x61,
         QpEvent::kAccessError},
        {"empty Last", {write_first(0, key, kBase, 256), write_last(1, 0)}, 0x61, QpEvent::kAccessError},
        {"long Last", {write_first(0, key, kBase, 516), write_last(1, 260)}, 0x61, QpEvent::kAccessError},
        {"long Only", {write_only(0, key, kBase, 260)}, 0x61, QpEvent::kAccessError},
        {"less than DMALen",
         {write_first(0, key, kBase, 600), write_last(1, 10)},
         0x61,
         QpEvent::kAccessError},
        {"more than DMALen",
         {write_first(0, key, kBase, 300), write_last(1, 45)},
         0x61,
         QpEvent::kAccessError},
    };
    for (const Refused& one : writes) run_refused(GetParam(), one, nothing);
    const std::vector<Frame> sends[] = {{send_first(0).length(252)},
                                        {send_first(0).length(260)},
                                        {send_only(0, 260)},
                                        {send_first(0), send_middle(1).length(252)},
                                        {send_first(0), send_last(1, 0)},
                                        {send_first(0), send_last(1, 260)}};
    for (const std::vector<Frame>& frames : sends) {
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts_receive(0, 0, 1000);
        for (const Frame& frame : frames) one_peer.sends(frame);
        one_peer.expects(nak(transport::kNakInvalidRequest, static_cast<int>(frames.size()) - 1));
        one_peer.receives(0, Status::kRemoteInvalidRequest);
        if (is_xrc()) one_peer.raises(QpEvent::kAccessError);
        one_peer.ends();
    }
}

TEST_P(Responder, C9_94_a_read_of_more_than_2_to_the_31_bytes_is_an_invalid_request) {
    ROWS("C9-94", "C9-9");
    run_refused(GetParam(), {"READ", {read(0, peer.rkey(), kBase, 0x80000001)}, 0x61, QpEvent::kAccessError},
                [](Peer&) {});
}

TEST_P(Responder, C9_73_the_first_check_in_the_order_of_the_figure_decides) {
    ROWS("C9-73", "C9-77");
    XRC_ROWS("o9-37");
    // PSN before sequence, sequence before function, function before resources, resources before the key.
    connect();
    peer.sends(send_middle(3));
    peer.expects(nak(transport::kNakSequence, 0));
    peer.raises_nothing();
    const auto without_rights = [](Peer& one_peer) { one_peer.parameters().access = 0; };
    const auto without_places = [](Peer& one_peer) { one_peer.parameters().max_dest_rd_atomic = 0; };
    run_refused(GetParam(), {"sequence", {write_middle(0)}, 0x61, QpEvent::kRequestError}, without_rights);
    run_refused(GetParam(), {"function", {write_only(0, kNoKey, kBase, 10)}, 0x61, QpEvent::kRequestError},
                without_rights);
    run_refused(GetParam(), {"places", {read(0, kNoKey, kBase, 10)}, 0x61, QpEvent::kAccessError},
                without_places);
    Peer no_receive(GetParam());
    no_receive.connect();
    no_receive.sends(write_only_imm(0, kNoKey, kBase, 10, 1));
    no_receive.expects(rnr_nak(12, 0));
    no_receive.ends();
}

}  // namespace
}  // namespace uib::conformance
