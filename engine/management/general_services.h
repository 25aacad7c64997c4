// The general services of an engine's ports (IBA 13.5): management datagrams to and from QP1. So far those of
// subnet administration: the ports' memberships of multicast groups ask, and the subnet manager, if it is
// master at the port where the request comes in, answers.
//
// Datagrams to be sent wait until the owner takes them, so that one can be answered from within the delivery
// of others.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "engine/management/group_memberships.h"

namespace uib::management {

inline constexpr std::uint32_t kGeneralServicesQp = 1;
inline constexpr std::uint32_t kGeneralServicesQkey = 0x80010000;

class GeneralServices {
  public:
    explicit GeneralServices(EngineSubnet& subnet);
    GeneralServices(const GeneralServices&) = delete;
    GeneralServices& operator=(const GeneralServices&) = delete;

    [[nodiscard]] GroupMemberships& memberships() { return memberships_; }
    [[nodiscard]] const GroupMemberships& memberships() const { return memberships_; }

    /// A packet to QP1 of an adapter's port.
    void receive(std::size_t adapter, const net::Packet& packet, Time now);
    void on_timer(Time now) { memberships_.on_timer(now); }
    [[nodiscard]] Time next_deadline() const {
        return outgoing_.empty() ? memberships_.next_deadline() : Time{0};
    }

    struct Datagram {
        std::size_t adapter = 0;
        net::Packet packet;  ///< without payload
        std::array<std::byte, net::kMadBytes> mad{};
    };
    [[nodiscard]] bool has_outgoing() const { return !outgoing_.empty(); }
    /// What is to be sent, each by the port of its adapter with `mad` as the packet's payload.
    [[nodiscard]] std::deque<Datagram> take_outgoing() { return std::exchange(outgoing_, {}); }

    /// Datagrams that went nowhere, by cause.
    struct Drops {
        std::uint64_t pkey = 0;  ///< not in the port's table (9.6.1.2.4)
        std::uint64_t qkey = 0;  ///< not that of QP1 (C9-49)
        std::uint64_t malformed = 0;
        std::uint64_t management_class = 0;  ///< nobody here serves it
        std::uint64_t not_master = 0;        ///< requests where no master is
        std::uint64_t unexpected = 0;        ///< answers to nothing
    };
    [[nodiscard]] const Drops& drops() const { return drops_; }

  private:
    void send(std::size_t adapter, net::Lid to, std::uint32_t qp, std::uint8_t sl, std::uint16_t pkey,
              const AdministrationMad& mad);
    [[nodiscard]] bool has_pkey(std::size_t adapter, std::uint16_t pkey) const;

    EngineSubnet& subnet_;
    GroupMemberships memberships_;
    std::deque<Datagram> outgoing_;
    Drops drops_;
};

}  // namespace uib::management
