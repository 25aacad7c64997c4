// The memory regions that this context has registered, by L_Key: what the data path must know of them to copy
// a short payload itself. A wait-free three-level table over the key's upper 24 bits. Entries are recycled
// and never freed before the table, so a reader that races with a deregistration may read an outdated entry,
// never freed memory; a program that posts with a key while it deregisters it has no claim to more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace uib::provider {

/// Where the bytes of a region are for this process.
enum class RegionPlace : std::uint32_t {
    kHere,       ///< at the address the region was registered with
    kOnDemand,   ///< likewise, but its pages may be missing
    kNowhere,    ///< null regions: what is written vanishes
    kElsewhere,  ///< imported or inherited over a fork: in another process
};

class LkeyTable {
  public:
    struct Entry {
        std::atomic<std::uint32_t> lkey{0};
        std::atomic<std::uint32_t> pd{0};
        std::atomic<RegionPlace> place{RegionPlace::kElsewhere};
        std::atomic<bool> writable{false};
        std::atomic<bool> mapped{false};  ///< the engine reaches the bytes without a system call
        std::atomic<std::uint64_t> iova{0};
        std::atomic<std::uint64_t> length{0};
        std::atomic<std::uint64_t> address{
            0};  ///< in this process, of the byte that work requests call `iova`

        /// The address here of `length_` bytes at `work_address`; 0 if they are not within the region.
        std::uint64_t locate(std::uint64_t work_address, std::uint64_t bytes) const {
            const std::uint64_t offset = work_address - iova.load(std::memory_order_relaxed);
            const std::uint64_t size = length.load(std::memory_order_relaxed);
            if (offset > size || bytes > size - offset) return 0;
            return address.load(std::memory_order_relaxed) + offset;
        }
    };

    struct Region {
        std::uint32_t lkey;
        std::uint32_t pd;
        RegionPlace place;
        bool writable;
        std::uint64_t iova;
        std::uint64_t length;
        std::uint64_t address;
        bool mapped = false;
    };

    void insert(const Region& region) {
        const std::lock_guard lock(mutex_);
        Middle* middle = child(top_, region.lkey >> 24);
        Leaf* leaf = child(*middle, region.lkey >> 16 & 0xff);
        std::atomic<Entry*>& place = leaf->at(region.lkey >> 8 & 0xff);
        Entry* entry = place.load(std::memory_order_relaxed);
        if (entry == nullptr) entry = fresh_entry();
        entry->pd.store(region.pd, std::memory_order_relaxed);
        entry->place.store(region.place, std::memory_order_relaxed);
        entry->writable.store(region.writable, std::memory_order_relaxed);
        entry->mapped.store(region.mapped, std::memory_order_relaxed);
        entry->iova.store(region.iova, std::memory_order_relaxed);
        entry->length.store(region.length, std::memory_order_relaxed);
        entry->address.store(region.address, std::memory_order_relaxed);
        entry->lkey.store(region.lkey, std::memory_order_release);
        place.store(entry, std::memory_order_release);
    }

    void erase(std::uint32_t lkey) {
        const std::lock_guard lock(mutex_);
        Middle* middle = top_[lkey >> 24].load(std::memory_order_relaxed);
        Leaf* leaf =
            middle == nullptr ? nullptr : (*middle)[lkey >> 16 & 0xff].load(std::memory_order_relaxed);
        if (leaf == nullptr) return;
        std::atomic<Entry*>& place = leaf->at(lkey >> 8 & 0xff);
        Entry* entry = place.load(std::memory_order_relaxed);
        if (entry == nullptr || entry->lkey.load(std::memory_order_relaxed) != lkey) return;
        place.store(nullptr, std::memory_order_release);
        entry->lkey.store(0, std::memory_order_relaxed);
        idle_.push_back(entry);
    }

    // Fork (fork.h): in the child, the regions so far are its parent's.
    void before_fork() { mutex_.lock(); }
    void after_fork_in_parent() { mutex_.unlock(); }
    void after_fork_in_child() {
        for (Entry& entry : entries_)
            if (entry.place.load(std::memory_order_relaxed) != RegionPlace::kNowhere)
                entry.place.store(RegionPlace::kElsewhere, std::memory_order_relaxed);
        mutex_.unlock();
    }

    /// Null if the key is not of a live region of protection domain `pd`.
    const Entry* find(std::uint32_t lkey, std::uint32_t pd) const {
        const Middle* middle = top_[lkey >> 24].load(std::memory_order_acquire);
        if (middle == nullptr) return nullptr;
        const Leaf* leaf = (*middle)[lkey >> 16 & 0xff].load(std::memory_order_acquire);
        if (leaf == nullptr) return nullptr;
        const Entry* entry = (*leaf)[lkey >> 8 & 0xff].load(std::memory_order_acquire);
        if (entry == nullptr || entry->lkey.load(std::memory_order_acquire) != lkey) return nullptr;
        return entry->pd.load(std::memory_order_relaxed) == pd ? entry : nullptr;
    }

  private:
    using Leaf = std::array<std::atomic<Entry*>, 256>;
    using Middle = std::array<std::atomic<Leaf*>, 256>;
    using Top = std::array<std::atomic<Middle*>, 256>;

    template <typename Node>
    Node* child(std::array<std::atomic<Node*>, 256>& parent, std::uint32_t index) {
        Node* node = parent[index].load(std::memory_order_relaxed);
        if (node == nullptr) {
            auto made = std::make_unique<Node>();
            node = made.get();
            keep(std::move(made));
            parent[index].store(node, std::memory_order_release);
        }
        return node;
    }
    void keep(std::unique_ptr<Leaf> leaf) { leaves_.push_back(std::move(leaf)); }
    void keep(std::unique_ptr<Middle> middle) { middles_.push_back(std::move(middle)); }

    Entry* fresh_entry() {
        if (idle_.empty()) return &entries_.emplace_back();
        Entry* entry = idle_.back();
        idle_.pop_back();
        return entry;
    }

    Top top_{};
    std::mutex mutex_;
    std::deque<Entry> entries_;
    std::vector<Entry*> idle_;
    std::vector<std::unique_ptr<Leaf>> leaves_;
    std::vector<std::unique_ptr<Middle>> middles_;
};

}  // namespace uib::provider
