// Responses (IBA 9.7.5.1, 9.7.6.1, 9.9.2): coalesced acknowledges, READ responses, atomic results, NAKs.
//
// A response outside [una, max) is a ghost or a duplicate and only its credits count. Inside, everything
// older than it is acknowledged up to the first READ or atomic that has not had its own response: that one is
// then known to have lost it (implied NAK, 9.7.5.1.1).
#include <array>
#include <cstring>

#include "engine/transport/aeth.h"
#include "engine/transport/credits.h"
#include "engine/transport/opcodes.h"
#include "engine/transport/payload.h"
#include "engine/transport/rc_requester.h"

namespace uib::transport {

void RcRequester::on_response(const net::Packet& packet) {
    const net::Operation operation = packet.bth.operation();
    const bool has_aeth = operation != net::Operation::kReadResponseMiddle;
    const std::uint8_t syndrome = packet.aeth.syndrome;
    // Reserved codes, and NAKs in what is not an Acknowledge: malformed (C9-120, C9-135).
    const bool data = operation != net::Operation::kAcknowledge;
    if (has_aeth && (aeth_reserved(syndrome) || (data && aeth_kind(syndrome) != AethKind::kAck))) {
        ++machine_.count().reserved_syndromes;
        return;
    }
    const std::uint32_t psn = packet.bth.psn;
    const bool is_nak = !data && aeth_kind(syndrome) != AethKind::kAck;
    // A sequence NAK may name the PSN behind the newest: all of it arrived after all.
    const bool ahead_nak = is_nak && syndrome == kNakSequence && psn == max_psn_ && una_psn_ != max_psn_;
    if (!outstanding(psn) && !ahead_nak) {
        stray_response(packet, is_nak);
        return;
    }
    if (is_nak) {
        negative(packet);
        return;
    }
    if (has_aeth) take_credits(packet.aeth);
    switch (operation) {
        case net::Operation::kAcknowledge:
            acknowledge(packet);
            break;
        case net::Operation::kAtomicAcknowledge:
            atomic_response(packet);
            break;
        default:
            read_response(packet);
            break;
    }
}

// Class E: dropped but for the credits of a duplicate or unsolicited acknowledge (C9-144, C9-217).
void RcRequester::stray_response(const net::Packet& packet, bool is_nak) {
    if (!psn_before(packet.bth.psn, una_psn_)) {
        ++machine_.count().ghost_responses;
        return;
    }
    ++machine_.count().duplicate_responses;
    if (is_nak || packet.bth.operation() != net::Operation::kAcknowledge) return;
    const std::uint32_t before = lsn_;
    take_credits(packet.aeth);
    if (lsn_ != before) ++machine_.count().unsolicited_credits;
}

// LSN = MSN + credits, never moving back (9.7.7.2.4).
void RcRequester::take_credits(const net::Aeth& aeth) {
    if (aeth_kind(aeth.syndrome) != AethKind::kAck) return;
    const std::uint8_t code = aeth_value(aeth.syndrome);
    if (code == kNoCreditCode) {
        credits_off_ = true;
    } else {
        const std::uint32_t limit = psn_add(aeth.msn, decode_credits(code));
        if (psn_before(lsn_, limit)) lsn_ = limit;
    }
    // A limited request, always the newest, waits no longer once there are credits for it (C9-144).
    const std::uint32_t newest_ssn = psn_add(next_ssn_, kPsnMask);
    if (credit_wait_ && (credits_off_ || !psn_before(lsn_, newest_ssn))) {
        window_[started_ - 1].limited = false;
        credit_wait_ = false;
        stalled_ = false;
    }
}

// Acknowledges everything before `limit`. False if a READ or atomic is in the way: una is then its first
// unanswered PSN.
bool RcRequester::advance_to(std::uint32_t limit) {
    complete_done_locals();
    while (una_psn_ != limit && machine_.consumed() != started_ && machine_.state() != QpState::kError) {
        const SendRecord& record = window_[machine_.consumed()];
        if (record.answered()) return false;
        const std::uint32_t end = record.end_psn();
        if (psn_distance(una_psn_, limit) < psn_distance(una_psn_, end)) {
            una_psn_ = limit;
        } else {
            una_psn_ = end;
            complete_head();
            complete_done_locals();
        }
    }
    return true;
}

void RcRequester::complete_head() {
    const SendRecord& record = window_[machine_.consumed()];
    if (record.answered()) {
        --answered_out_;
        answered_loaded_ = false;
    }
    if ((record.flags & ipc::kWorkSignaled) != 0) {
        machine_.complete_request(record.wr_id, record.opcode, record.length, Status::kSuccess);
    } else {
        ++machine_.consumed();
    }
}

// After una has moved (or not): counters, timer, and a cursor that an acknowledge has overtaken.
void RcRequester::progressed(std::uint32_t old_una) {
    if (una_psn_ == old_una) return;
    reload_counters();
    implied_ = false;
    stalled_ = false;
    if (credit_wait_ && !psn_before(una_psn_, psn_add(credit_wait_psn_, 1))) credit_wait_ = false;
    // A message may span half of the circle: only distances from the old una tell before from behind.
    const std::uint32_t moved = psn_distance(old_una, una_psn_);
    if (psn_distance(old_una, awaited_psn_) < moved) awaited_psn_ = una_psn_;
    if (psn_distance(old_una, resent_end_) <= moved) resent_ = false;
    resync(old_una);
    renew_timer();
}

void RcRequester::resync(std::uint32_t old_una) {
    const std::uint32_t consumed = machine_.consumed();
    const bool index_behind = static_cast<std::int32_t>(cursor_ - consumed) < 0;
    const bool psn_behind = psn_distance(old_una, next_psn_) < psn_distance(old_una, una_psn_);
    if (!index_behind && !psn_behind) return;
    if (cursor_ != consumed) loaded_ = false;
    cursor_ = consumed;
    next_psn_ = una_psn_;
    cursor_packet_ = consumed == started_ ? 0 : psn_distance(window_[consumed].first_psn, una_psn_);
}

void RcRequester::acknowledge(const net::Packet& packet) {
    const std::uint32_t old_una = una_psn_;
    const std::uint32_t psn = packet.bth.psn;
    const bool reached = advance_to(psn_add(psn, 1));
    progressed(old_una);
    if (reached) return;
    // An acknowledge in place of a READ's or atomic's own response is an error, but what comes behind a gap
    // is not looked at, and when requests were sent again it may answer one of those: responders acknowledge
    // duplicates with their newest PSN.
    if (psn == una_psn_ && !resent_ && una_psn_ == old_una) {
        bad_response(packet.aeth.syndrome);
    } else {
        implied_nak();
    }
}

void RcRequester::negative(const net::Packet& packet) {
    const std::uint32_t old_una = una_psn_;
    const std::uint8_t syndrome = packet.aeth.syndrome;
    const bool reached = advance_to(packet.bth.psn);
    progressed(old_una);
    if (aeth_kind(syndrome) == AethKind::kRnr) {
        receiver_not_ready(syndrome);
        return;
    }
    ++machine_.count().naks_received;
    if (!reached) {
        implied_nak();
        return;
    }
    switch (syndrome) {
        case kNakSequence:
            if (una_psn_ != max_psn_) retry();
            break;
        case kNakInvalidRequest:
            fail_head(Status::kRemoteInvalidRequest, syndrome);
            break;
        case kNakRemoteAccess:
            fail_head(Status::kRemoteAccess, syndrome);
            break;
        case kNakRemoteOperation:
            fail_head(Status::kRemoteOperation, syndrome);
            break;
        default:  // Invalid RD Request, which XRC uses, too (9.7.5.2.7); RC has no such code
            fail_head(service_ == net::Service::kXrc ? Status::kRemoteInvalidRdRequest
                                                     : Status::kRemoteInvalidRequest,
                      syndrome);
            break;
    }
}

void RcRequester::read_response(const net::Packet& packet) {
    const std::uint32_t old_una = una_psn_;
    const std::uint32_t psn = packet.bth.psn;
    const net::Operation operation = packet.bth.operation();
    const bool starts =
        operation == net::Operation::kReadResponseFirst || operation == net::Operation::kReadResponseOnly;
    const bool ends =
        operation == net::Operation::kReadResponseLast || operation == net::Operation::kReadResponseOnly;
    // First and Only acknowledge what is older; without them the response has a gap.
    const bool reached = starts ? advance_to(psn) : una_psn_ == psn;
    if (!reached) {
        progressed(old_una);
        implied_nak();
        return;
    }
    complete_done_locals();
    const SendRecord& record = window_[machine_.consumed()];
    progressed(old_una);
    if (record.kind == RequestKind::kAtomicWrite && operation == net::Operation::kReadResponseOnly &&
        packet.payload.empty()) {
        const std::uint32_t una = una_psn_;
        una_psn_ = psn_add(psn, 1);
        complete_head();
        complete_done_locals();
        progressed(una);
    } else if (record.kind != RequestKind::kRead || (!starts && psn == record.first_psn)) {
        bad_response(packet.aeth.syndrome);
    } else {
        read_data(packet, ends);
    }
}

// The next packet of the oldest request, a READ.
void RcRequester::read_data(const net::Packet& packet, bool ends) {
    const std::uint32_t old_una = una_psn_;
    const std::uint32_t psn = packet.bth.psn;
    const SendRecord& record = window_[machine_.consumed()];
    const std::uint32_t offset = psn_distance(record.first_psn, psn) << machine_.mtu_shift();
    const std::uint32_t rest = record.length - offset;
    const bool last = psn_add(psn, 1) == record.end_psn();
    const std::size_t expected = last ? rest : machine_.mtu();
    if (last != ends || packet.payload.size() != expected) {
        fail_head(Status::kLocalLength, 0);
        return;
    }
    const Status status = place(record, offset, packet.payload);
    if (status != Status::kSuccess) {
        fail_head(status, 0);
        return;
    }
    una_psn_ = psn_add(psn, 1);
    if (last) {
        if (!machine_.flush_writes()) {
            fail_head(Status::kLocalProtection, 0);
            return;
        }
        complete_head();
        complete_done_locals();
    }
    progressed(old_una);
}

void RcRequester::atomic_response(const net::Packet& packet) {
    const std::uint32_t old_una = una_psn_;
    if (!advance_to(packet.bth.psn)) {
        progressed(old_una);
        implied_nak();
        return;
    }
    const SendRecord& record = window_[machine_.consumed()];
    if (record.kind != RequestKind::kAtomic) {
        progressed(old_una);
        bad_response(packet.aeth.syndrome);
        return;
    }
    std::array<std::byte, sizeof(std::uint64_t)> original;
    std::memcpy(original.data(), &packet.atomic_original, original.size());
    Status status = place(record, 0, original);
    if (!machine_.flush_writes() && status == Status::kSuccess) status = Status::kLocalProtection;
    if (status != Status::kSuccess) {
        fail_head(status, 0);
        return;
    }
    una_psn_ = psn_add(packet.bth.psn, 1);
    complete_head();
    complete_done_locals();
    progressed(old_una);
}

// Puts response bytes into the request's list, fetched once per request.
Status RcRequester::place(const SendRecord& record, std::uint32_t offset, std::span<const std::byte> bytes) {
    if (!answered_loaded_ || answered_index_ != machine_.consumed()) {
        machine_.send_queue().fetch(machine_.consumed(), answered_);
        answered_index_ = machine_.consumed();
        answered_loaded_ = true;
    }
    if (answered_.malformed || answered_.opcode != record.opcode || answered_.length != record.length)
        return Status::kLocalQpOperation;
    return scatter_payload(machine_, answered_, offset, bytes) ? Status::kSuccess : Status::kLocalProtection;
}

// A response that cannot be the answer to what has its PSN (Table 59).
void RcRequester::bad_response(std::uint8_t syndrome) {
    ++machine_.count().bad_responses;
    fail_head(Status::kBadResponse, syndrome);
}

// Class B: the oldest request completes in error, the QP goes to the error state, the rest is flushed.
void RcRequester::fail_head(Status status, std::uint8_t syndrome) {
    if (machine_.state() == QpState::kError) return;
    const SendRecord& record = window_[machine_.consumed()];
    machine_.complete_request(record.wr_id, record.opcode, record.length, status, syndrome);
    stop();
    machine_.enter_error();
}

}  // namespace uib::transport
