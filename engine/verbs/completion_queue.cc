#include "engine/verbs/completion_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "engine/verbs/client.h"

namespace uib::verbs {

namespace {

constexpr std::size_t kRingOffset = sizeof(ipc::CqControl);

/// Everything of an entry but its sequence number.
void copy_entry(ipc::Cqe& to, const ipc::Cqe& from) {
    std::memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), offsetof(ipc::Cqe, sequence));
}

}  // namespace

CompletionQueue::CompletionQueue(Client& client, std::uint64_t user_handle, Channel* channel,
                                 bool ignore_overrun)
    : client_(client), user_handle_(user_handle), channel_(channel), ignore_overrun_(ignore_overrun) {
    if (channel_ != nullptr) ++channel_->uses;
}

CompletionQueue::~CompletionQueue() {
    if (channel_ != nullptr) {
        --channel_->uses;
        channel_->pipe.purge(user_handle_);
    }
    client_.arena().free(block_);
}

ipc::CqControl& CompletionQueue::control() const {
    return *reinterpret_cast<ipc::CqControl*>(block_.memory);
}

ipc::Cqe& CompletionQueue::slot(std::uint32_t index) const {
    return reinterpret_cast<ipc::Cqe*>(block_.memory + kRingOffset)[index & (entries_ - 1)];
}

ipc::Location CompletionQueue::ring_location() const {
    ipc::Location location = block_.location;
    location.offset += kRingOffset;
    return location;
}

std::uint32_t CompletionQueue::unpolled() const {
    // The client's word; a value that cannot be true is read as "nothing polled".
    const std::uint32_t waiting = produced_ - control().consumer.load(std::memory_order_acquire);
    return std::min(waiting, entries_);
}

int CompletionQueue::resize(std::uint32_t entries) {
    const std::uint32_t wanted = std::bit_ceil(std::max(entries, 1U));
    auto block = client_.arena().allocate(kRingOffset + std::size_t{wanted} * sizeof(ipc::Cqe));
    if (!block) return ENOMEM;
    auto& fresh = *new (block->memory) ipc::CqControl{};
    if (entries_ != 0) {
        const std::uint32_t waiting = unpolled();
        if (waiting > wanted) {
            client_.arena().free(*block);
            return EINVAL;
        }
        auto* ring = reinterpret_cast<ipc::Cqe*>(block->memory + kRingOffset);
        for (std::uint32_t index = produced_ - waiting; index != produced_; ++index) {
            ipc::Cqe& to = ring[index & (wanted - 1)];
            copy_entry(to, slot(index));
            to.sequence.store(index + 1, std::memory_order_release);
        }
        fresh.consumer.store(produced_ - waiting, std::memory_order_relaxed);
        fresh.armed.store(control().armed.load(std::memory_order_relaxed), std::memory_order_relaxed);
        fresh.overrun.store(control().overrun.load(std::memory_order_relaxed), std::memory_order_relaxed);
        fresh.producer.store(produced_, std::memory_order_release);
        client_.arena().free(block_);
    }
    block_ = *block;
    entries_ = wanted;
    room_until_ = produced_;
    return 0;
}

bool CompletionQueue::push(const ipc::Cqe& entry, transport::Time now) {
    if (produced_ == room_until_) {
        room_until_ = produced_ + entries_ - (ignore_overrun_ ? 0 : unpolled());
        if (produced_ == room_until_) {
            overrun_ = true;
            control().overrun.store(1, std::memory_order_release);
            return false;
        }
    }
    ipc::Cqe& to = slot(produced_);
    copy_entry(to, entry);
    to.timestamp_ns = now;
    ++produced_;
    // With a channel the store must be ordered before the look at `armed` in settle().
    to.sequence.store(produced_, channel_ != nullptr ? std::memory_order_seq_cst : std::memory_order_release);
    control().producer.store(produced_, std::memory_order_release);
    if (channel_ != nullptr) note_for_event(entry, now);
    return true;
}

void CompletionQueue::moderate(std::uint16_t count, std::uint16_t period_us) {
    moderation_count_ = count;
    moderation_period_us_ = period_us;
}

// Only an entry that comes while the CQ is armed owes an event (IBA 11.4.2.2), so `armed` is looked at here,
// entry by entry, and not once a turn: the client may have polled this entry and armed for the next by then,
// and a needless event makes programs fail that poll once an event.
void CompletionQueue::note_for_event(const ipc::Cqe& entry, transport::Time now) {
    const std::uint32_t armed = control().armed.load(std::memory_order_seq_cst);
    // An entry in error counts as solicited.
    const bool solicited = entry.status != 0 || (entry.flags & ipc::kCqeSolicited) != 0;
    if (armed == ipc::kArmNone || (armed == ipc::kArmSolicited && !solicited)) return;
    if (pending_++ == 0) first_pending_ = now;
    if (pending_ < moderation_count_) return;
    control().armed.exchange(ipc::kArmNone, std::memory_order_seq_cst);
    event_due_ = true;
    pending_ = 0;
}

transport::Time CompletionQueue::settle(transport::Time now) {
    if (pending_ != 0) {
        const transport::Time due = first_pending_ + transport::Time{moderation_period_us_} * 1000;
        if (now < due && !event_due_) return due;
        control().armed.exchange(ipc::kArmNone, std::memory_order_seq_cst);
        event_due_ = true;
        pending_ = 0;
    }
    if (!event_due_) return transport::kNever;
    event_due_ = false;
    if (channel_->pipe.write(&user_handle_)) {
        ++completion_events;
        if (channel_->pipe.has_backlog()) client_.note_backlog();
    }
    return transport::kNever;
}

}  // namespace uib::verbs
