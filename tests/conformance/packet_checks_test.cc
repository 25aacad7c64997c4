// Checks of section 9.6 that a packet passes before any service looks at it, on the bytes of the wire.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

TEST_P(Responder, C9_36_a_version_other_than_0_is_dropped) {
    ROWS("C9-36");
    connect();
    peer.posts_receive(0, 0, 1000);
    for (std::uint8_t version = 1; version < 16; ++version) {
        peer.sends(send_only(0, 100).asks_ack().bits(Part::kBth, 1, version, 0x0F));
        peer.expects_nothing();
        peer.receives_nothing();
    }
    peer.sends(send_only(0, 100).asks_ack());
    peer.expects(ack(0).msn(1));
    peer.receives(0);
}

}  // namespace
}  // namespace uib::conformance
