// What starts, restarts and does not restart the transport timer (IBA 9.7.6.1.3): it runs from the first
// packet whose response is awaited, is begun anew by an acknowledge, and by nothing that is dropped.
#include "engine/transport/rnr_timer.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr unsigned kTimeout = 14;
constexpr Time kDetected = transport::ack_timeout(kTimeout);

TEST_P(Requester, C9_139_what_is_dropped_does_not_restart_the_timer) {
    ROWS("C9-139", "C9-120", "C9-133", "C9-136", "C9-138");
    XRC_ROWS("o9-84", "o9-80", "o9-83", "o9-79");
    const std::pair<const char*, Frame> dropped[] = {
        {"duplicate", ack(0)},
        {"older duplicate", ack(-5)},
        {"duplicate NAK", nak(transport::kNakSequence, 0)},
        {"duplicate RNR NAK", rnr_nak(31, 0)},
        {"ghost", ack(2)},
        {"ghost of a READ", response_only(5, 10)},
        {"reserved code", nak(0x65, 1)},
        {"reserved type", nak(0x40, 1)},
        {"NAK code in a READ response", response_only(1, 0).syndrome(transport::kNakSequence)},
        {"bad P_Key", ack(1).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; })},
        {"bad LID", ack(1).with([](net::Packet& packet) { packet.lrh.slid = 0x99; })},
    };
    for (const auto& [name, frame] : dropped) {
        SCOPED_TRACE(name);
        Peer one_peer(GetParam());
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.expects(write_only(0, kRemoteKey, kRemoteAddress, 10));
        one_peer.sends(ack(0));
        one_peer.completes();
        one_peer.posts(WorkOpcode::kRdmaWrite, 10);
        one_peer.expects(write_only(1, kRemoteKey, kRemoteAddress, 10));
        for (int i = 0; i < 3; ++i) {
            one_peer.after(kDetected / 4);
            one_peer.sends(frame);
            one_peer.expects_nothing();
        }
        one_peer.after(kDetected - 3 * (kDetected / 4));
        one_peer.expects(write_only(1, kRemoteKey, kRemoteAddress, 10));
        one_peer.completes_nothing();
        one_peer.ends();
    }
}

// A client that posts without end would keep a timer that each request restarts from running out.
TEST_P(Requester, C9_139_a_request_does_not_restart_the_timer_that_runs) {
    ROWS("C9-139", "C9-141");
    XRC_ROWS("o9-84", "o9-87");
    connect();
    constexpr int kPosts = 8;
    for (int i = 0; i < kPosts; ++i) {
        peer.posts(WorkOpcode::kRdmaWrite, 10);
        peer.expects(write_only(i, kRemoteKey, kRemoteAddress, 10));
        peer.after(kDetected / kPosts);
    }
    for (int i = 0; i < kPosts; ++i) peer.expects(write_only(i, kRemoteKey, kRemoteAddress, 10));
}

TEST_P(Requester, C9_139_the_timer_stands_during_the_wait_after_an_rnr_nak) {
    ROWS("C9-139", "C9-130");
    XRC_ROWS("o9-84", "o9-76.a1");
    peer.parameters().timeout = 8;
    peer.parameters().retry_count = 1;
    connect();
    peer.posts(WorkOpcode::kSend, 10);
    peer.expects(send_only(0, 10));
    peer.sends(rnr_nak(31, 0));
    peer.after(us(491519));
    peer.expects_nothing();
    peer.after(us(1));
    peer.expects(send_only(0, 10));
    EXPECT_EQ(peer.machine().count().timeouts, 0U);
    peer.after(transport::ack_timeout(8));  // and runs again behind it
    peer.expects(send_only(0, 10));
    peer.sends(ack(0));
    peer.completes();
}

}  // namespace
}  // namespace uib::conformance
