// Whether a request passes a port's management key (IBA 14.2.4), and the lease that keeps a lost manager from
// locking a port for ever: a failed check starts it, a passed one ends it, and when it runs out the
// protection bits fall to 0.
#pragma once

#include "engine/management/node.h"

namespace uib::management {

enum class KeyCheck : std::uint8_t {
    kPass,
    kPassHidden,  ///< a Get that may be answered, but not with the key
    kFail,        ///< the request is discarded; violations are counted
};

/// Get, Set and TrapRepress are checked. The port's violations and its lease are brought up to date.
KeyCheck check_management_key(NodePort& port, const net::Smp& request, Time now);

/// Before anything looks at the protection bits.
void expire_lease(NodePort& port, Time now);

}  // namespace uib::management
