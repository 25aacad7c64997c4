// Values that the transport machines share with their surroundings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/ipc/ring.h"
#include "engine/memory/slice.h"
#include "net/wire/packet.h"

namespace uib::transport {

/// Nanoseconds of a monotonic clock that the host owns.
using Time = std::uint64_t;
inline constexpr Time kNever = ~Time{0};

inline constexpr std::uint32_t kMaxSge = 32;
inline constexpr std::uint32_t kMaxMessageBytes = 1U << 31;

enum class Service : std::uint8_t { kRc, kUc, kUd, kXrcInitiator, kXrcTarget, kRaw };

/// Automatic path migration (IBA 17.2.8); values of ibv_mig_state.
enum class MigrationState : std::uint8_t { kMigrated = 0, kRearm = 1, kArmed = 2 };

/// States of a queue pair (IBA 10.3.1); values of ibv_qp_state.
enum class QpState : std::uint8_t {
    kReset = 0,
    kInit = 1,
    kRtr = 2,
    kRts = 3,
    kSqd = 4,
    kSqe = 5,
    kError = 6
};

/// Completion statuses; values of ibv_wc_status.
enum class Status : std::uint8_t {
    kSuccess = 0,
    kLocalLength = 1,
    kLocalQpOperation = 2,
    kLocalProtection = 4,
    kFlushed = 5,
    kWindowBind = 6,
    kBadResponse = 7,
    kLocalAccess = 8,
    kRemoteInvalidRequest = 9,
    kRemoteAccess = 10,
    kRemoteOperation = 11,
    kRetryExceeded = 12,
    kRnrRetryExceeded = 13,
    kRemoteInvalidRdRequest = 15,
};

/// Affiliated asynchronous events; values of ibv_event_type.
enum class QpEvent : std::uint32_t {
    kFatal = 1,
    kRequestError = 2,
    kAccessError = 3,
    kCommunicationEstablished = 4,
    kSendQueueDrained = 5,
    kPathMigrated = 6,
    kPathMigrationFailed = 7,
    kLastWqeReached = 16,
};

/// A send work request, copied once from the client's ring and checked: known opcode for the service,
/// sge_count within the QP's limit, inline length within the slot, sum of lengths within 2^31. What does not
/// pass has `malformed` set.
struct SendRequest {
    std::uint64_t wr_id = 0;
    std::uint32_t index = 0;  ///< free-running
    ipc::WorkOpcode opcode{};
    std::uint8_t flags =
        0;  ///< ipc::WorkFlags; kWorkSignaled is set for all requests of a QP that signals all
    bool malformed = false;
    std::uint8_t bind_window_type = 0;
    std::uint32_t length = 0;  ///< bytes of the message (payload, or READ length); atomics: 8
    std::uint32_t immediate = 0;
    std::uint32_t rkey = 0;
    std::uint64_t remote_address = 0;
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    std::uint32_t remote_qpn = 0;
    std::uint32_t remote_qkey = 0;
    std::uint32_t window_handle = 0;
    std::uint32_t xrc_srq = 0;  ///< XRC: number of the SRQ at the responder
    ipc::AddressVector address_vector{};
    std::uint32_t sge_count = 0;
    std::array<ipc::ScatterGatherEntry, kMaxSge> sge;
    /// With kWorkInline: the payload, in the ring's slot or (kWorkStaged) in the session's staging pool. The
    /// client may scribble on it; that hurts its own message only.
    std::span<const std::byte> inline_data;
};

struct ReceiveRequest {
    std::uint64_t wr_id = 0;
    std::uint32_t slot = 0;
    bool malformed = false;
    std::uint64_t length = 0;  ///< sum of the entries
    std::uint32_t sge_count = 0;
    std::array<ipc::ScatterGatherEntry, kMaxSge> sge;
    /// Where payloads of up to kAutoInlineBytes may be put instead; empty if there is no such place.
    std::span<std::byte> inline_area;
};

/// A completion as the machine makes it; the host adds queue numbers and time.
struct Completion {
    std::uint64_t wr_id = 0;
    Status status = Status::kSuccess;
    std::uint8_t opcode = 0;  ///< ipc::WorkOpcode or ipc::ReceiveOpcode
    std::uint16_t flags = 0;  ///< ipc::CqeFlags
    std::uint32_t byte_len = 0;
    std::uint32_t immediate = 0;
    std::uint32_t source_qp = 0;
    std::uint32_t wqe_index = 0;
    std::uint32_t xrc_srq = 0;  ///< receive by XRC: the SRQ whose CQ gets it; else 0
    std::uint16_t slid = 0;
    std::uint8_t sl = 0;
    std::uint8_t dlid_path_bits = 0;
    std::uint16_t vendor_error = 0;  ///< the AETH syndrome or access error behind it, for people
};

/// Path of a connected QP, resolved: numbers that go into headers.
struct Path {
    net::Lid dlid = 0;
    net::Lid slid = 0;
    std::uint8_t sl = 0;
    std::uint8_t static_rate = 0;  ///< ibv_rate; 0: as fast as the port (9.11)
    bool global = false;
    net::Grh grh;
};

/// Attributes that transitions set (values as in ibv_qp_attr unless said).
struct QpParameters {
    Path path;
    std::uint32_t mtu_bytes = 1024;  ///< path MTU in bytes
    std::uint32_t dest_qp = 0;
    std::uint32_t rq_psn = 0;
    std::uint32_t sq_psn = 0;
    std::uint32_t qkey = 0;
    std::uint32_t access = 0;  ///< ipc::AccessFlags that remote operations may use on this QP
    std::uint16_t pkey = 0xFFFF;
    std::uint8_t timeout = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry = 0;
    std::uint8_t min_rnr_timer = 0;
    std::uint8_t max_rd_atomic = 0;
    std::uint8_t max_dest_rd_atomic = 0;
    Path alternate;  ///< valid if alternate_loaded
    std::uint16_t alternate_pkey = 0xFFFF;
    std::uint8_t alternate_timeout = 0;
    bool alternate_loaded = false;
    /// The state that this transition asks for, if set; else the machine's state stays.
    std::optional<MigrationState> migration;
};

}  // namespace uib::transport
