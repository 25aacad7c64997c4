// Packet sequence numbers of the reliable requester (IBA 9.7.1, 9.7.3.1).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

TEST_P(Requester, C9_66_a_read_takes_as_many_psns_as_responses) {
    ROWS("C9-66", "C9-64", "C9-62");
    XRC_ROWS("o9-33", "o9-31", "o9-29");
    connect();
    peer.posts(WorkOpcode::kRdmaRead, 700);
    peer.posts(WorkOpcode::kRdmaRead, 0);
    peer.posts(WorkOpcode::kRdmaWrite, 300);
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 700));
    peer.expects(read(3, kRemoteKey, kRemoteAddress, 0));
    peer.expects(write_first(4, kRemoteKey, kRemoteAddress, 300));
    peer.expects(write_last(5, 44).asks_ack());
    peer.sends(response_first(0));
    peer.sends(response_middle(1));
    peer.sends(response_last(2, 188));
    peer.completes();
    peer.sends(response_only(3, 0));
    peer.completes();
    peer.sends(ack(5));
    peer.completes();
}

TEST_P(Requester, C9_65_the_first_psn_is_that_of_the_client_and_wraps) {
    ROWS("C9-65", "C9-66", "C9-62");
    XRC_ROWS("o9-32", "o9-33", "o9-29");
    for (const std::uint32_t first : {0U, 1U, 0x800000U, 0xFFFFFFU}) {
        Peer one_peer(GetParam());
        one_peer.parameters().sq_psn = first;
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 300);
        one_peer.posts(WorkOpcode::kFetchAdd, 8);
        for (std::uint32_t i = 0; i < 3; ++i)
            EXPECT_EQ(one_peer.hears().packet.bth.psn, (first + i) & 0xFFFFFF);
        one_peer.ends();
    }
}

TEST_P(Requester, C9_62_psns_run_on_through_the_wrap) {
    ROWS("C9-62", "C9-64", "C9-66");
    XRC_ROWS("o9-29", "o9-31", "o9-33");
    connect();
    for (int psn = 0; psn < 40; psn += 4) {
        peer.posts(WorkOpcode::kRdmaWrite, 300);
        peer.posts(WorkOpcode::kRdmaRead, 300);
        peer.expects(write_first(psn, kRemoteKey, kRemoteAddress, 300));
        peer.expects(write_last(psn + 1, 44));
        peer.expects(read(psn + 2, kRemoteKey, kRemoteAddress, 300));
        peer.sends(response_first(psn + 2));
        peer.sends(response_last(psn + 3, 44));
        peer.completes();
        peer.completes();
    }
    EXPECT_EQ(peer.machine().qp->send_psn(), (kStartPsn + 40) & 0xFFFFFF);
}

}  // namespace
}  // namespace uib::conformance
