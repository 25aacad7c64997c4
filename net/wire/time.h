// Time as the lane hands it down: nothing in net/ reads a clock.
#pragma once

#include <cstdint>

namespace uib::net {

/// Nanoseconds of the lane's monotonic clock.
using Time = std::uint64_t;
inline constexpr Time kNoDeadline = ~Time{0};

}  // namespace uib::net
