// What the kernel counts at the sockets of driver af_xdp, summed over those that are gone: a port that makes
// its device anew counts on.
#pragma once

#include <vector>

#include "net/port/frame_port.h"

namespace uib::net::dpdk {

class XdpStatistics {
  public:
    /// A socket of the driver's, which stays the driver's.
    void add(int socket) { sockets_.push_back(socket); }
    /// Before the driver closes them.
    void forget_sockets();
    /// Sets the counters xdp_...
    void read(FramePortCounters& into) const;

  private:
    std::vector<int> sockets_;
    FramePortCounters gone_;
};

}  // namespace uib::net::dpdk
