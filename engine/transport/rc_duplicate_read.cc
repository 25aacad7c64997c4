// A duplicate RDMA READ (IBA 9.7.5.1.4, C9-107 to C9-110).
//
// It names a part of an original READ, or all of it: the first PSN lies among those of the original's
// responses, the address is the one that belongs to that PSN (so that a PSN always brings the same bytes),
// the key is the same and the bytes end within the original's. Key and address are checked again, and the
// data is read again. What does not fit, or fails, is dropped without a word; once packets have gone out the
// rest is left out.
#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::repeat_read(const net::Packet& packet) {
    const net::Reth& reth = packet.reth;
    std::uint32_t index = 0;
    const bool found = find_saved(
        [&](const Saved& entry) {
            const std::uint32_t skipped = psn_distance(entry.psn, packet.bth.psn);
            if (entry.operation != net::Operation::kReadRequest || skipped >= entry.packets) return false;
            const std::uint64_t offset = std::uint64_t{skipped} << machine_.mtu_shift();
            if (reth.dma_length == 0) return entry.length == 0;
            return reth.rkey == entry.rkey && reth.address == entry.address + offset &&
                   offset + reth.dma_length <= entry.length;
        },
        index);
    Saved& entry = saved(index);
    const bool good =
        found && packet.payload.empty() &&
        (reth.dma_length == 0 ||
         check_remote(entry.pd, reth.rkey, reth.address, reth.dma_length, ipc::kAccessRemoteRead).ok());
    if (!good) {
        ++machine_.count().dropped_duplicates;
        return;
    }
    serve_again(index);
    entry.first = entry.next = psn_distance(entry.psn, packet.bth.psn);
    entry.end = entry.first + response_packets(reth.dma_length);
    entry.end_byte = (entry.first << machine_.mtu_shift()) + reth.dma_length;
}

}  // namespace uib::transport
