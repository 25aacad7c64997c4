// Duplicate requests (IBA 9.7.5.1.4, Table 44). ePSN and MSN never change, nothing is executed twice, no
// error is reported: a duplicate that cannot be answered is dropped.
#include <algorithm>

#include "engine/transport/rc_responder.h"

namespace uib::transport {

using net::Operation;

void RcResponder::on_duplicate(const net::Packet& packet) {
    ++machine_.count().duplicate_requests;
    const Operation operation = packet.bth.operation();
    if (net::is_send(operation) || net::is_write(operation)) {
        ack_pending_ = true;
    } else if (operation == Operation::kReadRequest) {
        repeat_read(packet);
    } else if (net::is_atomic(operation)) {
        repeat_atomic(packet);
    }
}

template <typename Match>
bool RcResponder::find_saved(Match match, std::uint32_t& index) {
    for (index = newest_ - count_; index != newest_; ++index) {
        if (match(saved(index))) return true;
    }
    return false;
}

// Serves request `index` (again), and whatever is pending behind it.
void RcResponder::serve_again(std::uint32_t index) {
    Saved& entry = saved(index);
    // One that was never answered in full is no duplicate: an error in it is still to be told.
    if (!entry.pending) entry.duplicate = true;
    entry.pending = true;
    if (newest_ - index > newest_ - serve_) serve_ = index;
}

// The range must lie within the original's, byte for byte.
void RcResponder::repeat_read(const net::Packet& packet) {
    const net::Reth& reth = packet.reth;
    const std::uint32_t packets =
        std::max(1U, static_cast<std::uint32_t>((std::uint64_t{reth.dma_length} + machine_.mtu() - 1) >>
                                                machine_.mtu_shift()));
    std::uint32_t index = 0;
    const bool found = find_saved(
        [&](const Saved& entry) {
            const std::uint32_t skipped = psn_distance(entry.psn, packet.bth.psn);
            if (entry.operation != Operation::kReadRequest || skipped >= entry.packets) return false;
            const std::uint64_t offset = std::uint64_t{skipped} << machine_.mtu_shift();
            return reth.rkey == entry.rkey && reth.address == entry.address + offset &&
                   skipped + packets <= entry.packets && offset + reth.dma_length <= entry.length &&
                   (skipped + packets < entry.packets || offset + reth.dma_length == entry.length);
        },
        index);
    if (!found) {
        ++machine_.count().dropped_sequence;
        return;
    }
    if (reth.dma_length != 0 && !machine_.keys()
                                     .check_remote(machine_.pd(), machine_.number(), reth.rkey, reth.address,
                                                   reth.dma_length, ipc::kAccessRemoteRead)
                                     .ok()) {
        ++machine_.count().dropped_access;
        return;
    }
    Saved& entry = saved(index);
    serve_again(index);
    entry.first = entry.next = psn_distance(entry.psn, packet.bth.psn);
    entry.end = entry.first + packets;
}

void RcResponder::repeat_atomic(const net::Packet& packet) {
    std::uint32_t index = 0;
    if (find_saved(
            [&](const Saved& entry) {
                return entry.psn == packet.bth.psn && entry.operation == packet.bth.operation();
            },
            index)) {
        serve_again(index);
    } else {
        ++machine_.count().dropped_sequence;
    }
}

}  // namespace uib::transport
