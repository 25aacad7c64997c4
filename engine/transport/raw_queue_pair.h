// A queue pair of raw packets: Ethernet frames (IBV_QPT_RAW_PACKET), or raw datagrams of an InfiniBand link
// (IBA 9.8.4: raw IPv6 and raw EtherType). The configuration says which; a queue pair sends and takes only
// that kind (o9-146).
//
// One request is one packet, complete once it is with the wire (UnreliableRequester). A packet that comes in
// takes one receive; who gets which packet is decided outside (flow rules, or whatever ties the adapter's QPs
// to raw services). A frame that is longer than the receive ends it with a length error and the QP goes to
// the error state, as mlx5 does; one without a receive is dropped and counted.
//
// Nothing of the IBA transport is checked: a raw packet has neither P_Key nor Q_Key, PSN or ICRC.
#pragma once

#include "engine/transport/unreliable_queue_pair.h"

namespace uib::transport {

/// Bounds of an Ethernet frame without FCS: the header alone, and a VLAN-tagged jumbo frame.
inline constexpr std::uint32_t kMinFrameBytes = 14;
inline constexpr std::uint32_t kMaxFrameBytes = 9018;

/// Largest payload of a raw datagram (9.8.4.1): the packet has at most MTU + 124 bytes from the LRH on. The
/// payload of raw IPv6 starts with the IPv6 header. Both are multiples of 4.
constexpr std::uint32_t max_raw_payload(net::PacketKind kind, std::uint32_t mtu) {
    return kind == net::PacketKind::kRawEthertype ? mtu + 112 : mtu + 116;
}
/// Smallest payload: a raw EtherType packet has 5 words at least (LRH:PktLen), raw IPv6 the IPv6 header.
constexpr std::uint32_t min_raw_payload(net::PacketKind kind) {
    return kind == net::PacketKind::kRawEthertype ? 8 : 40;
}

class RawQueuePair final : public UnreliableQueuePair {
  public:
    using UnreliableQueuePair::UnreliableQueuePair;

    void on_packet(const net::Packet& packet) override;
    [[nodiscard]] std::uint32_t send_psn() const override { return 0; }

  private:
    Result make(const SendRequest& request, std::uint32_t offset, std::uint32_t psn,
                std::uint32_t budget) override;
    [[nodiscard]] Status check_request(const SendRequest& request) const;
    bool pad(std::span<const std::byte>& view, std::uint32_t wire_bytes);
    bool accept(const net::Packet& packet);
};

}  // namespace uib::transport
