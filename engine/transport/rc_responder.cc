// Inbound requests: the order of the checks (IBA 9.7.4.1, Figure 89): PSN, opcode sequence, opcode, padding,
// XRC domain; then, with the operation at hand, resources, R_Key, lengths, execution.
#include "engine/transport/rc_responder.h"

#include <algorithm>
#include <bit>

#include "engine/transport/aeth.h"
#include "engine/transport/opcodes.h"

namespace uib::transport {

using net::Operation;

namespace {

/// Beside the 24 bits of a QP number: tells these writes from those of READ responses to the same QP.
constexpr memory::Mover::Owner kResponderWrites = 1U << 24;

}  // namespace

RcResponder::RcResponder(Machine& machine)
    : machine_(machine),
      xrc_(machine.config().service == Service::kXrcTarget),
      owner_(machine.number() | kResponderWrites),
      pd_(machine.pd()) {
    machine_.receive().write_as(owner_);
}

void RcResponder::restart() {
    forget_responses();
    // A write of the connection before that failed unheard is not this one's.
    static_cast<void>(machine_.mover().flush(owner_));
    count_ = 0;
    waiting_ = unwritten_ = told_none_ = peer_may_wait_ = false;
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

void RcResponder::on_request(const net::Packet& packet) {
    const std::uint32_t ahead = psn_distance(epsn_, packet.bth.psn);
    if (ahead != 0) {
        // A distance of exactly 2^23 is behind: a requester with that many outstanding resends it.
        if (ahead < kPsnWindow) {
            out_of_sequence();
        } else {
            on_duplicate(packet);
        }
        return;
    }
    waiting_ = false;
    if (nak_pending_ && aeth_kind(nak_syndrome_) == AethKind::kRnr) {
        // Asked again before it was told to wait.
        nak_pending_ = false;
        ack_pending_ = true;
    }
    const Operation operation = packet.bth.operation();
    if (!sequence_fits(operation)) {
        refuse(kBadSequence);
    } else if (!supports(operation)) {
        refuse(kUnsupported);
    } else if (packet.bth.pad != 0 && (net::is_first(operation) || net::is_middle(operation))) {
        refuse(kBadPadding);
    } else if (!xrc_ || find_receive_queue(packet)) {
        execute(packet);
    }
}

// Table 45. READ requests, atomics and codes that mean nothing stand alone.
bool RcResponder::sequence_fits(Operation operation) const {
    if (!net::is_middle(operation) && !net::is_last(operation)) return open_ == Open::kNone;
    return open_ == (net::is_send(operation) ? Open::kSend : Open::kWrite);
}

// Functions of the service (C9-84) that this QP was set up for (C9-83).
bool RcResponder::supports(Operation operation) const {
    const std::uint32_t access = machine_.parameters().access;
    if (net::is_send(operation)) return true;
    if (net::is_write(operation)) return (access & ipc::kAccessRemoteWrite) != 0;
    if (operation == Operation::kReadRequest) return (access & ipc::kAccessRemoteRead) != 0;
    if (net::is_atomic(operation)) return (access & ipc::kAccessRemoteAtomic) != 0;
    // An atomic write is a WRITE to the rights of QP and key, as for rdma_rxe.
    return operation == Operation::kAtomicWrite && (access & ipc::kAccessRemoteWrite) != 0;
}

void RcResponder::execute(const net::Packet& packet) {
    const Operation operation = packet.bth.operation();
    if (net::is_send(operation)) {
        on_send(packet);
    } else if (net::is_write(operation)) {
        on_write(packet);
    } else if (operation == Operation::kReadRequest) {
        on_read(packet);
    } else if (operation == Operation::kAtomicWrite) {
        on_atomic_write(packet);
    } else {
        on_atomic(packet);
    }
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

// False if there is none: an RNR NAK is owed (class B); or if it, or an SRQ as a whole, is at fault (class
// A).
bool RcResponder::take_receive() {
    switch (machine_.receive().take()) {
        case ReceiveMessage::Take::kTaken:
            return true;
        case ReceiveMessage::Take::kMalformed:
            refuse(kBadReceive);
            return false;
        case ReceiveMessage::Take::kNone:
            break;
    }
    if (machine_.receive().queue_failed()) {
        refuse(kBadReceive);
        return false;
    }
    waiting_ = true;
    nak_pending_ = true;
    nak_syndrome_ = static_cast<std::uint8_t>(kRnrNak | (machine_.parameters().min_rnr_timer & 0x1F));
    nak_psn_ = epsn_;
    return false;
}

// A SEND or WRITE packet is done: the next is expected. Its bytes may still be on their way to memory.
void RcResponder::executed(const net::Packet& packet) {
    if (!unwritten_) unwritten_psn_ = epsn_;
    unwritten_ = true;
    acked_psn_ = epsn_;
    epsn_ = psn_add(epsn_, 1);
    if (packet.bth.ack_req) ack_pending_ = true;
}

/// PSNs that a READ of `length` bytes takes.
std::uint32_t RcResponder::response_packets(std::uint32_t length) const {
    const std::uint64_t bytes = std::uint64_t{length} + machine_.mtu() - 1;
    return std::max(1U, static_cast<std::uint32_t>(bytes >> machine_.mtu_shift()));
}

memory::Checked RcResponder::check_remote(memory::PdId pd, std::uint32_t rkey, std::uint64_t address,
                                          std::uint64_t length, std::uint32_t right) const {
    return machine_.keys().check_remote(pd, machine_.number(), rkey, address, length, right);
}

}  // namespace uib::transport
