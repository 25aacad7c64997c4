#include "engine/transport/xrc_target.h"

#include <algorithm>

namespace uib::transport {

bool XrcTarget::receiving() const {
    return state_ == QpState::kRtr || state_ == QpState::kRts || state_ == QpState::kSqd;
}

void XrcTarget::on_packet(const net::Packet& packet) {
    ++counters_.packets_received;
    counters_.bytes_received += packet.payload.size();
    if (packet.bth.service() != net::Service::kXrc || net::is_response(packet.bth.operation())) {
        ++counters_.dropped_service;
        return;
    }
    if (!receiving()) {
        ++counters_.dropped_state;
        return;
    }
    if (!accept_connected(packet)) return;
    note_arrival();
    responder_.on_request(packet);
}

bool XrcTarget::run(std::uint32_t burst) {
    responder_.respond(admit(std::min(burst, host_.send_room()), parameters_.path.dlid));
    if (wants_flush()) flush(burst);
    raise_if_drained();
    return wants_run();
}

bool XrcTarget::wants_run() {
    return (responder_.owes() && !held()) || wants_flush() || wants_drained_event();
}

}  // namespace uib::transport
