#include "provider/work_queue.h"

#include "engine/ipc/doorbell.h"

namespace uib::provider {

bool OrderedQueue::publish(std::uint32_t count) {
    producer_ += count;
    return ipc::publish(*memory_.control, producer_);
}

void SharedReceiveQueue::attach(const RingMemory& memory, std::uint32_t* available) {
    memory_ = memory;
    available_ = available;
    producer_ = 0;
    taken_.assign(memory.entries, false);
    free_.clear();
    // The lowest slots are handed out first.
    for (std::uint32_t slot = memory.entries; slot > 0; --slot) free_.push_back(slot - 1);
}

std::optional<std::uint32_t> SharedReceiveQueue::take_slot() {
    if (free_.empty()) return std::nullopt;
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    taken_[slot] = true;
    return slot;
}

void SharedReceiveQueue::post(std::uint32_t slot) {
    available_[producer_ & (memory_.entries - 1)] = slot;
    ++producer_;
}

bool SharedReceiveQueue::publish() {
    return ipc::publish(*memory_.control, producer_);
}

void SharedReceiveQueue::give_back(std::uint32_t slot) {
    if (slot >= taken_.size() || !taken_[slot]) return;
    taken_[slot] = false;
    free_.push_back(slot);
}

std::optional<std::uint32_t> SharedReceiveQueue::take_posted() {
    const auto found = std::find(taken_.begin(), taken_.end(), true);
    if (found == taken_.end()) return std::nullopt;
    const auto slot = static_cast<std::uint32_t>(found - taken_.begin());
    give_back(slot);
    return slot;
}

}  // namespace uib::provider
