// What the queue pairs of the services without acknowledges share (UC, UD, raw): one requester, and nothing
// that is ever owed to the peer.
#pragma once

#include "engine/transport/machine.h"
#include "engine/transport/unreliable_requester.h"

namespace uib::transport {

class UnreliableQueuePair : public Machine, protected PacketMaker {
  public:
    UnreliableQueuePair(const QpConfig& config, Host& host)
        : Machine(config, host), requester_(*this, *this) {}

    bool run(std::uint32_t burst) final;
    void on_timer() final { release(); }
    [[nodiscard]] Time next_timer() const final { return held_until(); }
    [[nodiscard]] bool wants_run() final;
    [[nodiscard]] bool drained() const final { return requester_.drained(); }
    [[nodiscard]] std::uint32_t send_psn() const override { return requester_.next_psn(); }
    [[nodiscard]] std::uint32_t receive_psn() const override { return 0; }

  protected:
    // Machine
    void restart() override { requester_.restart(); }
    void start_receiving() override {}
    void start_sending() final { requester_.start(parameters_.sq_psn); }
    void stop() final {}
    void refresh() final { address(out_); }

    /// How many of `budget` packets may leave in this run.
    [[nodiscard]] virtual std::uint32_t allowance(std::uint32_t budget) { return budget; }
    void count_arrival(const net::Packet& packet);
    /// RTR to SQE: packets are taken. Counts one that is not.
    bool accept_in_state();
    /// A receive for a message of one packet. False: there is none, which is counted, or the queue is broken,
    /// and the QP with it.
    bool take_for_datagram();

    net::Packet out_;  ///< the packet to send, with what all packets of the QP carry

  private:
    UnreliableRequester requester_;
};

}  // namespace uib::transport
