// What a port line says, as the device argument string of a DPDK driver and the buffer sizes that go with it.
#pragma once

#include <cstdint>
#include <string>

#include "net/port/frame_port.h"

namespace uib::net::dpdk {

struct DeviceArguments {
    std::string device;      ///< name of the device, e.g. net_af_packet3
    std::string arguments;   ///< "device,key=value,..."
    std::uint32_t room = 0;  ///< data room of a buffer, headroom included
    bool pci = false;
    bool host_interface = false;  ///< the kernel has the interface, too
};

/// The MTU of a port that has no host interface and is not told one.
std::uint32_t default_mtu(const std::string& driver);

/// The other end is a program that has the same socket, not a network.
bool over_socket(const std::string& driver);

/// `number` makes the device's name unique, `mtu` is what its frames may carry behind 14 bytes of Ethernet
/// header. Throws std::invalid_argument for an unknown driver, for a frame size that the driver cannot carry
/// and for a role that it cannot have. `xdp_program`: file of the program that leaves to the kernel what is
/// not ours (uib_xdp.bpf.c); without one, driver af_xdp takes the whole interface.
DeviceArguments device_arguments(const FramePortOptions& options, unsigned number, std::uint32_t mtu,
                                 const std::string& xdp_program = {});

}  // namespace uib::net::dpdk
