// Receive requests: posting them, and putting received payloads in place that the engine has left in the
// receive slot.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "provider/lkey_table.h"
#include "provider/work_queue.h"

namespace uib::provider {

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);

/// Writes a request into a receive slot whose ring takes `max_sge` entries. 0 or EINVAL.
int fill_receive(ipc::ReceiveWqe& wqe, const ibv_recv_wr& wr, std::uint32_t max_sge);

/// Copies the `bytes` bytes that the engine has left in slot `slot` into the scatter list posted there. False
/// if they do not fit or a key is not of a region of `pd` that this process can reach (nothing was copied to
/// that entry and those behind it).
bool place_payload(const LkeyTable& lkeys, std::uint32_t pd, const RingMemory& ring, std::uint32_t slot,
                   std::uint32_t bytes);

}  // namespace uib::provider
