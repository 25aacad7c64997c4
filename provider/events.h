// Event pipes: completion channels and the asynchronous-event pipe, both written by the engine and read by
// libibverbs.
//
// An object may only be destroyed when every event that was read for it is acknowledged and none is left to
// be read, since events name objects by address. So destruction (1) takes the object's unread events out of
// the pipe and (2) waits until the acknowledged ones are as many as the engine says it wrote, less those
// taken out.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "provider/descriptors.h"

namespace uib::provider {

/// A pipe whose write end is shared with the engine.
struct EventPipe {
    UniqueFd read_end;
    UniqueFd write_end;

    /// Blocking read end, non-blocking write end, both close-on-exec. False with errno set on failure.
    bool open();
};

/// Takes the unread events of `element` out of the pipe that `read_fd` reads: records of `record_bytes` bytes
/// that start with the element. Others' events are put back through `write_fd`. With `only_types_of` null
/// every record of the element counts; otherwise only records for which it returns true given the type that
/// follows the element. Returns their number; -1 if the pipe could not be looked at (no /proc).
int purge_events(int read_fd, int write_fd, std::size_t record_bytes, std::uint64_t element,
                 bool (*only_types_of)(std::uint32_t type) = nullptr);

/// True for the types whose element is a QP, a CQ, an SRQ or a work queue rather than a port number.
bool is_qp_event(std::uint32_t type);
bool is_cq_event(std::uint32_t type);
bool is_srq_event(std::uint32_t type);
bool is_wq_event(std::uint32_t type);

/// How many events of an object the program must acknowledge: those that the engine wrote less those
/// `purged`. Where the engine cannot be asked any more, or the pipe could not be looked at (`purged` -1),
/// those that the program is known to have `read`.
std::uint32_t owed_events(bool engine_answered, std::uint32_t written, int purged, std::uint32_t read);

/// Waits until `acknowledged`, which libibverbs counts under `mutex` and signals by `cond`, has reached
/// `wanted`.
void await_acknowledged(pthread_mutex_t& mutex, pthread_cond_t& cond, const std::uint32_t& acknowledged,
                        std::uint32_t wanted);

/// Writes one record; gives up after a second if nobody reads the full pipe.
bool write_event(int write_fd, const void* record, std::size_t bytes);

}  // namespace uib::provider
