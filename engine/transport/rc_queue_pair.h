// A queue pair of the RC service: the two halves, the split of packets between them (IBA 9.6, 9.7).
#pragma once

#include "engine/transport/machine.h"
#include "engine/transport/rc_requester.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

class RcQueuePair final : public Machine {
  public:
    RcQueuePair(const QpConfig& config, Host& host)
        : Machine(config, host), requester_(*this, net::Service::kRc), responder_(*this) {}

    void on_packet(const net::Packet& packet) override;
    bool run(std::uint32_t burst) override;
    void on_timer() override;
    [[nodiscard]] Time next_timer() const override;
    [[nodiscard]] bool wants_run() override;
    [[nodiscard]] bool owes_response() const override { return responder_.owes(); }
    [[nodiscard]] bool drained() const override;
    [[nodiscard]] std::uint32_t send_psn() const override { return requester_.next_psn(); }
    [[nodiscard]] std::uint32_t receive_psn() const override { return responder_.expected_psn(); }

  protected:
    void restart() override;
    void start_receiving() override { responder_.start(parameters_.rq_psn); }
    void start_sending() override { requester_.start(parameters_.sq_psn); }
    void stop() override;
    void refresh() override;

  private:
    /// States in which the requester works.
    [[nodiscard]] bool sending() const { return state_ == QpState::kRts || state_ == QpState::kSqd; }

    RcRequester requester_;
    RcResponder responder_;
    bool requests_first_ = false;  ///< takes turns when there is room for one packet only
};

}  // namespace uib::transport
