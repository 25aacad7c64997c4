#include "provider/staging.h"

#include <algorithm>
#include <bit>

#include "provider/control_channel.h"

namespace uib::provider {

void StagingPool::ask() {
    ipc::AllocStagingReply made{};
    const ipc::AllocStagingRequest request{kBytes};
    if (control_.call(ipc::Operation::kAllocStaging, request, made) != 0 || made.bytes < kBytes) return;
    memory_ = control_.resolve(made.memory, kBytes);
}

bool StagingPool::ready() {
    std::call_once(asked_, [this] { ask(); });
    return memory_ != nullptr;
}

/// The first granule from `from` on that is used or not, as asked; `limit` if there is none before it.
std::uint32_t StagingPool::next_in_state(std::uint32_t from, std::uint32_t limit, bool used) const {
    while (from < limit) {
        const std::uint64_t word = used ? used_[from / kWordBits] : ~used_[from / kWordBits];
        const std::uint64_t rest = word >> from % kWordBits;
        if (rest != 0) return std::min(limit, from + static_cast<std::uint32_t>(std::countr_zero(rest)));
        from = (from / kWordBits + 1) * kWordBits;
    }
    return limit;
}

/// Start of the first free run of `count` granules; kGranules if there is none.
std::uint32_t StagingPool::find(std::uint32_t count) const {
    std::uint32_t from = 0;
    while (true) {
        from = next_in_state(from, kGranules, false);
        if (count > kGranules - from) return kGranules;
        const std::uint32_t end = next_in_state(from, from + count, true);
        if (end == from + count) return from;
        from = end;
    }
}

void StagingPool::mark(StagedBlock block, bool used) {
    std::uint32_t at = block.first;
    const std::uint32_t end = at + block.count;
    while (at < end) {
        const std::uint32_t bits = std::min(end - at, kWordBits - at % kWordBits);
        const std::uint64_t mask = (~std::uint64_t{0} >> (kWordBits - bits)) << at % kWordBits;
        std::uint64_t& word = used_[at / kWordBits];
        word = used ? word | mask : word & ~mask;
        at += bits;
    }
}

StagedBlock StagingPool::take(std::uint32_t bytes) {
    if (!ready()) return {};
    const std::uint32_t count = (bytes + kGranule - 1) / kGranule;
    const std::lock_guard lock(lock_);
    const std::uint32_t at = find(count);
    if (at == kGranules) return {};
    const StagedBlock block{static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(count)};
    mark(block, true);
    return block;
}

void StagingPool::give_back(StagedBlock block) {
    const std::lock_guard lock(lock_);
    mark(block, false);
}

std::uint32_t StagingPool::used() {
    const std::lock_guard lock(lock_);
    std::uint32_t sum = 0;
    for (const std::uint64_t word : used_) sum += static_cast<std::uint32_t>(std::popcount(word));
    return sum;
}

}  // namespace uib::provider
