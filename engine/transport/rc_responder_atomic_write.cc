// Atomic write (IBA 1.7): eight bytes that become visible together, at an address divisible by eight.
//
// Like an atomic it takes one of the max_dest_rd_atomic places, is executed once when it arrives and answered
// from what was kept; like a WRITE it needs remote-write access of QP and key. What IBA 1.3 does not say
// follows rdma_rxe: the answer is a READ Response Only without payload, a misaligned address is an invalid
// request.
#include <cstring>

#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::on_atomic_write(const net::Packet& packet) {
    const net::Reth& reth = packet.reth;
    std::uint64_t value = 0;
    Saved* entry = save(packet, 1);
    if (entry == nullptr) return;
    if (reth.dma_length != sizeof value || packet.payload.size() != sizeof value) {
        refuse(kBadLength);
        return;
    }
    const memory::Checked checked =
        check_remote(pd_, reth.rkey, reth.address, sizeof value, ipc::kAccessRemoteWrite);
    if (!checked.ok()) {
        refuse(kBadKey);
        return;
    }
    if (reth.address % sizeof value != 0) {
        refuse(kMisaligned);
        return;
    }
    std::memcpy(&value, packet.payload.data(), sizeof value);
    if (!flush_writes()) return;
    if (!machine_.mover().store(checked.slice, value)) {
        refuse(kMemoryFailed);
        return;
    }
    entry->original = 0;
    keep(*entry);
}

}  // namespace uib::transport
