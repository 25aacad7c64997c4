#include "engine/transport/rc_queue_pair.h"

#include <algorithm>

namespace uib::transport {

void RcQueuePair::on_packet(const net::Packet& packet) {
    ++counters_.packets_received;
    counters_.bytes_received += packet.payload.size();
    if (packet.bth.service() != net::Service::kRc) {
        ++counters_.dropped_service;
        return;
    }
    const bool response = net::is_response(packet.bth.operation());
    if (!(sending() || (state_ == QpState::kRtr && !response))) {
        ++counters_.dropped_state;
        return;
    }
    if (!accept_connected(packet)) return;
    if (response) {
        requester_.on_response(packet);
    } else {
        note_arrival();
        responder_.on_request(packet);
    }
}

// Responses first, but a queue of them leaves half of the burst to requests.
bool RcQueuePair::run(std::uint32_t burst) {
    const std::uint32_t budget = admit(std::min(burst, host_.send_room()), parameters_.path.dlid);
    const bool requests = sending() && requester_.wants_run();
    requests_first_ = budget == 1 && requests && !requests_first_;
    std::uint32_t used = requests_first_ ? requester_.run(budget) : 0;
    used += responder_.respond(requests ? (budget + 1) / 2 - used : budget);
    if (requests && sending()) used += requester_.run(budget - used);
    if (wants_flush()) flush(burst);
    raise_if_drained();
    return wants_run();
}

bool RcQueuePair::wants_run() {
    if (held()) return wants_flush() || wants_drained_event();
    if (responder_.owes()) return true;
    if (state_ == QpState::kRts) return requester_.wants_run();
    return (state_ == QpState::kSqd && requester_.wants_run()) || wants_flush() || wants_drained_event();
}

void RcQueuePair::on_timer() {
    release();
    if (sending()) requester_.on_timer();
}

Time RcQueuePair::next_timer() const {
    return sending() ? std::min(requester_.next_timer(), held_until()) : held_until();
}

bool RcQueuePair::drained() const {
    return requester_.drained();
}

void RcQueuePair::restart() {
    requester_.restart();
    responder_.restart();
}

void RcQueuePair::stop() {
    requester_.stop();
    responder_.stop();
}

void RcQueuePair::refresh() {
    requester_.refresh();
    responder_.refresh();
}

}  // namespace uib::transport
