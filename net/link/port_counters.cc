#include "net/link/port_counters.h"

#include <algorithm>

namespace uib::net::link {

std::uint64_t largest_value(PortCounter counter) {
    switch (counter) {
        case PortCounter::kLocalLinkIntegrityErrors:
        case PortCounter::kExcessiveBufferOverrunErrors:
            return 0xF;
        case PortCounter::kLinkErrorRecovery:
        case PortCounter::kLinkDowned:
        case PortCounter::kXmitConstraintErrors:
        case PortCounter::kRcvConstraintErrors:
            return 0xFF;
        case PortCounter::kSymbolErrors:
        case PortCounter::kRcvErrors:
        case PortCounter::kRcvRemotePhysicalErrors:
        case PortCounter::kRcvSwitchRelayErrors:
        case PortCounter::kXmitDiscards:
        case PortCounter::kVl15Dropped:
            return 0xFFFF;
        case PortCounter::kXmitData:
        case PortCounter::kRcvData:
        case PortCounter::kXmitPkts:
        case PortCounter::kRcvPkts:
        case PortCounter::kXmitWait:
            return 0xFFFFFFFF;
        default:
            return ~std::uint64_t{0};
    }
}

std::uint64_t PortCounters::value(PortCounter counter) const {
    return std::min(total_[at(counter)] - base_[at(counter)], largest_value(counter));
}

void PortCounters::set(PortCounter counter, std::uint64_t value) {
    base_[at(counter)] = total_[at(counter)] - std::min(value, largest_value(counter));
}

}  // namespace uib::net::link
