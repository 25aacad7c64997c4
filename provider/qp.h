// Queue pairs: the object and its control verbs. Posting is in post_send, post_recv and wr_api.
//
// The engine owns the state machine and checks every modify; `state` is what the last successful modify asked
// for, which is all that posting needs (a QP that the engine has moved to the error state still takes
// requests: they are flushed).
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "engine/ipc/control_qp.h"
#include "engine/ipc/control_srq.h"
#include "provider/abi_34.h"
#include "provider/spin_lock.h"
#include "provider/work_queue.h"

namespace uib::provider {

class Context;
struct Cq;
struct Srq;

/// Requests between wr_start and wr_complete.
struct OpenBatch {
    std::uint32_t count = 0;
    int error = 0;
    ipc::SendWqe* current = nullptr;
    bool needs_address = false;
};

struct Qp {
    abi::VerbsQp verbs;  // first: the program's handle
    Context* context = nullptr;
    std::uint32_t generation = 0;  ///< Context::generation of its maker
    Cq* send_cq = nullptr;         ///< null: an XRC target
    Cq* recv_cq = nullptr;         ///< null: XRC
    Srq* srq = nullptr;
    std::uint32_t number = 0;
    std::uint32_t slot = 0;
    std::uint32_t pd = 0;
    ibv_qp_type service = IBV_QPT_RC;
    bool signal_all = false;
    std::uint32_t payload_offset = ipc::kSendPayloadOffset;
    std::atomic<std::uint32_t> state{IBV_QPS_RESET};
    std::atomic<std::uint32_t> port{1};
    SpinLock sq_lock;
    SpinLock rq_lock;
    SendQueue sq;
    ReceiveQueue rq;
    unsigned posts = 0;
    OpenBatch batch;
    std::atomic<std::uint32_t> async_events_read{0};

    static Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
    static Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }
    ibv_qp& handle() { return verbs.qp; }
    /// Made by an ancestor of this process: its rings are not this one's.
    bool inherited() const;

    /// Bytes that fit into a send slot behind its header.
    std::uint32_t payload_room() const { return sq.memory().stride - payload_offset; }
};

/// Where a ring is. False if the engine names memory that is not there.
bool find_ring(Context& context, const ipc::QueueLocation& where, RingMemory& ring);
/// Takes the QP's completions out of its CQs. Those of an XRC target stay: they are their SRQ's.
void forget_completions(Qp& qp);
/// Both sides start over: the QP went to RESET.
void restart(Qp& qp);
/// Fills in the program's handle.
void fill_handle(Qp& qp, ibv_context* verbs, const ibv_qp_init_attr_ex& wish, const ipc::QpReply& made);

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
/// A target QP of an XRC domain, made by this or another process.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes);
int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask);
int query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init);
int destroy_qp(ibv_qp* qp);
int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);
int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid);

/// The ibv_wr_* interface for the operations in `send_ops` (IBV_QP_EX_WITH_*). False if the service has not
/// all of them.
bool install_wr_api(Qp& qp, std::uint64_t send_ops);

}  // namespace uib::provider
