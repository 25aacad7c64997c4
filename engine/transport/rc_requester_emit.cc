// Request packets of a reliable connection (IBA 9.7.3, headers of Table 38, AckReq policy of 9.7.2).
#include "engine/transport/opcodes.h"
#include "engine/transport/payload.h"
#include "engine/transport/rc_requester.h"

namespace uib::transport {
namespace {

/// A response is asked for at least once in so many packets, so that a loss costs a bounded resend.
constexpr std::uint32_t kAckEvery = 64;

}  // namespace

std::uint32_t RcRequester::emit(std::uint32_t budget) {
    SendRecord& record = window_[cursor_];
    switch (record.kind) {
        case RequestKind::kRead:
            emit_read(record);
            return 1;
        case RequestKind::kAtomic:
            emit_atomic(record);
            return 1;
        case RequestKind::kAtomicWrite:
            return emit_atomic_write();
        default:
            return emit_payload(record, budget);
    }
}

std::uint32_t RcRequester::emit_payload(SendRecord& record, std::uint32_t budget) {
    const std::uint32_t offset = cursor_packet_ << machine_.mtu_shift();
    const std::uint32_t rest = record.length - offset;
    // A limited SEND sends one packet and waits (C9-163).
    if (record.limited && cursor_packet_ == 0 && record.opcode != ipc::WorkOpcode::kRdmaWriteWithImmediate)
        budget = 1;
    // What is sent again needs no credit, what follows it does.
    if (credit_wait_) budget = std::min(budget, psn_distance(next_psn_, max_psn_));
    const std::uint32_t bytes = burst_bytes(machine_, request_, rest, budget);
    if (bytes == 0 && rest != 0) return 0;
    std::span<const std::byte> view;
    const Status status = gather_payload(machine_, request_, offset, bytes, view);
    if (status != Status::kSuccess) {
        fail_locally(status);
        return 0;
    }
    std::uint32_t packets = 0;
    std::uint32_t left = rest;
    do {
        const std::size_t part = std::min<std::size_t>(view.size(), machine_.mtu());
        left -= static_cast<std::uint32_t>(part);
        emit_packet(record, view.first(part), left == 0);
        view = view.subspan(part);
        ++packets;
    } while (!view.empty());
    return packets;
}

// Several times within the packets that may be under way, so that these never run out unasked.
std::uint32_t RcRequester::ack_every() const {
    const std::uint32_t limit = machine_.port().flight_limit;
    return limit == 0 ? kAckEvery : std::clamp(limit / 4, 1U, kAckEvery);
}

bool RcRequester::wants_ack(const SendRecord& record, bool last) {
    if (force_ack_ || since_ack_ + 1 >= ack_every()) return true;
    if (psn_add(next_psn_, 1) != max_psn_ && next_psn_ != max_psn_) return last && record.limited;
    if (record.limited && (cursor_packet_ == 0 || last)) return true;
    if (next_psn_ != max_psn_) return true;  // the end of what is sent again
    return last && ((record.flags & ipc::kWorkSignaled) != 0 || cursor_ + 1 == producer_);
}

void RcRequester::emit_packet(SendRecord& record, std::span<const std::byte> payload, bool last) {
    const bool first = cursor_packet_ == 0;
    const bool ack = wants_ack(record, last);
    const net::Operation operation = packet_operation(record.opcode, first, last);
    out_.bth.opcode = net::opcode(service_, operation);
    out_.bth.psn = next_psn_;
    out_.bth.ack_req = ack;
    out_.xrc_srq = request_.xrc_srq;
    out_.bth.solicited =
        last && (record.flags & ipc::kWorkSolicited) != 0 && record.opcode != ipc::WorkOpcode::kRdmaWrite;
    if (last) {
        out_.immediate = request_.immediate;
        out_.invalidate_key = request_.immediate;
    }
    if (first && net::is_write(operation))
        out_.reth = {request_.remote_address, request_.rkey, request_.length};
    out_.payload = payload;
    machine_.transmit(out_);
    if (record.limited && next_psn_ == max_psn_ && (last || (first && net::is_send(operation)))) {
        credit_wait_ = true;
        credit_wait_psn_ = next_psn_;
        if (first) record.limited = last;
    }
    sent(1, ack, last);
}

// A request of one packet that has a response of its own.
void RcRequester::prepare_request(net::Operation operation) {
    out_.bth.opcode = net::opcode(service_, operation);
    out_.bth.psn = next_psn_;
    out_.bth.ack_req = true;
    out_.bth.solicited = false;
    out_.xrc_srq = request_.xrc_srq;
    out_.payload = {};
}

// From where the responses have got to; a READ that is sent again asks for the rest only (9.7.5.1.4).
void RcRequester::emit_read(const SendRecord& record) {
    const std::uint32_t offset = cursor_packet_ << machine_.mtu_shift();
    prepare_request(net::Operation::kReadRequest);
    out_.reth = {request_.remote_address + offset, request_.rkey, record.length - offset};
    machine_.transmit(out_);
    sent(record.packets - cursor_packet_, true, true);
}

void RcRequester::emit_atomic(const SendRecord& record) {
    const bool add = record.opcode == ipc::WorkOpcode::kFetchAdd;
    prepare_request(add ? net::Operation::kFetchAdd : net::Operation::kCompareSwap);
    out_.atomic = {request_.remote_address, request_.rkey, add ? request_.compare_add : request_.swap,
                   add ? 0 : request_.compare_add};
    machine_.transmit(out_);
    sent(1, true, true);
}

// Eight bytes with a RETH, answered by an empty READ response (IBA 1.7, ATOMIC WRITE). 0: not in this turn.
std::uint32_t RcRequester::emit_atomic_write() {
    if (burst_bytes(machine_, request_, request_.length, 1) != request_.length) return 0;
    std::span<const std::byte> view;
    const Status status = gather_payload(machine_, request_, 0, request_.length, view);
    if (status != Status::kSuccess) {
        fail_locally(status);
        return 0;
    }
    prepare_request(net::Operation::kAtomicWrite);
    out_.reth = {request_.remote_address, request_.rkey, request_.length};
    out_.payload = view;
    machine_.transmit(out_);
    sent(1, true, true);
    return 1;
}

// Books one packet that took `psns` PSNs.
void RcRequester::sent(std::uint32_t psns, bool response_expected, bool last) {
    if (next_psn_ != max_psn_) {
        ++machine_.count().retransmitted_packets;
        resent_ = true;
        resent_end_ = max_psn_;
    }
    const bool fresh = next_psn_ == max_psn_;
    next_psn_ = psn_add(next_psn_, psns);
    if (fresh) max_psn_ = next_psn_;
    if (response_expected) {
        if (!awaits(next_psn_)) awaited_psn_ = next_psn_;
        since_ack_ = 0;
        force_ack_ = false;
        if (ack_deadline_ == kNever) start_timer();
    } else {
        ++since_ack_;
    }
    if (last) {
        ++cursor_;
        cursor_packet_ = 0;
        loaded_ = false;
    } else {
        ++cursor_packet_;
    }
}

}  // namespace uib::transport
