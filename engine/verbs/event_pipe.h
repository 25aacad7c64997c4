// The write end of a client's pipe: completion channels and asynchronous events.
//
// The client may be slow to read or never read at all. A write never blocks: what does not fit waits in a
// backlog that retry() writes later (the daemon calls it when the pipe becomes writable). The backlog is
// bounded: completion events of one CQ are at most one unread (the CQ is disarmed until the client arms it
// again), and asynchronous events are few per object; beyond kMaxBacklog new events are counted and dropped,
// and the pipe is marked overrun. Used with the lane's baton held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/ipc/unique_fd.h"

namespace uib::verbs {

class EventPipe {
  public:
    static constexpr std::size_t kMaxBacklog = 1 << 18;

    /// Takes the write end and makes it non-blocking. `record_bytes` is the size of an event, at most
    /// PIPE_BUF.
    EventPipe(ipc::UniqueFd write_end, std::size_t record_bytes);

    /// Queues one event. False when it was dropped (reader gone, or backlog full).
    bool write(const void* record);

    /// Writes as much of the backlog as goes in. True when nothing is left.
    bool retry();

    /// Removes events whose first 8 bytes equal `element` from the backlog; returns how many.
    std::uint32_t purge(std::uint64_t element);

    [[nodiscard]] bool has_backlog() const { return !backlog_.empty(); }
    /// The reader has closed its end (asks the kernel).
    [[nodiscard]] bool reader_gone() const;
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    bool try_write(const void* record);

    ipc::UniqueFd fd_;
    std::size_t record_bytes_;
    std::deque<std::vector<std::byte>> backlog_;
    bool broken_ = false;
    std::uint64_t dropped_ = 0;
};

}  // namespace uib::verbs
