// QP attributes between libibverbs' structure and the protocol's.
#pragma once

#include <infiniband/verbs.h>

#include "engine/ipc/control_qp.h"

namespace uib::provider {

/// The fields that `mask` (ibv_qp_attr_mask) names; the others are zero, whatever the program left in them.
ipc::QpAttributes to_ipc(const ibv_qp_attr& from, int mask);
ibv_qp_attr from_ipc(const ipc::QpAttributes& from);

}  // namespace uib::provider
