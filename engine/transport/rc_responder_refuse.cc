// Refusals (IBA 9.9.3.1, Table 62): classes A and C of a reliable connection, K of an XRC target.
//
// The NAK goes out after everything that is owed for earlier requests (C9-87, C9-90). The receive request in
// use ends in error; without one an event tells of the refusal, on an XRC target in any case, as its client
// need not be the SRQ's. The first refusal is the one that counts, except that a READ whose response fails
// comes before what was refused behind it.
#include "engine/transport/rc_responder.h"

namespace uib::transport {

/// Refuses the request at hand.
void RcResponder::refuse(const Refusal& refusal) {
    refuse_at(refusal, epsn_);
}

/// Brings all bytes of executed SENDs and WRITEs to memory. False when some could not be written: the NAK
/// names the oldest packet whose bytes nobody has been told of (C9-126), so that no lost byte counts as
/// delivered, and replaces the responses behind it.
bool RcResponder::flush_writes() {
    const bool written = machine_.mover().flush(owner_);
    if (!written) {
        const std::uint32_t psn = unwritten_ ? unwritten_psn_ : epsn_;
        for (std::uint32_t index = serve_; index != newest_; ++index) {
            if (psn_before(psn, saved(index).psn)) saved(index).pending = false;
        }
        refuse_at(kReceiveBuffer, psn);
    }
    unwritten_ = false;
    return written;
}

void RcResponder::refuse_at(const Refusal& refusal, std::uint32_t psn) {
    owe_nak(refusal, psn);
    const bool told = machine_.receive().in_use();
    if (told) machine_.receive().fail(refusal.status, refusal.syndrome);
    if (!told || xrc_) raise(refusal.event);
    machine_.enter_error();
}

/// A response under way cannot go on: its place, `psn`, is taken by the NAK. No receive request is to blame.
void RcResponder::refuse_response(const Refusal& refusal, std::uint32_t psn) {
    serve_ = newest_;
    owe_nak(refusal, psn);
    raise(refusal.event);
    machine_.enter_error();
}

void RcResponder::owe_nak(const Refusal& refusal, std::uint32_t psn) {
    QpCounters& counters = machine_.count();
    ++(counters.*refusal.counter);
    if (refusal.syndrome == kNakInvalidRequest) ++counters.invalid_requests;
    if (refusal.syndrome == kNakRemoteOperation) ++counters.remote_operation_errors;
    nak_pending_ = true;
    nak_syndrome_ = refusal.syndrome;
    nak_psn_ = psn;
}

/// One event tells why the QP is in error.
void RcResponder::raise(QpEvent event) {
    if (machine_.state() != QpState::kError) machine_.raise(event);
}

}  // namespace uib::transport
