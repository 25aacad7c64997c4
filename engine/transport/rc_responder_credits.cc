// End-to-end credits at the responder (IBA 9.7.7.2).
//
// Each acknowledge tells how many receives lie beyond its MSN: the one that an unfinished SEND has taken is
// among them (C9-161). Queues that are shared, and XRC, tell none.
//
// An unsolicited acknowledge (C9-152, C9-155) brings credits to a peer that was told it has none. No
// requester depends on it: without credits it sends one packet, whose acknowledge tells more. It saves time
// only before a SEND of several packets, so it is sent when the newest SEND began as one without credits
// does, at most once after each acknowledge that gave none, and only where it can repeat the newest PSN as an
// ACK: after a READ or atomic the peer might take it for their answer. Posting a receive wakes nobody; it
// goes out when the QP next runs.
#include "engine/transport/aeth.h"
#include "engine/transport/credits.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

std::uint8_t RcResponder::ack_syndrome() {
    if (xrc_) return kNoCreditCode;
    ReceiveQueue* queue = machine_.receive_queue();
    if (queue != nullptr && queue->shared()) return kNoCreditCode;
    const std::uint32_t posted = queue == nullptr ? 0 : queue->available();
    const std::uint32_t credits = posted + (machine_.receive().in_use() ? 1 : 0);
    told_none_ = credits == 0;
    return encode_credits(credits);
}

bool RcResponder::should_tell_credits() const {
    if (!told_none_ || !peer_may_wait_ || waiting_ || open_ != Open::kNone) return false;
    if (machine_.state() == QpState::kError || acked_psn_ != psn_add(epsn_, kPsnMask)) return false;
    ReceiveQueue* queue = machine_.receive_queue();
    return queue != nullptr && queue->available() != 0;
}

}  // namespace uib::transport
