// Sending what the responder owes, in PSN order (IBA 9.5, 9.7.5.1, AETH of 9.7.5.2, MSN of 9.7.7).
#include "engine/transport/aeth.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

std::uint32_t RcResponder::respond(std::uint32_t budget) {
    std::uint32_t used = 0;
    if (!send_saved(budget, used) || used >= budget) return used;
    if (!nak_pending_ && !ack_pending_) {
        if (!should_tell_credits()) return used;
        ++machine_.count().unsolicited_acknowledges;
    }
    // A NAK acknowledges what is before it, too.
    static_cast<void>(flush_writes());
    if (nak_pending_) {
        send_nak();
    } else {
        ack_pending_ = false;
        send_acknowledge(ack_syndrome(), acked_psn_);
    }
    return used + 1;
}

// Responses of READs and atomics, new and repeated. True when none is left.
bool RcResponder::send_saved(std::uint32_t budget, std::uint32_t& used) {
    if (serve_ != newest_ && used < budget) static_cast<void>(flush_writes());
    while (serve_ != newest_ && used < budget) {
        Saved& next = saved(serve_);
        if (!next.pending) {
            ++serve_;
            continue;
        }
        if (next.operation == net::Operation::kReadRequest) {
            const std::uint32_t packets = send_read(next, budget - used);
            if (packets == 0 && next.pending) return false;  // no room in this turn
            used += packets;
        } else {
            send_atomic(next);
            ++used;
        }
    }
    return serve_ == newest_;
}

void RcResponder::send_nak() {
    nak_pending_ = ack_pending_ = false;
    if (nak_syndrome_ == kNakSequence) {
        nak_psn_ = epsn_;
        ++machine_.count().sequence_naks_sent;
    } else if (aeth_kind(nak_syndrome_) == AethKind::kRnr) {
        ++machine_.count().rnr_naks_sent;
    }
    send_acknowledge(nak_syndrome_, nak_psn_);
}

void RcResponder::send_acknowledge(std::uint8_t syndrome, std::uint32_t psn) {
    start_response(net::Operation::kAcknowledge, psn);
    fill_aeth(syndrome);
    machine_.transmit(out_);
}

/// An XRC target answers with the codes of XRC and without XRCETH.
void RcResponder::start_response(net::Operation operation, std::uint32_t psn) {
    out_.bth.opcode = net::opcode(xrc_ ? net::Service::kXrc : net::Service::kRc, operation);
    out_.bth.psn = psn;
    out_.payload = {};
}

void RcResponder::fill_aeth(std::uint8_t syndrome) {
    out_.aeth.syndrome = syndrome;
    out_.aeth.msn = msn_;
}

}  // namespace uib::transport
