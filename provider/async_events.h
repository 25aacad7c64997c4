// The end of an object's asynchronous events (events.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/ipc/control_cq.h"
#include "provider/context.h"
#include "provider/events.h"

namespace uib::provider {

/// Called when `object` (an ibv_qp, ibv_srq or ibv_wq) is destroyed: takes its unread events, those of the
/// types that `is_own` knows, out of the pipe and waits for the program to acknowledge the others. `written`
/// is the engine's count, if the engine answered; `read` that of what the program is known to have read.
template <typename Verbs>
void settle_async_events(Context& context, Verbs& object, bool (*is_own)(std::uint32_t type),
                         bool engine_answered, std::uint32_t written,
                         const std::atomic<std::uint32_t>& read) {
    const int unread =
        purge_events(context.async_read_fd(), context.async_write_fd(), sizeof(ipc::AsyncEvent),
                     reinterpret_cast<std::uint64_t>(&object), is_own);
    await_acknowledged(object.mutex, object.cond, object.events_completed,
                       owed_events(engine_answered, written, unread, read));
}

}  // namespace uib::provider
