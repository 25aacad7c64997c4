#include "engine/transport/xrc_initiator.h"

namespace uib::transport {

void XrcInitiator::on_packet(const net::Packet& packet) {
    ++counters_.packets_received;
    counters_.bytes_received += packet.payload.size();
    if (packet.bth.service() != net::Service::kXrc || !net::is_response(packet.bth.operation())) {
        ++counters_.dropped_service;
        return;
    }
    if (!sending()) {
        ++counters_.dropped_state;
        return;
    }
    if (accept_connected(packet)) requester_.on_response(packet);
}

bool XrcInitiator::run(std::uint32_t burst) {
    if (sending()) requester_.run(admit(std::min(burst, host_.send_room()), parameters_.path.dlid));
    if (wants_flush()) flush(burst);
    raise_if_drained();
    return wants_run();
}

bool XrcInitiator::wants_run() {
    if (sending() && !held() && requester_.wants_run()) return true;
    return wants_flush() || wants_drained_event();
}

void XrcInitiator::on_timer() {
    release();
    if (sending()) requester_.on_timer();
}

}  // namespace uib::transport
