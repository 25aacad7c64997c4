// Starting requests in order (IBA 9.5 ordering and fences, 9.7.3.2 outstanding READs, 9.7.7.2.5 limited WQEs,
// 10.8.3.3 local operations).
#include "engine/transport/rc_requester.h"

#include "engine/transport/payload.h"

namespace uib::transport {

void RcRequester::restart() {
    cursor_ = started_ = producer_ = machine_.consumed();
    cursor_packet_ = 0;
    answered_out_ = 0;
    loaded_ = failing_ = answered_loaded_ = stalled_ = force_ack_ = false;
    resent_ = implied_ = false;
    ack_deadline_ = rnr_deadline_ = kNever;
    next_ssn_ = 1;
    lsn_ = 0;
    credit_wait_ = false;
    credits_off_ = service_ == net::Service::kXrc;  // no end-to-end credits there (o9-114.a10)
}

void RcRequester::start(std::uint32_t psn) {
    una_psn_ = next_psn_ = max_psn_ = awaited_psn_ = psn & kPsnMask;
    since_ack_ = 0;
}

void RcRequester::refresh() {
    machine_.address(out_);
    reload_counters();
    stalled_ = false;
}

void RcRequester::stop() {
    ack_deadline_ = rnr_deadline_ = kNever;
}

bool RcRequester::wants_run() {
    if (stalled_) return false;
    if (cursor_ != started_) return true;
    if (machine_.state() == QpState::kSqd) return !drained();
    if (cursor_ != producer_) return true;
    producer_ = machine_.send_queue().producer();
    return cursor_ != producer_;
}

std::uint32_t RcRequester::run(std::uint32_t budget) {
    std::uint32_t used = 0;
    while (used < budget && !stalled_) {
        const Step step = prepare();
        if (step == Step::kWait) break;
        if (step == Step::kAgain) {
            ++used;
            continue;
        }
        const std::uint32_t room = flight_room();
        if (room == 0) {
            wait();
            break;
        }
        const std::uint32_t packets = emit(std::min(budget - used, room));
        if (packets == 0) break;
        used += packets;
    }
    return used;
}

// Packets that may follow those under way. An acknowledge is due for one of them: it is asked for more often
// than the limit is long.
std::uint32_t RcRequester::flight_room() const {
    const std::uint32_t limit = machine_.port().flight_limit;
    if (limit == 0) return kPsnWindow;
    const std::uint32_t under_way = psn_distance(una_psn_, next_psn_);
    return under_way >= limit ? 0 : limit - under_way;
}

RcRequester::Step RcRequester::wait() {
    stalled_ = true;
    return Step::kWait;
}

void RcRequester::load() {
    if (loaded_) return;
    machine_.send_queue().fetch(cursor_, request_);
    loaded_ = true;
}

RcRequester::Step RcRequester::prepare() {
    if (rnr_deadline_ != kNever) return wait();
    if (failing_ && cursor_ == failing_index_) return settle_failure();
    return cursor_ != started_ ? reload() : begin();
}

// A request under way: the rest of it, or all of it again.
RcRequester::Step RcRequester::reload() {
    const SendRecord& record = window_[cursor_];
    if (record.kind == RequestKind::kLocal) {
        ++cursor_;
        loaded_ = false;
        return Step::kAgain;
    }
    if (credit_wait_ && next_psn_ == max_psn_) return wait();
    if (loaded_) return Step::kReady;
    load();
    if (request_.malformed || request_.opcode != record.opcode || request_.length != record.length)
        return fail_locally(Status::kLocalQpOperation);
    return Step::kReady;
}

RcRequester::Step RcRequester::begin() {
    if (machine_.state() == QpState::kSqd) return demand_ack() ? Step::kAgain : wait();
    if (cursor_ == producer_) {
        producer_ = machine_.send_queue().producer();
        if (cursor_ == producer_) return Step::kWait;
    }
    load();
    if (request_.malformed) return fail_locally(Status::kLocalQpOperation);
    if ((request_.flags & ipc::kWorkFence) != 0 && answered_out_ > 0) return wait();
    if (credit_wait_) return wait();
    const RequestKind kind = kind_of(request_.opcode);
    if (kind == RequestKind::kLocal) return run_local();
    if (request_.length > kMaxMessageBytes) return fail_locally(Status::kLocalLength);
    if (is_answered(kind)) {
        const Step step = check_answered(kind);
        if (step != Step::kReady) return step;
    }
    if (!admits(kind)) return demand_ack() ? Step::kAgain : wait();
    return Step::kReady;
}

// READs, atomics and atomic writes: their limit, their fixed lengths, where the answer goes.
RcRequester::Step RcRequester::check_answered(RequestKind kind) {
    const bool sends_data = kind == RequestKind::kAtomicWrite;
    const std::uint8_t limit = machine_.parameters().max_rd_atomic;
    if (limit == 0 || (!sends_data && (request_.flags & ipc::kWorkInline) != 0))
        return fail_locally(Status::kLocalQpOperation);
    if (kind != RequestKind::kRead && request_.length != sizeof(std::uint64_t))
        return fail_locally(Status::kLocalLength);
    if (answered_out_ >= limit) return wait();
    if (!sends_data && !check_targets(machine_, request_, request_.length))
        return fail_locally(Status::kLocalProtection);
    return Step::kReady;
}

// Makes the record unless the request's PSNs do not fit into the window (C9-61).
bool RcRequester::admits(RequestKind kind) {
    const std::uint32_t packets =
        request_.length == 0
            ? 1
            : static_cast<std::uint32_t>((std::uint64_t{request_.length} + machine_.mtu() - 1) >>
                                         machine_.mtu_shift());
    if (psn_distance(una_psn_, max_psn_) + packets > kPsnWindow) return false;
    open_record(kind);
    window_[cursor_].packets = packets;
    return true;
}

void RcRequester::open_record(RequestKind kind) {
    SendRecord& record = window_.open(machine_.consumed(), cursor_);
    record.wr_id = request_.wr_id;
    record.first_psn = max_psn_;
    record.packets = 0;
    record.length = request_.length;
    record.opcode = request_.opcode;
    record.flags = request_.flags;
    record.kind = kind;
    record.limited = false;
    ++started_;
    cursor_packet_ = 0;
    if (kind == RequestKind::kLocal) return;
    const std::uint32_t ssn = next_ssn_;
    next_ssn_ = psn_add(ssn, 1);
    if (record.answered()) ++answered_out_;
    if (credits_off_) return;
    if (record.answered() || record.opcode == ipc::WorkOpcode::kRdmaWrite) {
        lsn_ = psn_add(lsn_, 1);
    } else {
        record.limited = psn_before(lsn_, ssn);
    }
}

// A bind executes in its place in the order of sending. A local invalidate waits until everything before it
// has completed, as a request that may be sent again could still need the key.
RcRequester::Step RcRequester::run_local() {
    if (request_.opcode == ipc::WorkOpcode::kLocalInvalidate && machine_.consumed() != cursor_)
        return demand_ack() ? Step::kAgain : wait();
    const Status status = machine_.execute_local(request_);
    if (status != Status::kSuccess) return fail_locally(status);
    open_record(RequestKind::kLocal);
    ++cursor_;
    loaded_ = false;
    complete_done_locals();
    // It completes after those before it, of whom nobody may have asked for an acknowledge.
    const bool awaited = (request_.flags & ipc::kWorkSignaled) != 0 || cursor_ == producer_;
    if (awaited && machine_.consumed() != started_) demand_ack();
    return Step::kAgain;
}

void RcRequester::complete_done_locals() {
    while (machine_.consumed() != started_ && window_[machine_.consumed()].kind == RequestKind::kLocal) {
        complete_head();
    }
}

RcRequester::Step RcRequester::fail_locally(Status status) {
    ++machine_.count().local_errors;
    failing_ = true;
    failing_index_ = cursor_;
    failing_status_ = status;
    return settle_failure();
}

RcRequester::Step RcRequester::settle_failure() {
    if (machine_.consumed() == failing_index_) {
        load();
        machine_.complete_request(request_.wr_id, request_.opcode, request_.length, failing_status_);
        stop();
        machine_.enter_error();
        return wait();
    }
    return demand_ack() ? Step::kAgain : wait();
}

// Makes sure that all requests before the cursor will be acknowledged: sends the last packet of the newest of
// them again, with AckReq, if no response is due for it (9.7.2). True when there is something to send.
bool RcRequester::demand_ack() {
    std::uint32_t index = cursor_;
    while (index != machine_.consumed() && window_[index - 1].kind == RequestKind::kLocal) --index;
    if (index == machine_.consumed()) return false;
    const SendRecord& record = window_[--index];
    const std::uint32_t end = record.end_psn();
    if (record.answered() || awaits(end)) return false;
    cursor_ = index;
    cursor_packet_ = record.packets - 1;
    next_psn_ = psn_add(end, kPsnMask);
    loaded_ = false;
    force_ack_ = true;
    return true;
}

}  // namespace uib::transport
