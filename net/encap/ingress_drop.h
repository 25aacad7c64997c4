// Spares the host's stack the RoCE datagrams that are the engine's.
//
// A packet socket (driver af_packet) gets a copy of what arrives; the kernel then takes every frame through
// its routing and its sockets only to find that nobody reads the UDP port, a quarter of what a frame costs. A
// small program at the interface's ingress, behind the packet sockets and before the stack, drops what is for
// the port's own addresses. It is attached by a descriptor and so goes with the engine, however that ends;
// nothing that is forwarded, bridged, tagged, fragmented or for a group is touched.
#pragma once

#include <cerrno>
#include <span>

#include "engine/ipc/unique_fd.h"
#include "net/wire/packet.h"

namespace uib::net {

class IngressDrop {
  public:
    /// From now on for these addresses of this interface. False where it cannot be (a kernel before 6.6, no
    /// CAP_BPF or CAP_NET_ADMIN): nothing is lost but time, port_4791.h keeps the stack silent.
    bool cover(int interface_index, std::span<const Gid> own);
    /// 0 while the program is there, else the errno that says why not.
    [[nodiscard]] int error() const { return error_; }

  private:
    int attach(int interface_index, std::span<const Gid> own);

    ipc::UniqueFd link_;
    int error_ = ENODEV;
};

}  // namespace uib::net
