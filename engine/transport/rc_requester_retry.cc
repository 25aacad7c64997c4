// Retries (IBA 9.7.6.1, 9.9.2.1.1): the transport timer, sequence and implied NAKs, RNR back-off.
//
// The timer runs while a response that was asked for is outstanding. Two counters: errors (timeout, sequence
// NAK, implied NAK) and RNR; each is reloaded when una moves, and by nothing else (C9-137, C9-142): losses
// add up across RNR NAKs of one request. With a counter of n a packet is sent n + 1 times. When the error
// counter has run out an armed alternate path gets as many tries (o9-82, o9-86); RNR says nothing against a
// path.
#include "engine/transport/rc_requester.h"
#include "engine/transport/rnr_timer.h"

namespace uib::transport {
namespace {

constexpr std::uint8_t kUnlimitedRnr = 7;

}  // namespace

void RcRequester::reload_counters() {
    retry_left_ = machine_.parameters().retry_count;
    rnr_left_ = machine_.parameters().rnr_retry;
}

void RcRequester::start_timer() {
    const Time wait = ack_timeout(machine_.parameters().timeout);
    ack_deadline_ = wait == kNever ? kNever : machine_.host().now() + wait;
}

void RcRequester::renew_timer() {
    if (una_psn_ != awaited_psn_ && rnr_deadline_ == kNever) {
        start_timer();
    } else {
        ack_deadline_ = kNever;
    }
}

void RcRequester::on_timer() {
    const Time now = machine_.host().now();
    if (rnr_deadline_ <= now) {
        rnr_deadline_ = kNever;
        stalled_ = false;
    }
    if (ack_deadline_ > now) return;
    ack_deadline_ = kNever;
    ++machine_.count().timeouts;
    retry();
}

// Once for each una: the responses behind a gap all say the same.
void RcRequester::implied_nak() {
    if (machine_.state() == QpState::kError || implied_) return;
    ++machine_.count().implied_naks;
    retry();
    implied_ = true;
}

void RcRequester::retry() {
    if (machine_.state() == QpState::kError || machine_.consumed() == started_) return;
    if (retry_left_ != 0) {
        --retry_left_;
    } else if (!machine_.migrate()) {  // which reloads the counters
        fail_head(Status::kRetryExceeded, 0);
        return;
    }
    implied_ = false;
    go_back();
}

// Go-back-N: the next packet is that of una.
void RcRequester::go_back() {
    const std::uint32_t consumed = machine_.consumed();
    if (consumed == started_) return;
    cursor_ = consumed;
    cursor_packet_ = psn_distance(window_[consumed].first_psn, una_psn_);
    next_psn_ = una_psn_;
    awaited_psn_ = una_psn_;
    since_ack_ = 0;
    loaded_ = false;
    stalled_ = false;
    ack_deadline_ = kNever;
}

void RcRequester::receiver_not_ready(std::uint8_t syndrome) {
    if (machine_.state() == QpState::kError) return;
    ++machine_.count().rnr_naks_received;
    if (rnr_left_ == 0) {
        fail_head(Status::kRnrRetryExceeded, syndrome);
        return;
    }
    if (rnr_left_ != kUnlimitedRnr) --rnr_left_;
    go_back();
    rnr_deadline_ = machine_.host().now() + rnr_wait(syndrome);
}

}  // namespace uib::transport
