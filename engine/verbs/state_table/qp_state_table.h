// The table of the queue pair states (IBA 10.3.1, 11.2.5.2): which transitions Modify QP may ask for, which
// attributes each one needs and takes, and which values attributes may have.
//
// Pure functions over a constant table; what they refuse is what a Linux host with mlx5 refuses, except that
// values which an adapter would cut to their field's width in silence (timers, retry counters, QP numbers)
// are refused. PSNs are the exception: programs rely on them being cut to 24 bits, so they pass and the
// caller cuts them.
#pragma once

#include <infiniband/verbs.h>

#include "engine/ipc/control_qp.h"

namespace uib::verbs {

/// What the values of attributes are measured by.
struct ValueLimits {
    unsigned ports = 1;
    unsigned pkey_table_length = 1;
    unsigned gid_table_length = 1;
    ibv_mtu active_mtu = IBV_MTU_4096;
    unsigned max_rd_atomic = 0;       ///< as initiator (max_qp_init_rd_atom)
    unsigned max_dest_rd_atomic = 0;  ///< as responder (max_qp_rd_atom)
    bool ethernet = false;            ///< RoCE: paths need a GRH and no DLID
};

/// `mask` without the attributes of the half that an XRC QP does not have: programs set up both ends of an
/// XRC connection alike, and Linux leaves those unread (uverbs), too.
int relevant_attributes(ibv_qp_type service, int mask);

/// Whether a QP of `service` in state `current` may be moved to `next` with the attributes that `mask`
/// (ibv_qp_attr_mask) names. Without IBV_QP_STATE, `next` is `current`. 0 or EINVAL. That the value given
/// with IBV_QP_CUR_STATE is the true state is for the caller to check.
int check_transition(ibv_qp_type service, ibv_qp_state current, ibv_qp_state next, int mask);

/// Whether the attributes that `mask` names have values that this device can take. 0 or EINVAL.
int check_values(ibv_qp_type service, const ipc::QpAttributes& attributes, int mask,
                 const ValueLimits& limits);

}  // namespace uib::verbs
