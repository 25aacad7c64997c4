// Atomic operations (IBA 9.4.5, 9.7.4.1.9 alignment, 9.7.5.1.3). Executed when they arrive, after all earlier
// writes are in memory; the result is kept for duplicates.
#include <algorithm>

#include "engine/transport/aeth.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::on_atomic(const net::Packet& packet) {
    const net::AtomicEth& eth = packet.atomic;
    if (!may(ipc::kAccessRemoteAtomic)) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kRequestError);
        return;
    }
    Saved* entry = save(packet, 1);
    if (entry == nullptr) return;
    const memory::Checked checked =
        machine_.keys().check_remote(machine_.pd(), machine_.number(), eth.rkey, eth.address,
                                     sizeof(std::uint64_t), ipc::kAccessRemoteAtomic);
    if (!checked.ok()) {
        refuse_packet(kNakRemoteAccess, Status::kRemoteAccess, QpEvent::kAccessError);
        return;
    }
    if (eth.address % sizeof(std::uint64_t) != 0 || !packet.payload.empty()) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kAccessError);
        return;
    }
    std::optional<std::uint64_t> original;
    if (machine_.flush_writes()) {
        original = packet.bth.operation() == net::Operation::kFetchAdd
                       ? machine_.mover().fetch_add(checked.slice, eth.swap_add)
                       : machine_.mover().compare_swap(checked.slice, eth.compare, eth.swap_add);
    }
    if (!original) {
        refuse_packet(kNakRemoteOperation, Status::kRemoteOperation, QpEvent::kFatal);
        return;
    }
    entry->original = *original;
    ++newest_;
    count_ = std::min(count_ + 1, depth_);
    epsn_ = psn_add(epsn_, 1);
    msn_ = psn_add(msn_, 1);
    ack_pending_ = false;  // the response acknowledges what is older
}

void RcResponder::send_atomic(Saved& saved) {
    out_.bth.opcode = net::opcode(net::Service::kRc, net::Operation::kAtomicAcknowledge);
    out_.bth.psn = saved.psn;
    fill_aeth(ack_syndrome());
    out_.atomic_original = saved.original;
    machine_.transmit(out_);
    saved.pending = false;
}

}  // namespace uib::transport
