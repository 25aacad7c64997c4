// A packet socket that becomes readable when one of our frames arrives at a host interface, for the time that
// the lane sleeps. Awake, it takes nothing (a filter refuses all), so that frames are not copied twice.
//
// The drivers that share an interface with the kernel have no interrupt of their own (dpdk.md, section 4).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ipc/unique_fd.h"

namespace uib::net {

class WakeSocket {
  public:
    WakeSocket() = default;
    /// `ether_type`: frames of this type wake; 0: RoCE v2 over IPv4 and IPv6 (also behind a VLAN tag), and
    /// RoCE v1. Throws std::system_error (EPERM without CAP_NET_RAW).
    WakeSocket(int interface_index, std::uint16_t ether_type);

    /// Goes over to another interface; the descriptor stays. Throws std::system_error.
    void bind(int interface_index);
    [[nodiscard]] int descriptor() const { return socket_.get(); }
    /// Asleep: the filter lets ours through. Awake: nothing, and what waits is thrown away.
    void watch(bool asleep);

  private:
    void drain() const;

    ipc::UniqueFd socket_;
    std::uint16_t ether_type_ = 0;
    bool asleep_ = false;
};

/// Sockets of this process in a domain (AF_PACKET, AF_XDP), by descriptor: a driver's own are those that it
/// has made since.
std::vector<int> sockets_of(int domain);
/// Lets a packet socket take nothing but what would wake a WakeSocket of that type, as a whole: a driver's
/// ring is not filled with the interface's other traffic.
void take_only(int packet_socket, std::uint16_t ether_type);

}  // namespace uib::net
