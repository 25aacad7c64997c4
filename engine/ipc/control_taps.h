// Control messages (control.h) about what listens at the ports and disturbs them: captures and faults. For a
// command's session (kHelloCommand) of root or of the engine's own user; EPERM else.
#pragma once

#include <cstdint>

#include "engine/ipc/control.h"

namespace uib::ipc {

/// Descriptors with the request: [0] what the capture (pcapng) is written to, a regular file or a pipe, which
/// is never waited for: what does not fit in time is counted as dropped; [1] a pipe's write end, which the
/// engine closes when the capture has ended and everything is written. One capture at a time: EBUSY. ENODEV:
/// no such device. A capture ends by kStopCapture, its limit, an error of writing, or with the session.
struct StartCaptureRequest {
    char device[kDeviceNameMax];  ///< empty: all ports
    std::uint32_t has_qp;
    std::uint32_t qp;          ///< only packets to this queue pair, or from it where that can be told
    std::uint32_t snap_bytes;  ///< kept of each packet; 0: all
    std::uint32_t reserved;
    std::uint64_t packets;  ///< the capture ends after so many; 0: no limit
};
/// Of kStopCapture, which ends the recording of the session's own capture (ENOENT: there was none). The
/// numbers are final when descriptor [1] has been closed; the request may be repeated then.
struct StopCaptureReply {
    std::uint64_t packets;
    std::uint64_t dropped;
    std::uint32_t error;  ///< errno of the write that ended it, or 0
    std::uint32_t reserved;
};

enum FaultRuleFlags : std::uint32_t {
    kFaultOutbound = 1 << 0,
    kFaultInbound = 1 << 1,
    kFaultQp = 1 << 2,  ///< the field of that name counts; so for the next
    kFaultOpcode = 1 << 3,
    kFaultPsn = 1 << 4,
    kFaultCount = 1 << 5,
};
/// A rule at the end of the list (net/tap/fault_rule.h has the meanings). Reply HandleBody: its identifier.
/// EINVAL: a value out of its range; ENODEV: no such device; ENOSPC: too many rules.
struct AddFaultRequest {
    char device[kDeviceNameMax];  ///< empty: all ports
    std::uint32_t flags;          ///< FaultRuleFlags
    std::uint32_t qp;             ///< destination queue pair
    std::uint32_t opcode;
    std::uint32_t psn_first;
    std::uint32_t psn_last;
    std::uint32_t skip;
    std::uint32_t count;
    std::uint32_t action;  ///< net::FaultAction
    std::uint32_t field;   ///< net::FaultField
    std::uint32_t reserved;
    double probability;  ///< 0 to 1
    std::uint64_t seed;
    std::uint64_t amount;  ///< packets, nanoseconds or bytes a second
};
/// kRemoveFault takes HandleBody: the identifier, or 0 for all rules. ENOENT: no such rule.

}  // namespace uib::ipc
