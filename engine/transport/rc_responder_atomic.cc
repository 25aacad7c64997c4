// CmpSwap and FetchAdd (IBA 9.4.5, 9.7.4.1.9 alignment, 9.7.5.1.3). Executed when they arrive, after all
// earlier writes are in memory; the result is kept for duplicates.
#include "engine/transport/rc_responder.h"

namespace uib::transport {

using net::Operation;

void RcResponder::on_atomic(const net::Packet& packet) {
    const net::AtomicEth& eth = packet.atomic;
    Saved* entry = save(packet, 1);
    if (entry == nullptr) return;
    const memory::Checked checked =
        check_remote(pd_, eth.rkey, eth.address, sizeof(std::uint64_t), ipc::kAccessRemoteAtomic);
    if (!checked.ok()) {
        refuse(kBadKey);
        return;
    }
    if (!packet.payload.empty()) {
        refuse(kBadLength);
        return;
    }
    if (eth.address % sizeof(std::uint64_t) != 0) {
        refuse(kMisaligned);
        return;
    }
    if (!flush_writes()) return;
    const std::optional<std::uint64_t> original =
        packet.bth.operation() == Operation::kFetchAdd
            ? machine_.mover().fetch_add(checked.slice, eth.swap_add)
            : machine_.mover().compare_swap(checked.slice, eth.compare, eth.swap_add);
    if (!original) {
        refuse(kMemoryFailed);
        return;
    }
    entry->original = *original;
    keep(*entry);
}

/// The answer to any atomic: its result or, for an atomic write, an empty READ response.
void RcResponder::send_atomic(Saved& saved) {
    const bool write = saved.operation == Operation::kAtomicWrite;
    start_response(write ? Operation::kReadResponseOnly : Operation::kAtomicAcknowledge, saved.psn);
    fill_aeth(ack_syndrome());
    out_.atomic_original = saved.original;
    machine_.transmit(out_);
    saved.pending = false;
}

}  // namespace uib::transport
