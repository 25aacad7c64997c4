// Receive side scaling: work queues (a queue of receives without a queue pair), indirection tables over them,
// and raw packet queue pairs that spread frames over a table by a hash. To posting, polling and the events a
// work queue is a QP that only receives.
#pragma once

#include <infiniband/verbs.h>

#include "provider/qp.h"

namespace uib::provider {

struct Wq {
    ibv_wq verbs;  // first: the program's handle
    Qp receives;

    static Wq& of(ibv_wq* wq) { return *reinterpret_cast<Wq*>(wq); }
};

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attributes);
int modify_wq(ibv_wq* wq, ibv_wq_attr* attributes);
int destroy_wq(ibv_wq* wq);
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attributes);
int destroy_rwq_ind_table(ibv_rwq_ind_table* table);

/// The program asks for a QP that spreads frames over work queues.
bool wants_hash(const ibv_qp_init_attr_ex& wish);
/// 0; EINVAL where what such a QP cannot have is asked for too; EOPNOTSUPP for another type or function.
int check_hash_qp(const ibv_context& context, const ibv_qp_init_attr_ex& wish);
int create_hash_qp(Qp& qp, ibv_context* verbs, const ibv_qp_init_attr_ex& wish);

}  // namespace uib::provider
