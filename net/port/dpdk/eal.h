// DPDK's environment abstraction layer, started once a process and never stopped (it cannot be started
// again).
//
// No huge pages, no shared configuration, no telemetry, no lcore threads, the caller's CPU affinity left
// alone; PCI only when a PCI port is asked for before the first start. Starting is not thread-safe: the
// thread that opens ports does it.
#pragma once

#include <chrono>
#include <string>

namespace uib::net::dpdk {

/// Starts EAL if it is not running. Returns an empty string, or what went wrong. `pci`: scan the PCI bus,
/// too; fails when EAL runs already without.
std::string start_eal(bool pci);

/// EAL's list of device arguments has no lock: whoever makes or removes devices does it in turn. One who has
/// kept the others waiting for longer than their patience waits for a server, and touches no list meanwhile:
/// they go on.
class DevicesTurn {
  public:
    explicit DevicesTurn(std::chrono::milliseconds patience);
    ~DevicesTurn();
    DevicesTurn(const DevicesTurn&) = delete;
    DevicesTurn& operator=(const DevicesTurn&) = delete;
    /// False: somebody has the turn.
    [[nodiscard]] bool held() const { return held_; }

  private:
    bool held_ = false;
};

/// Lets the calling thread use per-thread buffer caches. Idempotent per thread.
void register_thread();

}  // namespace uib::net::dpdk
