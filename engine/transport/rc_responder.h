// The receiving half of a reliable connection (IBA 9.7.4, 9.7.5, 9.9.3).
//
// on_request() executes what is expected, in order, and notes what it owes; respond() sends it:
//
//   READ and atomic responses   from `saved_`, a ring of the newest max_dest_rd_atomic requests, which also
//                               serves duplicates; in PSN order, `serve_` is the next to look at
//   one NAK                     after all of them
//   one ACK                     after all of them, with the newest PSN executed; dropped if a NAK goes out
//
// READ data is gathered when it is sent, a burst at a time, and a burst may end anywhere. Writes are
// scattered as they come and flushed before anyone is told of them: a completion, an acknowledge, an atomic.
// A refusal (classes A and C) puts the QP into the error state at once; what was owed before it and its NAK
// are still sent.
//
// Files: rc_responder.cc order and checks; rc_responder_{send,write,read,atomic}.cc execution;
// rc_responder_respond.cc sending; rc_duplicates.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transport/machine.h"
#include "engine/transport/psn.h"

namespace uib::transport {

class RcResponder {
  public:
    explicit RcResponder(Machine& machine) : machine_(machine) {}

    void restart();
    void start(std::uint32_t psn);
    void refresh();
    void stop() { forget_responses(); }

    void on_request(const net::Packet& packet);
    /// Sends at most `budget` packets of what is owed; the number sent.
    std::uint32_t respond(std::uint32_t budget);
    [[nodiscard]] bool owes() const { return serve_ != newest_ || nak_pending_ || ack_pending_; }
    [[nodiscard]] std::uint32_t expected_psn() const { return epsn_; }

  private:
    /// A READ or atomic request that was accepted, and how far its response has got.
    struct Saved {
        std::uint64_t address = 0;
        std::uint64_t original = 0;  ///< atomics: the value found
        std::uint32_t rkey = 0;
        std::uint32_t length = 0;
        std::uint32_t psn = 0;
        std::uint32_t packets = 0;
        std::uint32_t first = 0;  ///< this response's packets: [first, end), next to send
        std::uint32_t next = 0;
        std::uint32_t end = 0;
        net::Operation operation{};
        bool pending = false;
        bool duplicate = false;
    };
    enum class Open : std::uint8_t { kNone, kSend, kWrite };

    // rc_responder.cc
    bool sequence_fits(net::Operation operation) const;
    void out_of_sequence();
    void refuse(std::uint8_t syndrome, std::uint32_t psn, Status status, QpEvent event);
    void refuse_packet(std::uint8_t syndrome, Status status, QpEvent event);
    bool take_receive();
    void executed(const net::Packet& packet);
    void forget_responses();
    [[nodiscard]] bool may(std::uint32_t right) const;

    // rc_responder_send.cc, rc_responder_write.cc
    void on_send(const net::Packet& packet);
    bool finish_send(const net::Packet& packet);
    void on_write(const net::Packet& packet);
    bool start_write(const net::Packet& packet);
    bool write_payload(const net::Packet& packet);
    bool finish_write(const net::Packet& packet);

    // rc_responder_read.cc, rc_responder_atomic.cc
    void on_read(const net::Packet& packet);
    std::uint32_t send_read(Saved& saved, std::uint32_t budget);
    bool gather_read(Saved& saved, std::uint32_t length, std::span<const std::byte>& view);
    void fail_read(Saved& saved, std::uint8_t syndrome, Status status, QpEvent event);
    void on_atomic(const net::Packet& packet);
    void send_atomic(Saved& saved);
    Saved* save(const net::Packet& packet, std::uint32_t packets);

    // rc_duplicates.cc
    void on_duplicate(const net::Packet& packet);
    void repeat_read(const net::Packet& packet);
    void repeat_atomic(const net::Packet& packet);
    void serve_again(std::uint32_t index);
    template <typename Match>
    bool find_saved(Match match, std::uint32_t& index);

    // rc_responder_respond.cc
    void send_acknowledge(std::uint8_t syndrome, std::uint32_t psn);
    void fill_aeth(std::uint8_t syndrome);
    [[nodiscard]] std::uint8_t ack_syndrome() const;
    Saved& saved(std::uint32_t index) { return saved_[index & (saved_.size() - 1)]; }

    Machine& machine_;
    net::Packet out_;
    std::vector<Saved> saved_;  ///< power of two, at least depth_
    std::uint32_t depth_ = 0;   ///< max_dest_rd_atomic
    std::uint32_t count_ = 0;   ///< saved so far, up to depth_
    std::uint32_t serve_ = 0;   ///< free-running
    std::uint32_t newest_ = 0;  ///< one past the newest

    std::uint32_t epsn_ = 0;
    std::uint32_t msn_ = 0;
    std::uint32_t acked_psn_ = 0;  ///< newest SEND or WRITE packet executed
    std::uint32_t nak_psn_ = 0;
    std::uint8_t nak_syndrome_ = 0;
    bool nak_pending_ = false;
    bool ack_pending_ = false;
    bool waiting_ = false;  ///< NAKed: only the expected PSN or duplicates count
    Open open_ = Open::kNone;

    std::uint64_t write_address_ = 0;  ///< of the WRITE in progress: where the next byte goes
    std::uint32_t write_rkey_ = 0;
    std::uint32_t write_length_ = 0;
    std::uint32_t write_rest_ = 0;
};

}  // namespace uib::transport
