// Keeps the host's stack from answering RoCE v2 datagrams with "port unreachable": the UDP port is bound and
// never read. The socket takes nothing in (a filter refuses all), needs no privilege, and is shared by the
// engine's uplinks.
#pragma once

#include <memory>

namespace uib::net {

/// Held as long as somebody keeps the pointer. Throws std::runtime_error when another program has the port (a
/// kernel with rdma_rxe in this network namespace, another engine).
std::shared_ptr<const void> hold_roce_port();

}  // namespace uib::net
