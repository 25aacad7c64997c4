// DPDK's environment abstraction layer, started once a process and never stopped (it cannot be started
// again).
//
// No huge pages, no shared configuration, no telemetry, no lcore threads, the caller's CPU affinity left
// alone; PCI only when a PCI port is asked for before the first start. Not thread-safe: the thread that opens
// ports calls it.
#pragma once

#include <string>

namespace uib::net::dpdk {

/// Starts EAL if it is not running. Returns an empty string, or what went wrong. `pci`: scan the PCI bus,
/// too; fails when EAL runs already without.
std::string start_eal(bool pci);

/// Lets the calling thread use per-thread buffer caches. Idempotent per thread.
void register_thread();

}  // namespace uib::net::dpdk
