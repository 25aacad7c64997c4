#include "engine/transport/unreliable_queue_pair.h"

#include <algorithm>

namespace uib::transport {

bool UnreliableQueuePair::run(std::uint32_t burst) {
    requester_.run(allowance(std::min(burst, host_.send_room())));
    if (wants_flush()) {
        requester_.complete_sent();
        flush(burst);
        requester_.skip_flushed();
    }
    raise_if_drained();
    return wants_run();
}

bool UnreliableQueuePair::wants_run() {
    const bool requester = held() ? requester_.owes_completions() : requester_.wants_run();
    return requester || wants_flush() || wants_drained_event();
}

void UnreliableQueuePair::count_arrival(const net::Packet& packet) {
    ++counters_.packets_received;
    counters_.bytes_received += packet.payload.size();
}

bool UnreliableQueuePair::accept_in_state() {
    if (state_ >= QpState::kRtr && state_ != QpState::kError) return true;
    ++counters_.dropped_state;
    return false;
}

bool UnreliableQueuePair::take_for_datagram() {
    const ReceiveMessage::Take taken = receive().take();
    if (taken == ReceiveMessage::Take::kTaken) return true;
    if (taken == ReceiveMessage::Take::kMalformed || receive().queue_failed())
        receive_fault(Status::kLocalQpOperation);
    else
        ++counters_.dropped_no_receive;
    return false;
}

}  // namespace uib::transport
