// A packet socket that becomes readable when one of our frames arrives at a host interface, for the time that
// the lane sleeps. Awake, it takes nothing (a filter refuses all), so that frames are not copied twice.
//
// The drivers that share an interface with the kernel have no interrupt of their own (dpdk.md, section 4).
#pragma once

#include <cstdint>

#include "engine/ipc/unique_fd.h"

namespace uib::net {

class WakeSocket {
  public:
    WakeSocket() = default;
    /// `ether_type`: frames of this type wake; 0: RoCE v2 over IPv4 and IPv6 (also behind a VLAN tag), and
    /// RoCE v1. Throws std::system_error (EPERM without CAP_NET_RAW).
    WakeSocket(int interface_index, std::uint16_t ether_type);

    [[nodiscard]] int descriptor() const { return socket_.get(); }
    /// Asleep: the filter lets ours through. Awake: nothing, and what waits is thrown away.
    void watch(bool asleep);

  private:
    void drain() const;

    ipc::UniqueFd socket_;
    std::uint16_t ether_type_ = 0;
    bool asleep_ = false;
};

}  // namespace uib::net
