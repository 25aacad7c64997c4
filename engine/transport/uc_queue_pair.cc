#include "engine/transport/uc_queue_pair.h"

#include <algorithm>

namespace uib::transport {

void UcQueuePair::on_packet(const net::Packet& packet) {
    ++counters_.packets_received;
    counters_.bytes_received += packet.payload.size();
    if (packet.bth.service() != net::Service::kUc) {
        ++counters_.dropped_service;
        return;
    }
    if (state_ < QpState::kRtr || state_ == QpState::kError) {
        ++counters_.dropped_state;
        return;
    }
    if (!accept_connected(packet)) return;
    note_arrival();
    on_request(packet);
}

bool UcQueuePair::run(std::uint32_t burst) {
    requester_.run(admit(std::min(burst, host_.send_room()), parameters_.path.dlid));
    if (wants_flush()) {
        requester_.complete_sent();
        flush(burst);
        requester_.skip_flushed();
    }
    raise_if_drained();
    return wants_run();
}

bool UcQueuePair::wants_run() {
    const bool requester = held() ? requester_.owes_completions() : requester_.wants_run();
    return requester || wants_flush() || wants_drained_event();
}

void UcQueuePair::restart() {
    requester_.restart();
    open_ = Open::kNone;
}

void UcQueuePair::refresh() {
    address(out_);
}

}  // namespace uib::transport
