// Shared-memory layouts: what the provider and the engine both map.
//
// Who owns what. The engine makes every byte of this memory (memfd, sealed against shrinking and growing) and
// hands it to the client over the control socket (control.h). Queues are fixed-stride rings with one producer
// and one consumer; each index is written by one side only and sits on a cache line of its own. Indices are
// free-running 32-bit counters; the slot of index i is i & (entries - 1), entries being a power of two.
//
//   ring      producer   consumer   how the consumer learns of work
//   send      client     engine     doorbell (doorbell.h), only where `need_doorbell` is set
//   receive   client     engine     the engine looks when a packet needs a receive; doorbell only where
//   `need_doorbell` is set SRQ       client     engine     as receive; slots are handed over by index, as
//   completions come back in any order CQ        engine     client     the CQE's `sequence`; a completion
//   event where `armed` says so
//
// What the client writes is hostile: the engine copies a work request once and checks the copy; a producer
// index that runs more than `entries` ahead of what the engine consumed breaks the protocol and closes the
// context. The engine never waits for the client and never follows a pointer of the client's.
//
// No dependency but the C++ standard library; nothing in here may change size without a new kProtocolVersion
// (control.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uib::ipc {

inline constexpr std::size_t kCacheLine = 64;

/// Payloads up to this many bytes travel inside the work request (the provider copies them in whether or not
/// the caller asked for IBV_SEND_INLINE) and, for SENDs, inside the receive slot (the provider puts them in
/// place in poll_cq).
inline constexpr std::uint32_t kAutoInlineBytes = 192;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A work request's operation. Values are part of the protocol (not ibv_wr_opcode's).
enum class WorkOpcode : std::uint8_t {
    kSend = 0,
    kSendWithImmediate = 1,
    kSendWithInvalidate = 2,
    kRdmaWrite = 3,
    kRdmaWriteWithImmediate = 4,
    kRdmaRead = 5,
    kCompareSwap = 6,
    kFetchAdd = 7,
    kBindWindow = 8,
    kLocalInvalidate = 9,
    kAtomicWrite = 10,  ///< 8 bytes, inline or one scatter entry
};
inline constexpr std::uint8_t kWorkOpcodeCount = 11;

/// Bits of SendWqe::flags.
enum WorkFlags : std::uint8_t {
    kWorkFence = 1 << 0,
    kWorkSignaled = 1 << 1,
    kWorkSolicited = 1 << 2,
    kWorkInline = 1 << 3,  ///< the payload of `inline_length` bytes follows the header; sge_count is 0
    kWorkStaged = 1 << 4,  ///< the payload of `inline_length` bytes is in the session's staging pool, at
                           ///< `staging_offset`; sge_count is 0. SENDs and RDMA WRITEs only
};

inline constexpr std::uint32_t kStagingUnit = 64;

struct ScatterGatherEntry {
    std::uint64_t address;  ///< virtual address in the client (or region-relative for zero-based regions)
    std::uint32_t length;   ///< bytes; 0 means 0 (never 2^31)
    std::uint32_t lkey;
};
static_assert(sizeof(ScatterGatherEntry) == 16);

/// Address vector of a datagram work request: what ibv_ah holds (IBA 11.2.2.1), copied into each UD work
/// request.
struct AddressVector {
    std::uint8_t dgid[16];
    std::uint32_t flow_label;
    std::uint16_t dlid;
    std::uint8_t sl;
    std::uint8_t source_path_bits;
    std::uint8_t static_rate;
    std::uint8_t is_global;
    std::uint8_t sgid_index;
    std::uint8_t hop_limit;
    std::uint8_t traffic_class;
    std::uint8_t port;
    std::uint8_t reserved[2];
};
static_assert(sizeof(AddressVector) == 32);

