#include "engine/memory/write_batch.h"

namespace uib::memory {

void WriteBatch::open(AddressSpace* space) {
    space_ = space;
    target_count_ = source_count_ = entry_count_ = 0;
    bytes_ = 0;
    owners_ = 0;
}

bool WriteBatch::add(Owner owner, std::uint64_t address, std::span<const std::byte> from) {
    const bool same_target =
        target_count_ != 0 &&
        targets_[target_count_ - 1].address + targets_[target_count_ - 1].length == address;
    const bool same_source =
        source_count_ != 0 &&
        sources_[source_count_ - 1].data + sources_[source_count_ - 1].length == from.data();
    const bool same_entry = same_target && same_source && entries_[entry_count_ - 1].owner == owner;

    if (!empty() &&
        ((!same_target && target_count_ == kMaxTargets) || (!same_source && source_count_ == kMaxSources) ||
         (!same_entry && entry_count_ == kMaxEntries) || bytes_ + from.size() > kMaxBytes)) {
        return false;
    }
    if (same_target) {
        targets_[target_count_ - 1].length += from.size();
    } else {
        targets_[target_count_++] = {address, from.size()};
    }
    if (same_source) {
        sources_[source_count_ - 1].length += from.size();
    } else {
        sources_[source_count_++] = {from.data(), from.size()};
    }
    if (same_entry) {
        entries_[entry_count_ - 1].bytes.length += from.size();
    } else {
        entries_[entry_count_++] = {owner, address, {from.data(), from.size()}};
    }
    bytes_ += from.size();
    owners_ |= owner_bit(owner);
    return true;
}

}  // namespace uib::memory
