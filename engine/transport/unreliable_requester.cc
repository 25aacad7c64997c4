#include "engine/transport/unreliable_requester.h"

namespace uib::transport {

void UnreliableRequester::restart() {
    cursor_ = producer_ = machine_.consumed();
    offset_ = 0;
    started_ = loaded_ = false;
}

bool UnreliableRequester::wants_run() {
    if (owes_completions()) return true;
    const QpState state = machine_.state();
    if (state == QpState::kSqd) return started_;
    if (state != QpState::kRts) return false;
    if (cursor_ == producer_) producer_ = machine_.send_queue().producer();
    return cursor_ != producer_;
}

void UnreliableRequester::complete_sent() {
    while (machine_.consumed() != cursor_ && machine_.state() != QpState::kError) {
        const SendRecord& record = window_[machine_.consumed()];
        if ((record.flags & ipc::kWorkSignaled) != 0) {
            machine_.complete_request(record.wr_id, record.opcode, record.length, Status::kSuccess);
        } else {
            ++machine_.consumed();
        }
    }
}

void UnreliableRequester::skip_flushed() {
    if (machine_.consumed() == cursor_ && !started_ && !loaded_) return;
    // What was flushed may lie beyond the producer last seen.
    cursor_ = producer_ = machine_.consumed();
    offset_ = 0;
    started_ = loaded_ = false;
}

bool UnreliableRequester::load() {
    if (cursor_ == producer_) {
        producer_ = machine_.send_queue().producer();
        if (cursor_ == producer_) return false;
    }
    if (!loaded_) {
        machine_.send_queue().fetch(cursor_, request_);
        loaded_ = true;
    }
    return true;
}

void UnreliableRequester::run(std::uint32_t budget) {
    complete_sent();
    while (budget > 0) {
        const QpState state = machine_.state();
        if (state != QpState::kRts && !(state == QpState::kSqd && started_)) return;
        if (!load()) return;
        const std::uint32_t used = send_some(budget);
        if (used == 0) return;
        budget -= used;
    }
}

// Work of one request; what it cost, 0 to end the run.
std::uint32_t UnreliableRequester::send_some(std::uint32_t budget) {
    if (request_.malformed) {
        finish(Status::kLocalQpOperation);
        return 1;
    }
    if (kind_of(request_.opcode) == RequestKind::kLocal) {
        finish(machine_.execute_local(request_));
        return 1;
    }
    const PacketMaker::Result result = maker_.make(request_, offset_, psn_, budget);
    psn_ = psn_add(psn_, result.packets);
    offset_ += result.bytes;
    started_ = started_ || result.packets > 0;
    if (result.done || result.status != Status::kSuccess) {
        finish(result.status);
        return result.packets > 0 ? result.packets : 1;
    }
    return result.packets;
}

void UnreliableRequester::finish(Status status) {
    if (status == Status::kSuccess) {
        SendRecord& record = window_.open(machine_.consumed(), cursor_);
        record.wr_id = request_.wr_id;
        record.opcode = request_.opcode;
        record.flags = request_.flags;
        record.length = request_.length;
        ++cursor_;
    } else {
        complete_sent();
        ++machine_.count().local_errors;
        machine_.complete_request(request_.wr_id, request_.opcode, request_.length, status);
        cursor_ = machine_.consumed();
        machine_.enter_send_error();
    }
    offset_ = 0;
    started_ = loaded_ = false;
}

}  // namespace uib::transport
