// An ethdev with one queue each way and its buffers, from its making to its end.
//
// Making, starting and removing one takes as long as its driver does: a server that answers nothing holds
// virtio_user up for ever.
#pragma once

#include <cstdint>
#include <string>

#include "net/port/dpdk/device_arguments.h"

struct rte_mempool;

namespace uib::net::dpdk {

class DpdkDevice {
  public:
    /// Of no other device of this process.
    static unsigned next_number();

    /// Makes the device, which does not run yet. Throws std::runtime_error with a message for the operator.
    DpdkDevice(const DeviceArguments& arguments, const std::string& driver);
    ~DpdkDevice();
    DpdkDevice(const DpdkDevice&) = delete;
    DpdkDevice& operator=(const DpdkDevice&) = delete;

    /// 0, or a negative errno.
    int start();
    [[nodiscard]] bool started() const { return started_; }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] rte_mempool* buffers() const { return buffers_; }
    /// As the driver has it.
    [[nodiscard]] MacAddress mac() const;

  private:
    void configure(const DeviceArguments& arguments, bool xdp);
    void remove();

    std::uint16_t port_ = 0;
    bool pci_ = false;
    bool started_ = false;
    rte_mempool* buffers_ = nullptr;
};

}  // namespace uib::net::dpdk
