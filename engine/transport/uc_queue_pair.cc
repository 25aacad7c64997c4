#include "engine/transport/uc_queue_pair.h"

namespace uib::transport {

void UcQueuePair::on_packet(const net::Packet& packet) {
    count_arrival(packet);
    if (packet.bth.service() != net::Service::kUc) {
        ++counters_.dropped_service;
        return;
    }
    if (!accept_in_state() || !accept_connected(packet)) return;
    note_arrival();
    on_request(packet);
}

void UcQueuePair::restart() {
    UnreliableQueuePair::restart();
    open_ = Open::kNone;
}

}  // namespace uib::transport
