// Requests of a form that no requester makes: what may stand inside a message (Table 45), payload where none
// belongs, padding in the middle, more bytes than a message has (IBA 9.7.4.1.3, 9.7.4.1.4, 9.7.4.1.6).
#include "engine/memory/null_space.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint64_t kBase = Station::kBase;

/// Two receives are posted; the last of `frames` is an invalid request, with `event` where no receive tells.
void refused(transport::Service service, std::vector<Frame> frames, QpEvent event,
             Where where = Where::current()) {
    Peer peer(service);
    peer.connect();
    peer.machine().fill(4096, 1000, 9);
    peer.posts_receive(0, 0, 1000);
    peer.posts_receive(1, 0, 1000);
    for (Frame& frame : frames) peer.sends(frame.asks_ack(false));
    peer.expects(nak(transport::kNakInvalidRequest, static_cast<int>(frames.size()) - 1).msn(0), where);
    const bool xrc = service == transport::Service::kXrcTarget;
    const std::vector<Completion>& told = peer.machine().receives;
    const bool in_use = !told.empty() && told.front().status == Status::kRemoteInvalidRequest;
    if (!in_use || xrc) peer.raises(event, where);
    EXPECT_EQ(peer.state(), QpState::kError) << where.line();
    EXPECT_EQ(told.size(), xrc ? (in_use ? 1U : 0U) : 2U) << where.line();
    EXPECT_TRUE(peer.machine().holds(4096, 1000, 9)) << where.line();
    peer.forgets();
    peer.ends();
}

TEST_P(Responder, C9_81_inside_a_message_nothing_but_its_own_rest_is_in_sequence) {
    ROWS("C9-81", "C9-125");
    XRC_ROWS("o9-47");
    const std::uint32_t key = peer.rkey();
    const std::vector<Frame> never = {
        send_first(1),
        send_only(1, 10),
        send_only_imm(1, 10, 7),
        send_only_inv(1, 10, key),
        write_first(1, key, kBase + 4096, 600),
        write_only(1, key, kBase + 4096, 10),
        write_only_imm(1, key, kBase + 4096, 10, 7),
        read(1, key, kBase, 10),
        compare_swap(1, key, kBase + 4096, 1, 2),
        fetch_add(1, key, kBase + 4096, 1),
        atomic_write(1, key, kBase + 4096),
    };
    const std::vector<Frame> of_a_send = {send_middle(1), send_last(1, 10), send_last_imm(1, 10, 7),
                                          send_last_inv(1, 10, key)};
    const std::vector<Frame> of_a_write = {write_middle(1), write_last(1, 10), write_last_imm(1, 10, 7)};
    const Frame open_write = write_first(0, key, kBase + 8192, 600);
    for (const Frame& frame : never) {
        refused(GetParam(), {send_first(0), frame}, QpEvent::kRequestError);
        refused(GetParam(), {open_write, frame}, QpEvent::kRequestError);
    }
    for (const Frame& frame : of_a_send) refused(GetParam(), {open_write, frame}, QpEvent::kRequestError);
    for (const Frame& frame : of_a_write) refused(GetParam(), {send_first(0), frame}, QpEvent::kRequestError);
}

TEST_P(Responder, C9_81_without_a_message_nothing_can_go_on) {
    ROWS("C9-81", "C9-125");
    XRC_ROWS("o9-47");
    for (const Frame& frame :
         {send_middle(0), send_last(0, 10), send_last_imm(0, 10, 7), send_last_inv(0, 10, peer.rkey()),
          write_middle(0), write_last(0, 10), write_last_imm(0, 10, 7)})
        refused(GetParam(), {frame}, QpEvent::kRequestError);
}

TEST_P(Responder, C9_85_the_middle_of_a_send_has_no_padding) {
    ROWS("C9-85");
    XRC_ROWS("o9-52");
    for (const std::uint8_t pad : {1, 2, 3})
        refused(GetParam(), {send_first(0), send_middle(1).pad(pad)}, QpEvent::kAccessError);
}

TEST_P(Responder, C9_92_a_read_or_atomic_request_has_no_payload) {
    ROWS("C9-92", "C9-93");
    const std::uint32_t key = peer.rkey();
    for (const std::size_t length : {4U, 256U}) {
        refused(GetParam(), {read(0, key, kBase, 10).length(length)}, QpEvent::kAccessError);
        refused(GetParam(), {fetch_add(0, key, kBase + 4096, 1).length(length)}, QpEvent::kAccessError);
        refused(GetParam(), {compare_swap(0, key, kBase + 4096, 1, 2).length(length)}, QpEvent::kAccessError);
    }
}

TEST_P(Responder, C9_9_a_write_of_more_than_2_to_the_31_bytes_is_an_invalid_request) {
    ROWS("C9-9", "C9-93");
    for (const std::uint32_t above : {0U, 1U}) {
        Peer one_peer(GetParam());
        memory::RegionInit init;
        init.pd = 1;
        init.access = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite;
        init.length = std::uint64_t{1} << 32;
        init.space = std::make_shared<memory::NullSpace>();
        const std::uint32_t key = one_peer.machine().keys().add_region(std::move(init))->key();
        one_peer.connect();
        one_peer.sends(write_first(0, key, 0, (1U << 31) + above).asks_ack());
        if (above == 0) {
            one_peer.expects(ack(0).msn(0));
        } else {
            one_peer.expects(nak(transport::kNakInvalidRequest, 0));
            one_peer.raises(QpEvent::kAccessError);
        }
        one_peer.ends();
    }
}

}  // namespace
}  // namespace uib::conformance
