// XRC domains, and target QPs that another process made.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "provider/abi_34.h"

namespace uib::provider {

struct Xrcd {
    abi::VerbsXrcd verbs;  // first: the program's handle

    static Xrcd& of(ibv_xrcd* xrcd) { return *reinterpret_cast<Xrcd*>(xrcd); }
};

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attributes);
int close_xrcd(ibv_xrcd* xrcd);

}  // namespace uib::provider
