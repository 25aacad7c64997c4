// Shared receive queues.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "provider/abi_34.h"
#include "provider/spin_lock.h"
#include "provider/work_queue.h"

namespace uib::provider {

class Context;
struct Cq;

struct Srq {
    abi::VerbsSrq verbs;  // first: the program's handle
    Context* context = nullptr;
    std::uint32_t generation = 0;  ///< Context::generation of its maker
    SpinLock lock;
    SharedReceiveQueue queue;
    std::uint32_t pd = 0;
    Cq* cq = nullptr;  ///< of an XRC SRQ
    std::atomic<std::uint32_t> async_events_read{0};

    /// Made by an ancestor of this process: its ring is not this one's.
    bool inherited() const;

    static Srq& of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }
};

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr* attributes);
int destroy_srq(ibv_srq* srq);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);

}  // namespace uib::provider
