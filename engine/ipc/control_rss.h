// Control messages of receive side scaling: receive work queues, indirection tables over them, and the raw
// packet queue pairs that spread the frames they are given over such a table by a hash of their headers. All
// need an Ethernet device (EOPNOTSUPP) and the right to raw packets (EPERM).
#pragma once

#include <cstdint>

namespace uib::ipc {

inline constexpr std::uint32_t kMaxRwqTableEntries = 128;
inline constexpr std::uint32_t kHashKeyBytes = 40;

/// A queue of receives without a queue pair. Reply QpReply with the receive queue alone; the number is that
/// of its completions.
struct CreateWqRequest {
    std::uint64_t user_handle;
    std::uint32_t pd;
    std::uint32_t cq;
    std::uint32_t max_wr;
    std::uint32_t max_sge;
};
enum class WqState : std::uint32_t { kReset = 0, kReady = 1, kError = 2 };  // as ibv_wq_state
/// RESET to READY, any state to ERROR or RESET; else EINVAL. kDestroyWq takes HandleBody and gives
/// EventsReply; EBUSY while tables lead to the queue.
struct ModifyWqRequest {
    std::uint32_t handle;
    std::uint32_t state;  ///< WqState
};

/// Reply HandleBody; kDestroyRwqTable takes HandleBody, EBUSY while queue pairs spread over the table.
struct CreateRwqTableRequest {
    std::uint32_t entries;  ///< a power of two
    std::uint32_t reserved;
    std::uint32_t wqs[kMaxRwqTableEntries];  ///< handles; one may be there several times
};

/// What of a frame's headers is hashed, in this order; what a frame does not have is left out. IPv4 and IPv6,
/// and TCP and UDP, exclude each other.
enum HashFields : std::uint32_t {
    kHashSourceIpv4 = 1 << 0,
    kHashDestinationIpv4 = 1 << 1,
    kHashSourceIpv6 = 1 << 2,
    kHashDestinationIpv6 = 1 << 3,
    kHashSourceTcpPort = 1 << 4,
    kHashDestinationTcpPort = 1 << 5,
    kHashSourceUdpPort = 1 << 6,
    kHashDestinationUdpPort = 1 << 7,
};  // as ibv_rx_hash_fields
inline constexpr std::uint32_t kAllHashFields = 0xFF;

/// A raw packet queue pair without queues. It has no states to move through; flow rules steer to it. Reply
/// QpReply; the Toeplitz function over `fields` with `key` picks the table's entry.
struct CreateHashQpRequest {
    std::uint64_t user_handle;
    std::uint32_t pd;
    std::uint32_t table;
    std::uint32_t fields;  ///< HashFields
    std::uint32_t reserved;
    std::uint8_t key[kHashKeyBytes];
};

}  // namespace uib::ipc