/// Send work request, at the start of each slot of a send ring. For connected services the scatter list or
/// the inline payload starts at kSendPayloadOffset, for UD at kDatagramPayloadOffset, behind the address
/// vector.
struct SendWqe {
    std::uint8_t opcode;  ///< WorkOpcode
    std::uint8_t flags;   ///< WorkFlags
    std::uint8_t sge_count;
    std::uint8_t bind_window_type;  ///< kBindWindow: 1 or 2
    std::uint32_t inline_length;    ///< bytes, with kWorkInline or kWorkStaged
    std::uint64_t wr_id;
    std::uint32_t immediate;       ///< as the caller gave it (network order); kSendWithInvalidate,
                                   ///< kLocalInvalidate: the R_Key
    std::uint32_t rkey;            ///< RDMA, atomics: remote key; kBindWindow: the window's new R_Key
    std::uint64_t remote_address;  ///< RDMA, atomics; kBindWindow: start of the window
    std::uint64_t compare_add;     ///< atomics: compare (CAS) or add (FAA); kBindWindow: length of the window
    std::uint64_t
        swap;  ///< CAS: swap; kBindWindow: low half L_Key of the region, high half access flags (AccessFlags)
    std::uint32_t remote_qpn;     ///< UD: destination QP; XRC: number of the SRQ at the responder
    std::uint32_t remote_qkey;    ///< UD
    std::uint32_t window_handle;  ///< kBindWindow: the window's handle
    /// kWorkStaged: where the payload starts in the staging pool, in units of kStagingUnit.
    std::uint32_t staging_offset;
};
static_assert(sizeof(SendWqe) == 64);
inline constexpr std::uint32_t kSendPayloadOffset = 64;
inline constexpr std::uint32_t kDatagramAddressOffset = 64;
inline constexpr std::uint32_t kDatagramPayloadOffset = 96;

/// Receive work request, at the start of each slot of a receive or shared receive ring; `sge_count` entries
/// follow it. The engine puts received payloads of up to kAutoInlineBytes at the slot's `inline offset`
/// (ReceiveLayout) instead of the client's memory and marks the CQE with kCqeInline; a slot is free again
/// when its completion was polled.
struct ReceiveWqe {
    std::uint64_t wr_id;
    std::uint32_t sge_count;
    std::uint32_t reserved;
};
static_assert(sizeof(ReceiveWqe) == 16);
inline constexpr std::uint32_t kReceiveSgeOffset = 16;

/// Head of a send, receive or shared receive ring's control words.
struct QueueControl {
    /// Work requests posted so far. Written by the client (release), read by the engine (acquire).
    alignas(kCacheLine) std::atomic<std::uint32_t> producer;
    /// Set by the engine when it no longer looks at this ring by itself: the client must ring the doorbell
    /// after it has moved `producer`. doorbell.h has the two sides' functions and the argument why no request
    /// is left behind.
    alignas(kCacheLine) std::atomic<std::uint32_t> need_doorbell;
};
static_assert(sizeof(QueueControl) == 128);

/// Flags of a CQE.
enum CqeFlags : std::uint16_t {
    kCqeReceive = 1 << 0,     ///< of a receive queue
    kCqeInline = 1 << 1,      ///< payload is in the receive slot; poll_cq puts it in place (byte_len bytes)
    kCqeGrh = 1 << 2,         ///< IBV_WC_GRH
    kCqeImmediate = 1 << 3,   ///< IBV_WC_WITH_IMM
    kCqeInvalidate = 1 << 4,  ///< IBV_WC_WITH_INV
    kCqeSolicited = 1 << 5,
    kCqeVoid = 1 << 6,  ///< set by the provider: the QP is gone, skip
    kCqeSrq = 1 << 7,   ///< wqe_index names a slot of the QP's shared receive queue
    /// wqe_index names a slot of the XRC shared receive queue with the number `qp_slot`, which the session
    /// made on this CQ. The target QP, `qp_number`, may be another process's.
    kCqeXrcSrq = 1 << 8,
};

