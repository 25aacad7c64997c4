// Sending what the responder owes, in PSN order (IBA 9.5, 9.7.5.1, AETH of 9.7.5.2, MSN and credits
// of 9.7.7).
#include "engine/transport/aeth.h"
#include "engine/transport/credits.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

std::uint32_t RcResponder::respond(std::uint32_t budget) {
    std::uint32_t used = 0;
    if (serve_ != newest_ && used < budget && !machine_.flush_writes()) {
        serve_ = newest_;
        refuse(kNakRemoteOperation, acked_psn_, Status::kLocalProtection, QpEvent::kFatal);
    }
    while (serve_ != newest_ && used < budget) {
        Saved& next = saved(serve_);
        if (!next.pending) {
            ++serve_;
            continue;
        }
        if (next.operation == net::Operation::kReadRequest) {
            const std::uint32_t packets = send_read(next, budget - used);
            if (packets == 0 && next.pending) return used;  // no room in this turn
            used += packets;
        } else {
            send_atomic(next);
            ++used;
        }
    }
    if (serve_ != newest_ || used >= budget) return used;
    if (nak_pending_) {
        nak_pending_ = ack_pending_ = false;
        if (nak_syndrome_ == kNakSequence) {
            nak_psn_ = epsn_;
            ++machine_.count().sequence_naks_sent;
        } else if (aeth_kind(nak_syndrome_) == AethKind::kRnr) {
            ++machine_.count().rnr_naks_sent;
        }
        send_acknowledge(nak_syndrome_, nak_psn_);
        return used + 1;
    }
    if (!ack_pending_) return used;
    ack_pending_ = false;
    if (!machine_.flush_writes()) {
        refuse(kNakRemoteOperation, acked_psn_, Status::kLocalProtection, QpEvent::kFatal);
        return used;
    }
    send_acknowledge(ack_syndrome(), acked_psn_);
    return used + 1;
}

void RcResponder::send_acknowledge(std::uint8_t syndrome, std::uint32_t psn) {
    out_.bth.opcode = net::opcode(net::Service::kRc, net::Operation::kAcknowledge);
    out_.bth.psn = psn;
    out_.payload = {};
    fill_aeth(syndrome);
    machine_.transmit(out_);
}

void RcResponder::fill_aeth(std::uint8_t syndrome) {
    out_.aeth.syndrome = syndrome;
    out_.aeth.msn = msn_;
}

// Credits count receives beyond the MSN in the same AETH: the one that an unfinished SEND has taken is among
// them (C9-161).
std::uint8_t RcResponder::ack_syndrome() const {
    ReceiveQueue* queue = machine_.receive_queue();
    if (queue == nullptr) return 0;
    if (queue->shared()) return kNoCreditCode;
    return encode_credits(queue->available() + (machine_.receive().in_use() ? 1 : 0));
}

}  // namespace uib::transport
