// Counters of a port: PortCounters (16.1.3.5) and PortCountersExtended (16.1.4.11).
//
// What happened is counted once, in 64 bits, and never cleared. The two attributes are windows on it: each
// counter has a base that a Set moves, and those of PortCounters stick at their largest value until then.
#pragma once

#include <array>
#include <cstdint>

namespace uib::net::link {

enum class PortCounter : std::uint8_t {
    kSymbolErrors,  ///< the physical layer's: nothing here counts it
    kLinkErrorRecovery,
    kLinkDowned,
    kRcvErrors,
    kRcvRemotePhysicalErrors,
    kRcvSwitchRelayErrors,
    kXmitDiscards,
    kXmitConstraintErrors,
    kRcvConstraintErrors,
    kLocalLinkIntegrityErrors,
    kExcessiveBufferOverrunErrors,
    kVl15Dropped,
    kXmitData,  ///< words, LRH to ICRC
    kRcvData,
    kXmitPkts,
    kRcvPkts,
    kXmitWait,  ///< ticks of one symbol time
    kUnicastXmitPkts,
    kUnicastRcvPkts,
    kMulticastXmitPkts,
    kMulticastRcvPkts,
};
inline constexpr std::size_t kPortCounterCount = 21;

/// As in sysfs, e.g. "port_rcv_errors".
const char* name_of(PortCounter counter);

/// Largest value that the counter has in PortCounters; all of 64 bits for those that are only extended.
std::uint64_t largest_value(PortCounter counter);

class PortCounters {
  public:
    void add(PortCounter counter, std::uint64_t count = 1) { total_[at(counter)] += count; }
    /// Since the port was made.
    [[nodiscard]] std::uint64_t total(PortCounter counter) const { return total_[at(counter)]; }

    [[nodiscard]] std::uint64_t value(PortCounter counter) const;
    void set(PortCounter counter, std::uint64_t value);
    [[nodiscard]] std::uint64_t extended(PortCounter counter) const {
        return total_[at(counter)] - extended_base_[at(counter)];
    }
    void set_extended(PortCounter counter, std::uint64_t value) {
        extended_base_[at(counter)] = total_[at(counter)] - value;
    }

  private:
    using Values = std::array<std::uint64_t, kPortCounterCount>;
    static constexpr std::size_t at(PortCounter counter) { return static_cast<std::size_t>(counter); }

    Values total_{};
    Values base_{};
    Values extended_base_{};
};

}  // namespace uib::net::link
