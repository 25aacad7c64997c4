// What the kernel says of a host interface: does it exist, is it up, its MTU, its MAC.
#pragma once

#include <cstdint>
#include <string>

#include "net/port/frame_port.h"

namespace uib::net {

class HostInterface {
  public:
    HostInterface() = default;
    /// Throws std::runtime_error when there is no such interface in this network namespace.
    explicit HostInterface(std::string name);

    [[nodiscard]] bool valid() const { return !name_.empty(); }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] int index() const { return index_; }
    /// The index of the interface that has the name now; 0 if none has.
    [[nodiscard]] int current_index() const;
    /// Set up by the administrator (ip link set up), with or without a carrier.
    [[nodiscard]] bool enabled() const;
    /// Enabled, and with a carrier. False also when the interface has gone.
    [[nodiscard]] bool up() const;
    /// Bytes behind the Ethernet header; 0 when the interface has gone.
    [[nodiscard]] std::uint32_t mtu() const;
    [[nodiscard]] MacAddress mac() const;

  private:
    std::string name_;
    int index_ = 0;
};

}  // namespace uib::net
