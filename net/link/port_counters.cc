#include "net/link/port_counters.h"

#include <algorithm>

namespace uib::net::link {

const char* name_of(PortCounter counter) {
    static constexpr std::array<const char*, kPortCounterCount> kNames = {"symbol_error",
                                                                          "link_error_recovery",
                                                                          "link_downed",
                                                                          "port_rcv_errors",
                                                                          "port_rcv_remote_physical_errors",
                                                                          "port_rcv_switch_relay_errors",
                                                                          "port_xmit_discards",
                                                                          "port_xmit_constraint_errors",
                                                                          "port_rcv_constraint_errors",
                                                                          "local_link_integrity_errors",
                                                                          "excessive_buffer_overrun_errors",
                                                                          "VL15_dropped",
                                                                          "port_xmit_data",
                                                                          "port_rcv_data",
                                                                          "port_xmit_packets",
                                                                          "port_rcv_packets",
                                                                          "port_xmit_wait",
                                                                          "unicast_xmit_packets",
                                                                          "unicast_rcv_packets",
                                                                          "multicast_xmit_packets",
                                                                          "multicast_rcv_packets"};
    const auto index = static_cast<std::size_t>(counter);
    return index < kNames.size() ? kNames[index] : "unknown";
}

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
