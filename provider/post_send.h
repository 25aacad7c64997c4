// Send requests: how one is written into its slot. Both the ibv_post_send and the ibv_wr_* interface are
// built on these steps: begin_request, then what the operation needs, then the payload. Each returns 0 or a
// positive errno and needs the send queue's lock. Nothing is visible to the engine before the caller
// publishes.
//
// How a payload travels, the first that can be:
//
//   inline  up to kAutoInlineBytes, copied into the slot whether or not the program asked for it
//   staged  up to StagingPool::kMaxPayload and from private memory, copied into the staging pool (staging.h)
//   list    the scatter list goes to the engine, which fetches the bytes, or knows what is wrong with them
//
// The first two save the engine a system call. They need every entry's key to be of a live region of the QP's
// protection domain that covers the entry, and a request that is not fenced: its bytes may still be on their
// way.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "provider/qp.h"

namespace uib::provider {

/// The most that one message may carry (IBA 9.7.7).
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 31;

/// True if `service` has the operation.
bool service_has(ibv_qp_type service, ipc::WorkOpcode opcode);

/// May this QP take send requests at all?
int check_may_post(const Qp& qp);

/// Starts the request `ahead` behind the last published one; `flags` are ibv_send_flags.
int begin_request(Qp& qp, std::uint32_t ahead, ipc::WorkOpcode opcode, std::uint64_t wr_id, unsigned flags,
                  ipc::SendWqe*& wqe);

int set_destination(const Qp& qp, ipc::SendWqe& wqe, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey);
int set_scatter_list(Qp& qp, ipc::SendWqe& wqe, std::span<const ibv_sge> list);
int set_inline_data(const Qp& qp, ipc::SendWqe& wqe, std::span<const ibv_data_buf> buffers);
/// `rkey`: the window's new key (type 2).
int set_window(ipc::SendWqe& wqe, const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info);

/// Publishes `count` requests and lets go of the send queue's lock, which the caller holds; rings and yields
/// as needed.
void publish_and_unlock(Qp& qp, std::uint32_t count);

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);

}  // namespace uib::provider
