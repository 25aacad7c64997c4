#include "engine/transport/ud_queue_pair.h"

#include <algorithm>

namespace uib::transport {

void UdQueuePair::on_packet(const net::Packet& packet) {
    ++counters_.packets_received;
    counters_.bytes_received += packet.payload.size();
    if (!accept_datagram(packet)) return;
    note_arrival();
    on_send(packet);
}

bool UdQueuePair::run(std::uint32_t burst) {
    requester_.run(std::min(burst, host_.send_room()));
    if (wants_flush()) {
        requester_.complete_sent();
        flush(burst);
        requester_.skip_flushed();
    }
    raise_if_drained();
    return wants_run();
}

bool UdQueuePair::wants_run() {
    const bool requester = held() ? requester_.owes_completions() : requester_.wants_run();
    return requester || wants_flush() || wants_drained_event();
}

}  // namespace uib::transport
