// Writes to one address space that are kept back, to be made in one call.
//
// Both sides are lists of runs: what runs on in the client's memory becomes one destination, what runs on in
// the engine's memory one source, each by itself. Entries remember who wrote what, so that a failed call can
// be repeated piece by piece to find whose write fails (repeating is harmless: same bytes, same order).
//
// Fixed capacity, no allocation after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/memory/address_space.h"

namespace uib::memory {

class WriteBatch {
  public:
    using Owner = std::uint32_t;
    static constexpr std::size_t kMaxTargets = 64;
    static constexpr std::size_t kMaxSources = 256;
    static constexpr std::size_t kMaxEntries = 256;
    static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

    void open(AddressSpace* space);
    [[nodiscard]] AddressSpace* space() const { return space_; }
    [[nodiscard]] bool empty() const { return entry_count_ == 0; }
    /// Whether a write of this owner may be among the entries (a filter: no false negatives).
    [[nodiscard]] bool may_hold(Owner owner) const { return (owners_ & owner_bit(owner)) != 0; }

    /// False when there is no room: write and open again.
    bool add(Owner owner, std::uint64_t address, std::span<const std::byte> from);

    /// Makes the writes; calls failed(owner) for each entry that could not be written. Empty afterwards.
    template <typename Failed>
    void write(Failed&& failed) {
        if (!space_->write({targets_.data(), target_count_}, {sources_.data(), source_count_})) {
            for (std::size_t i = 0; i < entry_count_; ++i) {
                const RemoteRange target = {entries_[i].address, entries_[i].bytes.length};
                if (!space_->write({&target, 1}, {&entries_[i].bytes, 1})) failed(entries_[i].owner);
            }
        }
        open(space_);
    }

  private:
    struct Entry {
        Owner owner;
        std::uint64_t address;
        ConstBytes bytes;
    };
    static std::uint64_t owner_bit(Owner owner) { return std::uint64_t{1} << (owner & 63); }

    AddressSpace* space_ = nullptr;
    std::size_t target_count_ = 0;
    std::size_t source_count_ = 0;
    std::size_t entry_count_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t owners_ = 0;
    std::array<RemoteRange, kMaxTargets> targets_;
    std::array<ConstBytes, kMaxSources> sources_;
    std::array<Entry, kMaxEntries> entries_;
};

}  // namespace uib::memory
