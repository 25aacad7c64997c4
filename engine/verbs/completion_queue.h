// A completion queue: the engine's side of a CQE ring in the client's memory.
//
// push() writes the entry and then its sequence number, which is what the client waits for. Room is known
// from the client's consumer index, looked at only when the last look is used up; an index that cannot be
// true counts as "no room". An overrun marks the CQ for good and is reported once (IBV_EVENT_CQ_ERR). A
// completion event is owed for an entry that finds the CQ armed; it is written at the end of the lane's turn
// (settle), or later where moderation holds it back.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/ipc/ring.h"
#include "engine/transport/types.h"
#include "engine/verbs/arena.h"
#include "engine/verbs/event_pipe.h"

namespace uib::verbs {

class Client;

/// A completion channel: a pipe, and which client it belongs to.
struct Channel {
    Client* client = nullptr;
    std::uint32_t uses = 0;  ///< CQs on it
    EventPipe pipe;
};

class CompletionQueue {
  public:
    CompletionQueue(Client& client, std::uint64_t user_handle, Channel* channel, bool ignore_overrun);
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    /// Makes or remakes the ring with at least `entries` places; unpolled entries move over. ENOMEM; EINVAL
    /// when they do not fit.
    int resize(std::uint32_t entries);

    /// False when there is no room; the CQ is then overrun.
    bool push(const ipc::Cqe& entry, transport::Time now);

    /// At the end of a turn in which push() was called: writes the event that is owed, if any. Returns the
    /// time at which to call again when moderation holds the event back, else kNever.
    transport::Time settle(transport::Time now);

    void moderate(std::uint16_t count, std::uint16_t period_us);

    [[nodiscard]] Client& client() const { return client_; }
    [[nodiscard]] Channel* channel() const { return channel_; }
    [[nodiscard]] std::uint64_t user_handle() const { return user_handle_; }
    [[nodiscard]] std::uint32_t entries() const { return entries_; }
    [[nodiscard]] bool overrun() const { return overrun_; }
    [[nodiscard]] ipc::Location control_location() const { return block_.location; }
    [[nodiscard]] ipc::Location ring_location() const;

    std::uint32_t uses = 0;               ///< QPs on it (a QP counts once per queue)
    std::uint32_t completion_events = 0;  ///< written to the channel
    std::uint32_t async_events = 0;       ///< written to the asynchronous pipe
    bool unsettled = false;               ///< the lane has it on its list for settle()

  private:
    [[nodiscard]] ipc::CqControl& control() const;
    [[nodiscard]] ipc::Cqe& slot(std::uint32_t index) const;
    [[nodiscard]] std::uint32_t unpolled() const;
    void note_for_event(const ipc::Cqe& entry, transport::Time now);

    Client& client_;
    std::uint64_t user_handle_;
    Channel* channel_;
    bool ignore_overrun_;
    ArenaBlock block_;
    std::uint32_t entries_ = 0;
    std::uint32_t produced_ = 0;
    std::uint32_t room_until_ = 0;  ///< produced_ may go up to here without another look at the consumer
    bool overrun_ = false;
    bool event_due_ = false;     ///< to be written at the end of the turn
    std::uint32_t pending_ = 0;  ///< entries that owe an event which moderation holds back
    std::uint16_t moderation_count_ = 0;
    std::uint16_t moderation_period_us_ = 0;
    transport::Time first_pending_ = 0;
};

}  // namespace uib::verbs
