// Control messages about completions: channels, completion queues; and what events are written as.
#pragma once

#include <cstdint>

#include "engine/ipc/control.h"

namespace uib::ipc {

/// kCreateChannel: descriptor [0] is the pipe's write end; reply HandleBody. The engine writes 8 bytes an
/// event: the CQ's user_handle.
struct CreateCqRequest {
    std::uint64_t user_handle;  ///< the client's ibv_cq, given back in events
    std::uint32_t entries;      ///< wanted, 1 to max_cqe
    std::uint32_t channel;      ///< handle + 1, or 0
    std::uint32_t completion_vector;
    std::uint32_t flags;  ///< CqCreateFlags
};
enum CqCreateFlags : std::uint32_t { kCqIgnoreOverrun = 1 };
struct CqReply {
    std::uint32_t handle;
    std::uint32_t entries;  ///< true size, a power of two
    Location control;       ///< CqControl
    Location ring;          ///< Cqe[entries]
};
struct ResizeCqRequest {
    std::uint32_t handle;
    std::uint32_t entries;  ///< below what is unpolled: EINVAL
};                          // reply CqReply: a new ring; unpolled entries were moved, indices go on
struct ModifyCqRequest {
    std::uint32_t handle;
    std::uint16_t moderation_count;
    std::uint16_t moderation_period_us;
};
/// Reply of the destroy operations that owe events.
struct EventsReply {
    std::uint32_t completion_events;  ///< written to the channel over the object's life
    std::uint32_t async_events;       ///< written to the asynchronous pipe
};

/// What the engine writes to the asynchronous-event pipe: the layout that ibv_get_async_event reads.
struct AsyncEvent {
    std::uint64_t element;  ///< user_handle of the QP, CQ or SRQ, or the port number
    std::uint32_t type;     ///< ibv_event_type
    std::uint32_t reserved;
};
static_assert(sizeof(AsyncEvent) == 16);

}  // namespace uib::ipc
