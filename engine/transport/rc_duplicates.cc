// Duplicate requests (IBA 9.7.5.1.4, Table 44). ePSN and MSN never change, nothing is executed twice, no
// error is reported: a duplicate that cannot be answered is dropped (class D).
//
//   SEND, WRITE   one ACK after the responses of all READs and atomics, with the PSN of the newest SEND or
//                 WRITE executed. A READ or atomic newer than that is left out: an acknowledge in place of
//                 its response would be a fault to a requester that has lost the response.
//   READ          rc_duplicate_read.cc
//   atomics       rc_duplicate_atomic.cc
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
    } else if (net::is_atomic(operation) || operation == Operation::kAtomicWrite) {
        repeat_atomic(packet);
    } else {
        ++machine_.count().dropped_duplicates;
    }
}

// Serves request `index` (again), and whatever is pending behind it: the earliest first. A response that this
// interrupts (C9-110) begins anew afterwards, as the requester has dropped what came out of turn.
void RcResponder::serve_again(std::uint32_t index) {
    Saved& entry = saved(index);
    // One that was never answered in full is no duplicate: an error in it is still to be told.
    if (!entry.pending) entry.duplicate = true;
    entry.pending = true;
    if (newest_ - index <= newest_ - serve_) return;
    if (serve_ != newest_) saved(serve_).next = saved(serve_).first;
    serve_ = index;
}

}  // namespace uib::transport
