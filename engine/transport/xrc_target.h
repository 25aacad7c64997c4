// The XRC target QP (IBA 9.7.9.2, 10.2.9): a responder and nothing else. It has no queues of its own: each
// request names an XRC SRQ of its domain, which gives receives, PD and CQ. Requests of its initiator come in,
// acknowledges and READ responses go out; there is nothing to drain, and in the error state only the receive
// in use is flushed, as the SRQ's others belong to all.
#pragma once

#include "engine/transport/machine.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

class XrcTarget final : public Machine {
  public:
    XrcTarget(const QpConfig& config, Host& host) : Machine(config, host), responder_(*this) {}

    void on_packet(const net::Packet& packet) override;
    bool run(std::uint32_t burst) override;
    void on_timer() override { release(); }
    [[nodiscard]] Time next_timer() const override { return held_until(); }
    [[nodiscard]] bool wants_run() override;
    [[nodiscard]] bool owes_response() const override { return responder_.owes(); }
    [[nodiscard]] bool drained() const override { return true; }
    [[nodiscard]] std::uint32_t send_psn() const override { return parameters_.sq_psn & kPsnMask; }
    [[nodiscard]] std::uint32_t receive_psn() const override { return responder_.expected_psn(); }

  protected:
    void restart() override { responder_.restart(); }
    void start_receiving() override { responder_.start(parameters_.rq_psn); }
    void start_sending() override {}
    void stop() override { responder_.stop(); }
    void refresh() override { responder_.refresh(); }

  private:
    [[nodiscard]] bool receiving() const;

    RcResponder responder_;
};

}  // namespace uib::transport
