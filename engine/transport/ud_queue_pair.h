// A queue pair of the UD service (IBA 9.8.3): one packet a message, address and Q_Key from the work request,
// 40 bytes for the GRH in front of each received payload. Numbers 0 and 1 are the management QPs of a port,
// whose packets have key rules of their own (C9-41, C9-42, C9-48, C9-49).
#pragma once

#include "engine/transport/machine.h"
#include "engine/transport/unreliable_requester.h"

namespace uib::transport {

class UdQueuePair final : public Machine, private PacketMaker {
  public:
    UdQueuePair(const QpConfig& config, Host& host) : Machine(config, host), requester_(*this, *this) {}

    void on_packet(const net::Packet& packet) override;
    bool run(std::uint32_t burst) override;
    void on_timer() override { release(); }
    [[nodiscard]] Time next_timer() const override { return held_until(); }
    [[nodiscard]] bool wants_run() override;
    [[nodiscard]] bool drained() const override { return requester_.drained(); }
    [[nodiscard]] std::uint32_t send_psn() const override { return requester_.next_psn(); }
    [[nodiscard]] std::uint32_t receive_psn() const override { return 0; }

  protected:
    void restart() override { requester_.restart(); }
    void start_receiving() override {}
    void start_sending() override { requester_.start(parameters_.sq_psn); }
    void stop() override {}
    void refresh() override { address(out_); }

  private:
    // ud_requester.cc
    Result make(const SendRequest& request, std::uint32_t offset, std::uint32_t psn,
                std::uint32_t budget) override;
    bool address_datagram(const SendRequest& request);

    // ud_responder.cc
    bool accept_datagram(const net::Packet& packet);
    bool accept_destination(const net::Packet& packet);
    bool accept_keys(const net::Packet& packet);
    void on_send(const net::Packet& packet);
    void complete(const net::Packet& packet);

    UnreliableRequester requester_;
    net::Packet out_;
};

}  // namespace uib::transport
