// A queue pair of the UD service (IBA 9.8.3): one packet a message, address and Q_Key from the work request,
// 40 bytes for the GRH in front of each received payload. Numbers 0 and 1 are the management QPs of a port,
// whose packets have key rules of their own (C9-41, C9-42, C9-48, C9-49).
#pragma once

#include "engine/transport/unreliable_queue_pair.h"

namespace uib::transport {

class UdQueuePair final : public UnreliableQueuePair {
  public:
    using UnreliableQueuePair::UnreliableQueuePair;

    void on_packet(const net::Packet& packet) override;

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
};

}  // namespace uib::transport
