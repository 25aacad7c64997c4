// Flushing in the error states (IBA 10.3.1.4, 10.3.1.7, 11.6.2): every outstanding and later posted request
// completes with WR_FLUSH_ERR, in order, signaled or not. A QP on a shared receive queue flushes only the
// request it has taken, and then owes LAST_WQE_REACHED once (11.6.3.1).
#include "engine/transport/machine.h"

namespace uib::transport {

void Machine::flush(std::uint32_t budget) {
    if (config_.send_queue != nullptr) {
        SendRequest request;
        const std::uint32_t producer = config_.send_queue->producer();
        while (consumed_ != producer && budget > 0) {
            config_.send_queue->fetch(consumed_, request);
            complete_request(request.wr_id, request.opcode, request.length, Status::kFlushed);
            --budget;
        }
    }
    if (state_ != QpState::kError || !flush_receives(budget)) return;
    if (last_wqe_event_) {
        last_wqe_event_ = false;
        raise(QpEvent::kLastWqeReached);
    }
}

bool Machine::flush_receives(std::uint32_t& budget) {
    if (receive_in_error_) {
        receive_in_error_ = false;
        receive_.fail(Status::kFlushed);
    }
    ReceiveQueue* queue = config_.receive_queue;
    if (queue == nullptr || queue->shared()) return true;
    while (budget > 0 && receive_.take() != ReceiveMessage::Take::kNone) {
        receive_.fail(Status::kFlushed);
        --budget;
    }
    return true;
}

bool Machine::wants_flush() {
    if (state_ != QpState::kError && state_ != QpState::kSqe) return false;
    if (config_.send_queue != nullptr && config_.send_queue->producer() != consumed_) return true;
    if (state_ == QpState::kSqe) return false;
    if (receive_in_error_ || last_wqe_event_) return true;
    const ReceiveQueue* queue = config_.receive_queue;
    return queue != nullptr && !queue->shared() && config_.receive_queue->available() > 0;
}

}  // namespace uib::transport
