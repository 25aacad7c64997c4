// Control messages about shared receive queues and XRC domains, and where a queue of work requests is.
#pragma once

#include <cstdint>

#include "engine/ipc/control.h"

namespace uib::ipc {

struct QueueLocation {
    Location control;  ///< QueueControl
    Location slots;
    std::uint32_t entries;  ///< a power of two
    std::uint32_t stride;   ///< bytes a slot
    std::uint32_t max_sge;
    std::uint32_t max_inline;  ///< send queues
};

// XRC domains.

/// Descriptor with the request, if `has_file`: [0] the file whose inode names the domain among all processes
/// of the engine's devices (ibv_open_xrcd); without, the domain is the session's own. Flags as open(2):
/// O_CREAT makes the domain unless there is one, O_CREAT | O_EXCL fails with EEXIST if there is one, none
/// fails with ENOENT if there is none. Reply HandleBody. kCloseXrcd takes HandleBody; EBUSY while SRQs or
/// target QPs of this context use it. The domain goes with its last holder, and its target QPs with it.
struct OpenXrcdRequest {
    std::uint32_t flags;
    std::uint32_t has_file;
};

enum class SrqKind : std::uint32_t { kBasic = 0, kXrc = 1 };

struct CreateSrqRequest {
    std::uint64_t user_handle;
    std::uint32_t pd;
    std::uint32_t max_wr;
    std::uint32_t max_sge;
    std::uint32_t limit;
    std::uint32_t kind;  ///< SrqKind
    std::uint32_t xrcd;  ///< kXrc: handle + 1 of the domain
    std::uint32_t cq;    ///< kXrc: handle + 1 of the CQ for its receives
    std::uint32_t reserved;
};
struct SrqReply {
    std::uint32_t handle;
    std::uint32_t srq_number;
    QueueLocation queue;
    Location available;  ///< uint32_t[entries]: slot numbers in the order in which they were posted
};
enum SrqAttributes : std::uint32_t { kSrqMaxWr = 1, kSrqLimit = 2 };  // as ibv_srq_attr_mask
struct ModifySrqRequest {
    std::uint32_t handle;
    std::uint32_t mask;
    std::uint32_t max_wr;  ///< a resize beyond the ring's entries is refused (EINVAL)
    std::uint32_t limit;
};
struct QuerySrqReply {
    std::uint32_t max_wr;
    std::uint32_t max_sge;
    std::uint32_t limit;
    std::uint32_t reserved;
};

}  // namespace uib::ipc
