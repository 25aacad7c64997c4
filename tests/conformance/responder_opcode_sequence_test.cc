// Opcode sequences at the reliable responder (IBA 9.7.4.1.3, Table 45).
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

TEST_P(Responder, C9_81_middle_without_first_is_an_invalid_request) {
    ROWS("C9-81");
    XRC_ROWS("o9-47");
    connect();
    peer.posts_receive(0, 0, 1000);
    peer.sends(send_middle(0));
    peer.expects(nak(transport::kNakInvalidRequest, 0).msn(0));
    peer.raises(QpEvent::kRequestError);
    if (!is_xrc()) peer.receives(0, Status::kFlushed);  // an SRQ's receives stay in it
    EXPECT_EQ(peer.state(), QpState::kError);
}

}  // namespace
}  // namespace uib::conformance
