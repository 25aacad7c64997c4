#include "provider/work_queue.h"

#include "engine/ipc/doorbell.h"

namespace uib::provider {

bool OrderedQueue::publish(std::uint32_t count) {
    producer_ += count;
    return ipc::publish(*memory_.control, producer_);
}

void SendQueue::complete(std::uint32_t index) {
    const std::uint32_t freed = freed_.load(std::memory_order_relaxed);
    const std::uint32_t count = index + 1 - freed;
    if (static_cast<std::int32_t>(count) <= 0) return;
    for (std::uint32_t i = 0; i < std::min(count, memory_.entries); ++i) release(block_of(freed + i));
    freed_.store(index + 1, std::memory_order_release);
}

std::byte* SendQueue::stage(ipc::SendWqe& wqe, std::uint32_t bytes) {
    StagedBlock& block = block_of(wqe);
    release(block);  // of a payload that was set twice
    block = staging_->take(bytes);
    if (!block) return nullptr;
    wqe.flags |= ipc::kWorkStaged;
    wqe.inline_length = bytes;
    wqe.staging_offset = StagingPool::offset(block);
    return staging_->memory(block);
}

void SendQueue::unstage(ipc::SendWqe& wqe) {
    release(block_of(wqe));
    wqe.flags &= static_cast<std::uint8_t>(~ipc::kWorkStaged);
    wqe.inline_length = wqe.staging_offset = 0;
}

void SendQueue::give_up(std::uint32_t count) {
    for (std::uint32_t ahead = 0; ahead < count; ++ahead) release(block_of(producer_ + ahead));
}

void SendQueue::release(StagedBlock& block) {
    if (block) staging_->give_back(block);
    block = {};
}

void SendQueue::restart() {
    unstage_all();
    OrderedQueue::restart();
}

void SendQueue::unstage_all() {
    for (StagedBlock& block : blocks_) release(block);
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
