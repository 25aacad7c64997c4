// RoCE v2 over a frame port: addresses, neighbours and routes come from the kernel's view of the interface.
//
// Owns the frame port and the netlink sockets. A packet for a neighbour that the kernel is still looking for
// waits, at most kPendingTime, in a small queue. The kernel is kept from answering the UDP port by
// port_4791.h, and spared the frames by ingress_drop.h.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/encap/ingress_drop.h"
#include "net/encap/roce_frame.h"
#include "net/encap/uplink.h"
#include "net/netlink/group_memberships.h"
#include "net/netlink/host_network.h"
#include "net/port/frame_port.h"

namespace uib::net {

class RoceUplink final : public Uplink {
  public:
    /// `interface` has the addresses; `vlan`: frames carry this tag (interfaces of the kernel's that tag by
    /// themselves need none). Throws std::runtime_error.
    RoceUplink(std::unique_ptr<FramePort> port, const std::string& interface,
               std::optional<std::uint16_t> vlan);

    bool receive(Time now, PacketSink& sink) override;
    [[nodiscard]] std::uint32_t room() const override { return port_->room(); }
    void send(const Packet& packet) override;
    void end_turn() override;
    [[nodiscard]] Time next_deadline() const override;
    [[nodiscard]] std::vector<int> wake_descriptors() const override;
    [[nodiscard]] bool sleepable() const override { return port_->wake_descriptor() >= 0; }
    void watch(bool asleep) override;
    [[nodiscard]] bool active() const override { return active_; }
    [[nodiscard]] std::uint32_t mtu() const override { return mtu_; }
    [[nodiscard]] MacAddress mac() const override { return port_->mac(); }
    [[nodiscard]] std::vector<Gid> gids() const override { return gids_; }
    [[nodiscard]] int ingress_error() const override { return ingress_.error(); }
    std::uint8_t take_changes() override { return std::exchange(changes_, std::uint8_t{0}); }
    std::vector<Counter> counters() override;
    void listen(FrameListener* listener) override { listener_ = listener; }
    void join(const Gid& group) override;
    void leave(const Gid& group) override { memberships_.leave(group); }

  private:
    static constexpr Time kCheckInterval = 50'000'000;
    static constexpr Time kForgetInterval = 5'000'000'000;  ///< ways are asked for again
    static constexpr Time kPendingTime = 1'000'000'000;
    static constexpr Time kPendingRetry = 1'000'000;
    static constexpr std::size_t kPendingMax = 256;

    /// A frame, complete but for the destination's MAC.
    struct Pending {
        Gid to{};
        Time expires = 0;
        Packet packet{};  ///< without its payload
        std::vector<std::byte> frame;
    };

    void check_host(Time now);
    void refresh_addresses();
    void retry_pending(Time now);
    [[nodiscard]] RoceEnvelope envelope_for(const Packet& packet, const MacAddress& to) const;
    /// Where packets to `to` go, in last_mac_. False: this one went elsewhere, to wait or to be counted.
    bool find(const Gid& to, const Packet& packet);
    [[nodiscard]] bool waits_for(const Gid& to) const;
    void hold(const Packet& packet);
    void drop(RoceError error);
    /// The packet as it leaves: what the host's stack would have filled in.
    static Packet completed(const Packet& packet);
    void commit(std::span<const std::byte> frame, const Packet& packet);

    std::shared_ptr<const void> udp_port_;
    std::unique_ptr<FramePort> port_;
    HostNetwork network_;
    GroupMemberships memberships_;
    std::optional<std::uint16_t> vlan_;
    std::vector<Gid> gids_;
    IngressDrop ingress_;
    bool active_ = false;
    std::uint32_t mtu_ = 0;
    std::uint8_t changes_ = 0;
    Time now_ = 0;
    Time next_check_ = 0;
    Time next_forget_ = 0;
    Time next_retry_ = kNoDeadline;
    Gid last_to_{};  ///< resolved last, valid while last_known_
    MacAddress last_mac_{};
    bool last_known_ = false;
    Gid unreachable_{};  ///< had no route when it was asked for last, which is not asked again before
    Time ask_again_ = 0;
    std::deque<Pending> pending_;
    FrameListener* listener_ = nullptr;
    std::array<std::uint64_t, kRoceErrorCount> errors_{};
    std::uint64_t other_host_ = 0;
    std::uint64_t no_route_ = 0;
    std::uint64_t mixed_families_ = 0;
    std::uint64_t join_refused_ = 0;
    std::uint64_t unresolved_ = 0;
    std::uint64_t congested_ = 0;
};

}  // namespace uib::net
