// A queue pair that only sends, for XRC (IBA 9.7.9, 14 of chapter 10: INI QP). It is the requester of RC with
// the opcodes of XRC: each request names the receiver's shared receive queue (XRCETH), there are no credits,
// and nothing but responses comes in.
#pragma once

#include <algorithm>

#include "engine/transport/machine.h"
#include "engine/transport/rc_requester.h"

namespace uib::transport {

class XrcInitiator final : public Machine {
  public:
    XrcInitiator(const QpConfig& config, Host& host)
        : Machine(config, host), requester_(*this, net::Service::kXrc) {}

    void on_packet(const net::Packet& packet) override;
    bool run(std::uint32_t burst) override;
    void on_timer() override;
    [[nodiscard]] Time next_timer() const override {
        return sending() ? std::min(requester_.next_timer(), held_until()) : kNever;
    }
    [[nodiscard]] bool wants_run() override;
    [[nodiscard]] bool drained() const override { return requester_.drained(); }
    [[nodiscard]] std::uint32_t send_psn() const override { return requester_.next_psn(); }
    /// An initiator receives no requests; what its client set.
    [[nodiscard]] std::uint32_t receive_psn() const override { return parameters_.rq_psn; }

  protected:
    void restart() override { requester_.restart(); }
    void start_receiving() override {}
    void start_sending() override { requester_.start(parameters_.sq_psn); }
    void stop() override { requester_.stop(); }
    void refresh() override { requester_.refresh(); }

  private:
    [[nodiscard]] bool sending() const { return state_ == QpState::kRts || state_ == QpState::kSqd; }

    RcRequester requester_;
};

}  // namespace uib::transport
