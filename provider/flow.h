// Flow rules (ibv_create_flow): the program's list of specifications becomes one value and one mask over the
// headers of a frame, which is what the engine takes.
//
// Refused with EOPNOTSUPP: specifications of tunnels (inner headers, VXLAN, GRE, MPLS), of ESP, and all
// actions but receiving; egress rules. With EINVAL: a header named twice, sizes that do not fit.
#pragma once

#include <infiniband/verbs.h>

namespace uib::provider {

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes);
int destroy_flow(ibv_flow* flow);

}  // namespace uib::provider
