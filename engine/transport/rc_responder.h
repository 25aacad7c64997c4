// The receiving half of a reliable connection or of an XRC target (IBA 9.7.4, 9.7.5, 9.7.9.2, 9.9.3).
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
// A refusal (classes A, C and K) puts the QP into the error state at once; what was owed before it and its
// NAK are still sent.
//
// Files: rc_responder.cc the order of checks; rc_refusals.h and rc_responder_refuse.cc what a failed check
// does; rc_responder_{send,write,read,atomic,atomic_write}.cc execution; rc_responder_xrc.cc the SRQ of an
// XRC request; rc_duplicates.cc, rc_duplicate_{read,atomic}.cc repeated requests; rc_responder_respond.cc
// sending; rc_responder_credits.cc what acknowledges tell of receives.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transport/machine.h"
#include "engine/transport/psn.h"
#include "engine/transport/rc_refusals.h"

namespace uib::transport {

class RcResponder {
  public:
    explicit RcResponder(Machine& machine);

    void restart();
    void start(std::uint32_t psn);
    void refresh();
    void stop() { forget_responses(); }

    void on_request(const net::Packet& packet);
    /// Sends at most `budget` packets of what is owed; the number sent.
    std::uint32_t respond(std::uint32_t budget);
    [[nodiscard]] bool owes() const {
        return serve_ != newest_ || nak_pending_ || ack_pending_ || should_tell_credits();
    }
    [[nodiscard]] std::uint32_t expected_psn() const { return epsn_; }

  private:
    /// A READ or atomic request that was accepted, and how far its response has got.
    struct Saved {
        std::uint64_t address = 0;
        std::uint64_t original = 0;  ///< atomics: the value found
        memory::PdId pd = 0;         ///< whose keys it may use
        std::uint32_t rkey = 0;
        std::uint32_t length = 0;
        std::uint32_t psn = 0;
        std::uint32_t packets = 0;
        std::uint32_t first = 0;  ///< this response's packets: [first, end), next to send
        std::uint32_t next = 0;
        std::uint32_t end = 0;
        std::uint32_t end_byte = 0;  ///< of the original, behind the last to send
        net::Operation operation{};
        bool pending = false;
        bool duplicate = false;
    };
    enum class Open : std::uint8_t { kNone, kSend, kWrite };

    // rc_responder.cc
    [[nodiscard]] bool sequence_fits(net::Operation operation) const;
    [[nodiscard]] bool supports(net::Operation operation) const;
    void execute(const net::Packet& packet);
    void out_of_sequence();
    bool take_receive();
    void executed(const net::Packet& packet);
    void forget_responses();
    [[nodiscard]] std::uint32_t response_packets(std::uint32_t length) const;
    [[nodiscard]] memory::Checked check_remote(memory::PdId pd, std::uint32_t rkey, std::uint64_t address,
                                               std::uint64_t length, std::uint32_t right) const;

    // rc_responder_refuse.cc
    void refuse(const Refusal& refusal);
    void refuse_response(const Refusal& refusal, std::uint32_t psn);
    [[nodiscard]] bool flush_writes();
    void refuse_at(const Refusal& refusal, std::uint32_t psn);
    void owe_nak(const Refusal& refusal, std::uint32_t psn);
    void raise(QpEvent event);

    // rc_responder_xrc.cc
    bool find_receive_queue(const net::Packet& packet);

    // rc_responder_send.cc, rc_responder_write.cc
    void on_send(const net::Packet& packet);
    void finish_send(const net::Packet& packet);
    void on_write(const net::Packet& packet);
    bool start_write(const net::Packet& packet);
    bool write_payload(const net::Packet& packet);
    void finish_write(const net::Packet& packet);

    // rc_responder_read.cc, rc_responder_atomic.cc, rc_responder_atomic_write.cc
    void on_read(const net::Packet& packet);
    std::uint32_t send_read(Saved& saved, std::uint32_t budget);
    bool gather_read(Saved& saved, std::uint32_t length, std::span<const std::byte>& view);
    void fail_read(Saved& saved, const Refusal& refusal);
    void on_atomic(const net::Packet& packet);
    void on_atomic_write(const net::Packet& packet);
    void send_atomic(Saved& saved);
    Saved* save(const net::Packet& packet, std::uint32_t packets);
    void keep(const Saved& saved);

    // rc_duplicates.cc, rc_duplicate_read.cc, rc_duplicate_atomic.cc
    void on_duplicate(const net::Packet& packet);
    void repeat_read(const net::Packet& packet);
    void repeat_atomic(const net::Packet& packet);
    void serve_again(std::uint32_t index);
    template <typename Match>
    bool find_saved(Match match, std::uint32_t& index) {
        for (index = newest_ - count_; index != newest_; ++index) {
            if (match(saved(index))) return true;
        }
        return false;
    }

    // rc_responder_respond.cc
    bool send_saved(std::uint32_t budget, std::uint32_t& used);
    void send_nak();
    void send_acknowledge(std::uint8_t syndrome, std::uint32_t psn);
    void start_response(net::Operation operation, std::uint32_t psn);
    void fill_aeth(std::uint8_t syndrome);
    Saved& saved(std::uint32_t index) { return saved_[index & (saved_.size() - 1)]; }

    // rc_responder_credits.cc
    std::uint8_t ack_syndrome();
    [[nodiscard]] bool should_tell_credits() const;

    Machine& machine_;
    const bool xrc_;
    const memory::Mover::Owner owner_;
    net::Packet out_;
    std::vector<Saved> saved_;  ///< power of two, at least depth_
    std::uint32_t depth_ = 0;   ///< max_dest_rd_atomic
    std::uint32_t count_ = 0;   ///< saved so far, up to depth_
    std::uint32_t serve_ = 0;   ///< free-running
    std::uint32_t newest_ = 0;  ///< one past the newest

    std::uint32_t epsn_ = 0;
    std::uint32_t msn_ = 0;
    std::uint32_t acked_psn_ = 0;  ///< newest SEND or WRITE packet executed
    std::uint32_t unwritten_psn_ = 0;
    std::uint32_t nak_psn_ = 0;
    std::uint8_t nak_syndrome_ = 0;
    bool nak_pending_ = false;
    bool ack_pending_ = false;
    bool waiting_ = false;        ///< NAKed: only the expected PSN or duplicates count
    bool unwritten_ = false;      ///< packets from unwritten_psn_ on were executed since the last flush
    bool told_none_ = false;      ///< the newest acknowledge gave no credits
    bool peer_may_wait_ = false;  ///< the newest SEND began like one without credits
    Open open_ = Open::kNone;

    memory::PdId pd_ = 0;              ///< for the request at hand; XRC: its SRQ's
    std::uint32_t xrc_srq_ = 0;        ///< XRC: named by the request at hand
    std::uint64_t write_address_ = 0;  ///< of the WRITE in progress: where the next byte goes
    std::uint32_t write_rkey_ = 0;
    std::uint32_t write_length_ = 0;
    std::uint32_t write_rest_ = 0;
};

}  // namespace uib::transport
