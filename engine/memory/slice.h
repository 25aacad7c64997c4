// Names of pieces of client memory.
#pragma once

#include <cstdint>

namespace uib::memory {

class Region;

/// Identifies a protection domain; 0 is none. Unique in the engine, never reused while referenced.
using PdId = std::uint32_t;

/// `length` bytes from `offset` of a region; within bounds and checked when made by KeyTable. Holds good
/// until control returns to the lane's loop (no region goes away within a turn).
struct Slice {
    Region* region = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Why an access was refused, in the order in which the checks are made (IBA 10.6, 9.7.4.1.5).
enum class AccessError : std::uint8_t {
    kNone = 0,
    kKey,     ///< no such key, or not this variant of it
    kPd,      ///< other protection domain
    kBounds,  ///< outside the region or window, or the range wraps
    kRights,  ///< access flags do not allow it
    kWindow,  ///< window not bound, or bound for another QP
    kState,   ///< region was invalidated
};

}  // namespace uib::memory
