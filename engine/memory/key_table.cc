#include "engine/memory/key_table.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

namespace uib::memory {
namespace {

constexpr std::uint32_t kVariantBits = 8;
constexpr std::uint32_t kIndexBits = 24;
constexpr std::uint32_t kHalfBits = kIndexBits / 2;
constexpr std::uint32_t kHalfMask = (1U << kHalfBits) - 1;
constexpr std::uint32_t kRemoteRights =
    ipc::kAccessRemoteRead | ipc::kAccessRemoteWrite | ipc::kAccessRemoteAtomic;
constexpr std::uint32_t kChangingRights = ipc::kAccessRemoteWrite | ipc::kAccessRemoteAtomic;

/// SplitMix64.
std::uint64_t next_random(std::uint64_t& state) {
    state += 0x9E3779B97F4A7C15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

std::uint32_t round_function(std::uint32_t half, std::uint32_t key) {
    std::uint32_t x = (half + 1) * 0x9E3779B1U ^ key;
    x = (x ^ (x >> 15)) * 0x85EBCA77U;
    return (x ^ (x >> 13)) & kHalfMask;
}

std::uint64_t kernel_random() {
    std::uint64_t value = 0;
    if (getrandom(&value, sizeof(value), 0) != static_cast<ssize_t>(sizeof(value))) {
        throw std::runtime_error("getrandom failed");
    }
    return value;
}

/// Whether [address, address + length) lies in [start, start + size) and does not run past the top.
bool inside(std::uint64_t address, std::uint64_t length, std::uint64_t start, std::uint64_t size) {
    if (address < start || (length != 0 && address + (length - 1) < address)) return false;
    const std::uint64_t offset = address - start;
    return offset <= size && length <= size - offset;
}

RegionInit normalised(RegionInit init) {
    if ((init.access & ipc::kAccessZeroBased) != 0) init.iova = 0;
    return init;
}

}  // namespace

/// A slot: free, a region's or a window's.
struct KeyTable::Entry {
    std::unique_ptr<Region> region;
    std::unique_ptr<Window> window;
    std::uint8_t variant = 0;  ///< the last one used
};

std::uint32_t KeyTable::Permutation::forward(std::uint32_t index) const {
    std::uint32_t left = index >> kHalfBits;
    std::uint32_t right = index & kHalfMask;
    for (const std::uint32_t key : round_keys) {
        left ^= round_function(right, key);
        std::swap(left, right);
    }
    return (left << kHalfBits) | right;
}

std::uint32_t KeyTable::Permutation::backward(std::uint32_t value) const {
    std::uint32_t left = value >> kHalfBits;
    std::uint32_t right = value & kHalfMask;
    for (auto key = std::rbegin(round_keys); key != std::rend(round_keys); ++key) {
        std::swap(left, right);
        left ^= round_function(right, *key);
    }
    return (left << kHalfBits) | right;
}

KeyTable::KeyTable(std::uint64_t seed) {
    const bool drawn = seed == 0;
    random_state_ = drawn ? kernel_random() : seed;
    for (std::uint32_t& key : permutation_.round_keys) {
        key = static_cast<std::uint32_t>(drawn ? kernel_random() : next_random(random_state_));
    }
}

KeyTable::~KeyTable() = default;

KeyTable::Entry* KeyTable::find(std::uint32_t key) {
    const std::uint32_t index = permutation_.backward(key >> kVariantBits);
    return index < entries_.size() ? &entries_[index] : nullptr;
}

std::uint32_t KeyTable::take_slot() {
    std::uint32_t index = 0;
    if (!free_.empty()) {
        index = free_.back();
        free_.pop_back();
    } else {
        if (entries_.size() >= (std::size_t{1} << kIndexBits)) throw std::length_error("all keys are in use");
        index = static_cast<std::uint32_t>(entries_.size());
        entries_.emplace_back();
        entries_.back().variant = static_cast<std::uint8_t>(next_random(random_state_) >> 56);
    }
    ++live_;
    return index;
}

void KeyTable::free_slot(std::uint32_t index) {
    entries_[index].region.reset();
    entries_[index].window.reset();
    free_.push_back(index);
    --live_;
}

std::uint8_t KeyTable::next_variant() {
    return static_cast<std::uint8_t>(next_random(random_state_) >> 56);
}

std::uint32_t KeyTable::new_key(std::uint32_t index) {
    Entry& entry = entries_[index];
    const std::uint32_t high = permutation_.forward(index) << kVariantBits;
    std::uint8_t variant = 0;
    // Keys 0 and ~0 are left out: programs take them for "none".
    do {
        variant = next_variant();
    } while (variant == entry.variant || (high | variant) == 0 || (high | variant) == ~0U);
    entry.variant = variant;
    return high | variant;
}

Region* KeyTable::add_region(RegionInit init) {
    auto region = std::make_unique<Region>(normalised(std::move(init)));
    const std::uint32_t index = take_slot();
    region->key_ = new_key(index);
    return (entries_[index].region = std::move(region)).get();
}

int KeyTable::remove_region(Region* region) {
    if (region->windows_ != 0) return EBUSY;
    free_slot(permutation_.backward(region->key_ >> kVariantBits));
    return 0;
}

int KeyTable::change_region(Region* region, RegionInit init) {
    if (region->windows_ != 0) return EBUSY;
    region->init_ = normalised(std::move(init));
    region->invalidated_ = false;
    region->key_ = new_key(permutation_.backward(region->key_ >> kVariantBits));
    return 0;
}

int KeyTable::change_rights(Region* region, PdId pd, std::uint32_t access) {
    if (region->windows_ != 0) return EBUSY;
    region->init_.pd = pd;
    region->init_.access = access;
    return 0;
}

Window* KeyTable::add_window(PdId pd, WindowType type) {
    auto window = std::make_unique<Window>(pd, type);
    const std::uint32_t index = take_slot();
    window->key_ = new_key(index);
    return (entries_[index].window = std::move(window)).get();
}

void KeyTable::remove_window(Window* window) {
    unbind(*window);
    free_slot(permutation_.backward(window->key_ >> kVariantBits));
}

void KeyTable::unbind(Window& window) {
    if (window.region_ == nullptr) return;
    --window.region_->windows_;
    window.region_ = nullptr;
    if (window.type_ != WindowType::kType2) return;
    const auto owned = windows_of_qp_.find(window.qp_number_);
    std::erase(owned->second, &window);
    if (owned->second.empty()) windows_of_qp_.erase(owned);
}

Checked KeyTable::check_local(PdId pd, std::uint32_t lkey, std::uint64_t address, std::uint64_t length,
                              bool write) {
    Entry* const entry = find(lkey);
    Region* const region = entry != nullptr ? entry->region.get() : nullptr;
    if (region == nullptr || region->key_ != lkey) return {AccessError::kKey, {}};
    const RegionInit& init = region->init_;
    if (init.pd != pd) return {AccessError::kPd, {}};
    if (!inside(address, length, init.iova, init.length)) return {AccessError::kBounds, {}};
    if (write && (init.access & ipc::kAccessLocalWrite) == 0) return {AccessError::kRights, {}};
    if (region->invalidated_) return {AccessError::kState, {}};
    return {AccessError::kNone, {region, address - init.iova, length}};
}

Checked KeyTable::check_remote(PdId pd, std::uint32_t qp_number, std::uint32_t rkey, std::uint64_t address,
                               std::uint64_t length, std::uint32_t rights) {
    Entry* const entry = find(rkey);
    if (entry == nullptr) return {AccessError::kKey, {}};
    if (entry->window != nullptr) {
        return check_window(*entry->window, pd, qp_number, rkey, {address, length}, rights);
    }
    Region* const region = entry->region.get();
    if (region == nullptr || region->key_ != rkey) return {AccessError::kKey, {}};
    const RegionInit& init = region->init_;
    if (init.pd != pd) return {AccessError::kPd, {}};
    if (!inside(address, length, init.iova, init.length)) return {AccessError::kBounds, {}};
    if ((init.access & rights) != rights) return {AccessError::kRights, {}};
    if (region->invalidated_) return {AccessError::kState, {}};
    return {AccessError::kNone, {region, address - init.iova, length}};
}

Checked KeyTable::check_window(const Window& window, PdId pd, std::uint32_t qp_number, std::uint32_t rkey,
                               RemoteRange range, std::uint32_t rights) {
    if (window.key_ != rkey) return {AccessError::kKey, {}};
    if (window.pd_ != pd) return {AccessError::kPd, {}};
    // A free window has neither bounds nor rights that could be checked first.
    if (window.region_ == nullptr) return {AccessError::kWindow, {}};
    const bool zero_based = (window.access_ & ipc::kAccessZeroBased) != 0;
    const std::uint64_t start = zero_based ? 0 : window.base_;
    if (!inside(range.address, range.length, start, window.length_)) return {AccessError::kBounds, {}};
    if ((window.access_ & rights) != rights) return {AccessError::kRights, {}};
    if (window.type_ == WindowType::kType2 && window.qp_number_ != qp_number) {
        return {AccessError::kWindow, {}};
    }
    if (window.region_->invalidated_) return {AccessError::kState, {}};
    const std::uint64_t offset = window.base_ - window.region_->init_.iova + (range.address - start);
    return {AccessError::kNone, {window.region_, offset, range.length}};
}

AccessError KeyTable::check_bind(const Window& window, const BindRequest& request, Region*& region) {
    const bool type2 = window.type_ == WindowType::kType2;
    const bool key_given = type2 || request.new_key != 0;
    if (key_given && (request.new_key >> kVariantBits) != (window.key_ >> kVariantBits))
        return AccessError::kKey;
    if (window.pd_ != request.pd) return AccessError::kPd;
    if (request.length == 0) return type2 ? AccessError::kBounds : AccessError::kNone;

    Entry* const entry = find(request.region_key);
    Region* const target = entry != nullptr ? entry->region.get() : nullptr;
    if (target == nullptr || target->key_ != request.region_key) return AccessError::kKey;
    const RegionInit& init = target->init_;
    if (init.pd != request.pd) return AccessError::kPd;
    if (!inside(request.address, request.length, init.iova, init.length)) return AccessError::kBounds;
    if ((request.access & ~(kRemoteRights | ipc::kAccessZeroBased)) != 0) return AccessError::kRights;
    if ((init.access & ipc::kAccessBindWindow) == 0) return AccessError::kRights;
    if ((request.access & kChangingRights) != 0 && (init.access & ipc::kAccessLocalWrite) == 0) {
        return AccessError::kRights;
    }
    if (type2 && window.region_ != nullptr) return AccessError::kWindow;
    if (target->invalidated_) return AccessError::kState;
    region = target;
    return AccessError::kNone;
}

AccessError KeyTable::bind(Window* window, const BindRequest& request) {
    Region* region = nullptr;
    const AccessError error = check_bind(*window, request, region);
    if (error != AccessError::kNone) return error;

    unbind(*window);
    const std::uint32_t index = permutation_.backward(window->key_ >> kVariantBits);
    if (window->type_ == WindowType::kType1 && request.new_key == 0) {
        window->key_ = new_key(index);
    } else {
        window->key_ = request.new_key;
        entries_[index].variant = static_cast<std::uint8_t>(request.new_key);
    }
    if (window->type_ == WindowType::kType2) {
        window->qp_number_ = request.qp_number;
        windows_of_qp_[request.qp_number].push_back(window);
    }
    if (region == nullptr) return AccessError::kNone;  // type 1, length 0: it stays unbound
    window->region_ = region;
    ++region->windows_;
    window->base_ = request.address;
    window->length_ = request.length;
    window->access_ = request.access;
    return AccessError::kNone;
}

AccessError KeyTable::local_invalidate(PdId pd, std::uint32_t qp_number, std::uint32_t key) {
    Entry* const entry = find(key);
    if (entry == nullptr) return AccessError::kKey;
    if (Region* const region = entry->region.get()) {
        if (region->key_ != key) return AccessError::kKey;
        if (region->init_.pd != pd) return AccessError::kPd;
        if (!region->init_.may_be_invalidated) return AccessError::kRights;
        if (region->windows_ != 0) return AccessError::kWindow;
        region->invalidated_ = true;
        return AccessError::kNone;
    }
    Window* const window = entry->window.get();
    if (window == nullptr || window->key_ != key) return AccessError::kKey;
    if (window->pd_ != pd) return AccessError::kPd;
    if (window->type_ != WindowType::kType2) return AccessError::kRights;
    if (window->region_ == nullptr) return AccessError::kNone;  // free already: it is left as it is
    if (window->qp_number_ != qp_number) return AccessError::kWindow;
    unbind(*window);
    return AccessError::kNone;
}

AccessError KeyTable::remote_invalidate(PdId pd, std::uint32_t qp_number, std::uint32_t key) {
    return local_invalidate(pd, qp_number, key);  // the same rules hold for both (type 2B windows)
}

void KeyTable::release_windows_of(std::uint32_t qp_number) {
    const auto owned = windows_of_qp_.find(qp_number);
    if (owned == windows_of_qp_.end()) return;
    const std::vector<Window*> windows = std::move(owned->second);
    windows_of_qp_.erase(owned);
    for (Window* window : windows) {
        --window->region_->windows_;
        window->region_ = nullptr;
    }
}

}  // namespace uib::memory