/// A CQE's operation: WorkOpcode for send completions; for receive completions one of these.
enum class ReceiveOpcode : std::uint8_t { kReceive = 128, kReceiveRdmaWithImmediate = 129 };

/// Completion queue entry. `sequence` is stored last (release): it equals the entry's free-running index + 1.
struct Cqe {
    std::uint64_t wr_id;
    std::uint64_t timestamp_ns;  ///< CLOCK_MONOTONIC of the completion, never falling within a CQ
    std::uint32_t byte_len;      ///< UD: includes the 40 GRH bytes
    std::uint32_t immediate;     ///< immediate data as received (network order), or the invalidated R_Key
    std::uint32_t qp_number;
    std::uint32_t source_qp;  ///< UD
    std::uint32_t qp_slot;    ///< the QP's doorbell slot, to find the QP in the provider; kCqeXrcSrq: the SRQ
    std::uint32_t wqe_index;  ///< send: free-running index of the work request; receive: slot number
    std::uint16_t flags;      ///< CqeFlags
    std::uint8_t status;      ///< ibv_wc_status
    std::uint8_t opcode;      ///< WorkOpcode or ReceiveOpcode
    std::uint16_t slid;
    std::uint8_t sl;
    std::uint8_t dlid_path_bits;
    std::uint16_t pkey_index;
    std::uint16_t vendor_error;
    std::uint32_t reserved;
    std::atomic<std::uint32_t> sequence;
};
static_assert(sizeof(Cqe) == 64);

/// What `armed` of a CQ may hold.
enum CqArm : std::uint32_t { kArmNone = 0, kArmSolicited = 1, kArmAll = 2 };

/// Head of a completion ring; Cqe entries follow at CqLocation::entries.
struct CqControl {
    /// CQEs polled so far. Written by the client (release).
    alignas(kCacheLine) std::atomic<std::uint32_t> consumer;
    /// CqArm. The client arms by raising it (a stronger arm is never weakened); the engine takes it with
    /// exchange(0) when it owes an event. Client: store `armed`, then load the next entry's `sequence`;
    /// engine: store `sequence`, then load `armed`; all four sequentially consistent, so that an event or the
    /// entry is seen.
    alignas(kCacheLine) std::atomic<std::uint32_t> armed;
    /// CQEs written so far, for diagnostics and for the provider's resize and clean-up; written by the engine
    /// (release).
    alignas(kCacheLine) std::atomic<std::uint32_t> producer;
    /// Set by the engine when the CQ has overrun; poll_cq returns an error from then on.
    std::atomic<std::uint32_t> overrun;
};
static_assert(sizeof(CqControl) == 192);

/// Rounds a slot's size up to whole cache lines.
constexpr std::uint32_t round_up_to_line(std::uint32_t bytes) {
    return (bytes + kCacheLine - 1) / kCacheLine * static_cast<std::uint32_t>(kCacheLine);
}

/// Bytes of a slot of a send ring that takes `max_sge` entries or `max_inline` bytes behind `payload_offset`.
constexpr std::uint32_t send_slot_stride(std::uint32_t payload_offset, std::uint32_t max_sge,
                                         std::uint32_t max_inline) {
    const std::uint32_t sge_bytes = max_sge * static_cast<std::uint32_t>(sizeof(ScatterGatherEntry));
    return round_up_to_line(payload_offset + (sge_bytes > max_inline ? sge_bytes : max_inline));
}

/// Offset in a receive slot at which short payloads are put.
constexpr std::uint32_t receive_inline_offset(std::uint32_t max_sge) {
    return round_up_to_line(kReceiveSgeOffset +
                            max_sge * static_cast<std::uint32_t>(sizeof(ScatterGatherEntry)));
}

/// Bytes of a slot of a receive ring.
constexpr std::uint32_t receive_slot_stride(std::uint32_t max_sge) {
    return receive_inline_offset(max_sge) + round_up_to_line(kAutoInlineBytes);
}

}  // namespace uib::ipc
