// Which buffers of a pool the kernel's AF_XDP sockets can use.
#pragma once

struct rte_mempool;

namespace uib::net::dpdk {

/// Takes out of `pool`, new and full, the buffers that DPDK 22.11's af_xdp driver does not tell the kernel
/// of: it reckons that buffers lie end to end, but none straddles a page, so that the last ones lie behind
/// the memory that it registers. The kernel takes their descriptors for invalid, one a system call, and the
/// port is dead.
void set_unmapped_buffers_aside(rte_mempool& pool);

}  // namespace uib::net::dpdk
