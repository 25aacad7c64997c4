// A queue pair of the UC service (IBA 9.8.2). The responder keeps an expected PSN and drops whole messages:
// a gap, a wrong sequence or a failing check ends the message in progress and everything until a First or
// Only (class D1); its receive request serves the next message, or completes in error if it came from a
// shared queue (class E).
#pragma once

#include "engine/transport/psn.h"
#include "engine/transport/unreliable_queue_pair.h"

namespace uib::transport {

class UcQueuePair final : public UnreliableQueuePair {
  public:
    using UnreliableQueuePair::UnreliableQueuePair;

    void on_packet(const net::Packet& packet) override;
    [[nodiscard]] std::uint32_t receive_psn() const override { return epsn_; }

  protected:
    void restart() override;
    void start_receiving() override { epsn_ = parameters_.rq_psn & kPsnMask; }
    std::uint32_t allowance(std::uint32_t budget) override { return admit(budget, parameters_.path.dlid); }

  private:
    enum class Open : std::uint8_t { kNone, kSend, kWrite };

    // uc_requester.cc
    Result make(const SendRequest& request, std::uint32_t offset, std::uint32_t psn,
                std::uint32_t budget) override;
    void send_packet(const SendRequest& request, std::uint32_t psn, std::span<const std::byte> payload,
                     bool first, bool last);

    // uc_responder.cc
    void on_request(const net::Packet& packet);
    bool continues(const net::Packet& packet);
    void on_send(const net::Packet& packet);
    void on_write(const net::Packet& packet);
    bool write_payload(const net::Packet& packet);
    bool take_receive();
    void complete(const net::Packet& packet);
    void drop(std::uint64_t& cause, Status status);
    void local_fault(Status status);

    std::uint32_t epsn_ = 0;
    Open open_ = Open::kNone;
    std::uint64_t write_address_ = 0;
    std::uint32_t write_rkey_ = 0;
    std::uint32_t write_length_ = 0;
    std::uint32_t write_rest_ = 0;
};

}  // namespace uib::transport
