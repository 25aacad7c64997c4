// Packet sequence numbers: 24 bits, all arithmetic modulo 2^24 (IBA 9.2.10, 9.7.1).
#pragma once

#include <cstdint>

namespace uib::transport {

inline constexpr std::uint32_t kPsnMask = 0xFFFFFF;
/// Most PSNs that may be outstanding (C9-61).
inline constexpr std::uint32_t kPsnWindow = 1U << 23;

constexpr std::uint32_t psn_add(std::uint32_t psn, std::uint32_t count) {
    return (psn + count) & kPsnMask;
}
/// Steps from `from` forward to `to`, 0 to 2^24 - 1.
constexpr std::uint32_t psn_distance(std::uint32_t from, std::uint32_t to) {
    return (to - from) & kPsnMask;
}
/// True when `left` is before `right` (less than half the circle away). Serves SSN and LSN as well.
constexpr bool psn_before(std::uint32_t left, std::uint32_t right) {
    const std::uint32_t distance = psn_distance(left, right);
    return distance != 0 && distance < kPsnWindow;
}

}  // namespace uib::transport
