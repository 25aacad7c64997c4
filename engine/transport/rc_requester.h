// The sending half of a reliable connection, of RC and XRC (IBA 9.7.3, 9.7.6, 9.7.7.2.5, 9.9.2).
//
// Progress is kept as indices and PSNs, not as flags:
//
//   requests   consumed <= cursor <= started <= producer      (free-running numbers)
//              completed below consumed, in flight up to started; the next packet belongs to `cursor`
//   PSNs       una <= next <= max                             (three-PSN paradigm, 9.7.3)
//              una: oldest unacknowledged; next: of the next packet; max: first never sent
//
// Retransmission moves cursor and next back to una (go-back-N) and fetches the requests afresh: a request
// that no longer has the opcode and length of its record completes with LOC_QP_OP_ERR. A request that fails
// locally holds the queue until everything before it has completed (C9-209). What waits for a response or a
// timer sets `stalled_`, which the next response or timer clears, so an idle or waiting queue costs one
// comparison. Where waiting needs an acknowledge that nobody asked for, the last packet is sent again with
// AckReq.
//
// Files: rc_requester.cc starts requests; rc_requester_emit.cc makes packets; rc_requester_ack.cc takes
// responses; rc_requester_retry.cc has timers and retries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/transport/machine.h"
#include "engine/transport/send_window.h"

namespace uib::transport {

class RcRequester {
  public:
    RcRequester(Machine& machine, net::Service service) : machine_(machine), service_(service) {}

    void restart();  ///< reset: nothing under way
    void start(std::uint32_t psn);
    void refresh();  ///< parameters or state changed
    void stop();     ///< error state: nothing is sent or awaited any more

    /// Sends at most `budget` packets; the number sent.
    std::uint32_t run(std::uint32_t budget);
    void on_response(const net::Packet& packet);
    void on_timer();
    [[nodiscard]] Time next_timer() const { return std::min(ack_deadline_, rnr_deadline_); }
    [[nodiscard]] bool wants_run();
    [[nodiscard]] bool drained() const { return machine_.send_consumed() == started_; }
    [[nodiscard]] std::uint32_t next_psn() const { return max_psn_; }

  private:
    enum class Step { kReady, kAgain, kWait };

    // rc_requester.cc: what to send next
    Step prepare();
    [[nodiscard]] std::uint32_t flight_room() const;
    Step begin();
    Step reload();
    Step check_answered(RequestKind kind);
    Step run_local();
    bool admits(RequestKind kind);
    void open_record(RequestKind kind);
    void load();
    Step wait();
    Step fail_locally(Status status);
    Step settle_failure();
    bool demand_ack();
    void complete_done_locals();

    // rc_requester_emit.cc: packets
    std::uint32_t emit(std::uint32_t budget);
    std::uint32_t emit_payload(SendRecord& record, std::uint32_t budget);
    void emit_packet(SendRecord& record, std::span<const std::byte> payload, bool last);
    void emit_read(const SendRecord& record);
    void emit_atomic(const SendRecord& record);
    std::uint32_t emit_atomic_write();
    void prepare_request(net::Operation operation);
    [[nodiscard]] std::uint32_t ack_every() const;
    bool wants_ack(const SendRecord& record, bool last);
    void sent(std::uint32_t psns, bool response_expected, bool last);

    // rc_requester_ack.cc: responses
    bool advance_to(std::uint32_t limit);
    void acknowledge(const net::Packet& packet);
    void negative(const net::Packet& packet);
    void read_response(const net::Packet& packet);
    void read_data(const net::Packet& packet, bool ends);
    void atomic_response(const net::Packet& packet);
    void stray_response(const net::Packet& packet, bool is_nak);
    void bad_response(std::uint8_t syndrome);
    Status place(const SendRecord& record, std::uint32_t offset, std::span<const std::byte> bytes);
    void take_credits(const net::Aeth& aeth);
    void progressed(std::uint32_t old_una);
    void complete_head();
    void resync(std::uint32_t old_una);
    void fail_head(Status status, std::uint8_t syndrome);
    bool outstanding(std::uint32_t psn) const {
        return psn_distance(una_psn_, psn) < psn_distance(una_psn_, max_psn_);
    }

    /// A response has been asked for that will acknowledge everything before `end`.
    bool awaits(std::uint32_t end) const {
        return psn_distance(una_psn_, awaited_psn_) >= psn_distance(una_psn_, end);
    }

    // rc_requester_retry.cc: timers and retries
    void start_timer();
    void renew_timer();
    void implied_nak();
    void retry();
    void go_back();
    void receiver_not_ready(std::uint8_t syndrome);
    void reload_counters();

    Machine& machine_;
    const net::Service service_;  ///< of its packets: RC or XRC
    SendWindow window_;
    net::Packet out_;  ///< the packet being made; path fields stay filled in
    std::uint32_t cursor_ = 0;
    std::uint32_t cursor_packet_ = 0;  ///< packets of `cursor` already sent in this pass
    std::uint32_t started_ = 0;
    std::uint32_t producer_ = 0;  ///< last look at the send queue
    std::uint32_t una_psn_ = 0;
    std::uint32_t next_psn_ = 0;
    std::uint32_t max_psn_ = 0;
    std::uint32_t awaited_psn_ = 0;   ///< newest PSN whose response was asked for, + 1
    std::uint32_t resent_end_ = 0;    ///< max when a packet was last sent again
    std::uint32_t since_ack_ = 0;     ///< packets sent since one asked for a response
    std::uint32_t answered_out_ = 0;  ///< READs and atomics under way

    std::uint32_t next_ssn_ = 1;  ///< of the next message (9.7.7.2)
    std::uint32_t lsn_ = 0;
    std::uint32_t credit_wait_psn_ = 0;
    bool credits_off_ = false;
    bool credit_wait_ = false;  ///< a limited request waits for the response to credit_wait_psn_

    bool stalled_ = false;
    bool force_ack_ = false;  ///< AckReq on the next packet
    bool loaded_ = false;     ///< request_ is that of cursor_
    bool failing_ = false;    ///< cursor_ fails locally once all before it have completed
    bool resent_ = false;     ///< una is below resent_end_
    bool implied_ = false;    ///< an implied NAK of una was acted on
    Status failing_status_ = Status::kSuccess;
    std::uint32_t failing_index_ = 0;

    std::uint8_t retry_left_ = 0;
    std::uint8_t rnr_left_ = 0;
    Time ack_deadline_ = kNever;
    Time rnr_deadline_ = kNever;

    SendRequest request_;   ///< of cursor_
    SendRequest answered_;  ///< the READ or atomic whose responses arrive
    std::uint32_t answered_index_ = 0;
    bool answered_loaded_ = false;
};

}  // namespace uib::transport
