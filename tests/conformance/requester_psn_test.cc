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

}  // namespace
}  // namespace uib::conformance
