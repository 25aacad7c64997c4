// Address handles: checked when they are made, then copied into each datagram's work request.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "engine/ipc/control_qp.h"
#include "engine/ipc/ring.h"

namespace uib::provider {

struct Ah {
    ibv_ah ah;  // first: the program's handle
    std::uint32_t pd = 0;
    ipc::AddressVector vector{};

    static Ah& of(ibv_ah* ah) { return *reinterpret_cast<Ah*>(ah); }
};

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes);
int destroy_ah(ibv_ah* ah);

ipc::PathAttributes to_path(const ibv_ah_attr& attributes);
ibv_ah_attr from_path(const ipc::PathAttributes& path);

}  // namespace uib::provider
