// Inbound requests: PSN, opcode sequence, refusals (IBA 9.7.4.1, Figure 89; classes of 9.9.3.1).
#include "engine/transport/rc_responder.h"

#include <bit>

#include "engine/transport/aeth.h"
#include "engine/transport/opcodes.h"

namespace uib::transport {

using net::Operation;

void RcResponder::restart() {
    forget_responses();
    count_ = 0;
    waiting_ = false;
    open_ = Open::kNone;
    msn_ = 0;
}

void RcResponder::forget_responses() {
    serve_ = newest_;
    nak_pending_ = ack_pending_ = false;
}

void RcResponder::start(std::uint32_t psn) {
    epsn_ = psn & kPsnMask;
    acked_psn_ = psn_add(epsn_, kPsnMask);
    depth_ = machine_.parameters().max_dest_rd_atomic;
    if (saved_.size() < depth_ || saved_.empty()) saved_.resize(std::bit_ceil(depth_ | 1U));
}

void RcResponder::refresh() {
    machine_.address(out_);
}

bool RcResponder::may(std::uint32_t right) const {
    return (machine_.parameters().access & right) != 0;
}

void RcResponder::on_request(const net::Packet& packet) {
    const std::uint32_t ahead = psn_distance(epsn_, packet.bth.psn);
    if (ahead != 0) {
        if (ahead < kPsnWindow) {
            out_of_sequence();
        } else {
            on_duplicate(packet);
        }
        return;
    }
    waiting_ = false;
    const Operation operation = packet.bth.operation();
    if (!sequence_fits(operation)) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kRequestError);
    } else if (net::is_send(operation)) {
        on_send(packet);
    } else if (net::is_write(operation)) {
        on_write(packet);
    } else if (operation == Operation::kReadRequest) {
        on_read(packet);
    } else {
        on_atomic(packet);
    }
}

// Table 45; reserved operations fit nowhere.
bool RcResponder::sequence_fits(Operation operation) const {
    const bool continues = net::is_middle(operation) || net::is_last(operation);
    if (net::is_send(operation)) return open_ == (continues ? Open::kSend : Open::kNone);
    if (net::is_write(operation)) return open_ == (continues ? Open::kWrite : Open::kNone);
    return open_ == Open::kNone && (operation == Operation::kReadRequest || net::is_atomic(operation));
}

// One sequence NAK until the expected packet comes (C9-114).
void RcResponder::out_of_sequence() {
    ++machine_.count().out_of_sequence;
    if (waiting_) {
        ++machine_.count().dropped_sequence;
        return;
    }
    waiting_ = true;
    nak_pending_ = true;
    nak_syndrome_ = kNakSequence;
    nak_psn_ = epsn_;
}

void RcResponder::refuse_packet(std::uint8_t syndrome, Status status, QpEvent event) {
    refuse(syndrome, epsn_, status, event);
}

// Classes A and C: the NAK goes out after what is owed for earlier requests; the receive request in use ends
// in error, or an event tells of the refusal.
void RcResponder::refuse(std::uint8_t syndrome, std::uint32_t psn, Status status, QpEvent event) {
    QpCounters& counters = machine_.count();
    if (syndrome == kNakInvalidRequest) ++counters.invalid_requests;
    if (syndrome == kNakRemoteAccess) ++counters.remote_access_errors;
    if (syndrome == kNakRemoteOperation) ++counters.remote_operation_errors;
    nak_pending_ = true;
    nak_syndrome_ = syndrome;
    nak_psn_ = psn;
    if (machine_.receive().in_use()) {
        machine_.receive().fail(status, syndrome);
    } else {
        machine_.raise(event);
    }
    machine_.enter_error();
}

// False if there is none: an RNR NAK is owed (class B); or if it is malformed (class A).
bool RcResponder::take_receive() {
    switch (machine_.receive().take()) {
        case ReceiveMessage::Take::kTaken:
            return true;
        case ReceiveMessage::Take::kMalformed:
            refuse_packet(kNakRemoteOperation, Status::kLocalQpOperation, QpEvent::kFatal);
            return false;
        case ReceiveMessage::Take::kNone:
            break;
    }
    waiting_ = true;
    nak_pending_ = true;
    nak_syndrome_ = static_cast<std::uint8_t>(kRnrNak | (machine_.parameters().min_rnr_timer & 0x1F));
    nak_psn_ = epsn_;
    return false;
}

// A SEND or WRITE packet is done: the next is expected.
void RcResponder::executed(const net::Packet& packet) {
    acked_psn_ = epsn_;
    epsn_ = psn_add(epsn_, 1);
    if (packet.bth.ack_req) ack_pending_ = true;
    if (nak_pending_ && aeth_kind(nak_syndrome_) == AethKind::kRnr) {
        nak_pending_ = false;
        ack_pending_ = true;
    }
}

}  // namespace uib::transport
