#include "engine/management/management_key.h"

namespace uib::management {
namespace {

constexpr Time kSecond = 1'000'000'000;
constexpr Number kViolationsMax = 0xFFFF;

KeyCheck judge(const PortInfo& port, const net::Smp& request) {
    if (port.mkey == 0 || port.mkey == request.mkey) return KeyCheck::kPass;
    if (request.header.method != net::MadMethod::kGet || port.mkey_protect >= 2) return KeyCheck::kFail;
    return port.mkey_protect == 1 ? KeyCheck::kPassHidden : KeyCheck::kPass;
}

}  // namespace

void expire_lease(NodePort& port, Time now) {
    if (now < port.lease_ends) return;
    port.lease_ends = kNever;
    port.info.mkey_protect = 0;
}

KeyCheck check_management_key(NodePort& port, const net::Smp& request, Time now) {
    expire_lease(port, now);
    const KeyCheck result = judge(port.info, request);
    if (result == KeyCheck::kFail) {
        if (port.info.mkey_violations < kViolationsMax) ++port.info.mkey_violations;
        if (port.info.mkey_lease_period != 0 && port.lease_ends == kNever)
            port.lease_ends = now + port.info.mkey_lease_period * kSecond;
    } else if (port.info.mkey == request.mkey) {
        port.lease_ends = kNever;
    }
    return result;
}

}  // namespace uib::management
