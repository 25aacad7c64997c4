#include "engine/memory/mover.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>

#include "engine/memory/address_space.h"
#include "engine/memory/guarded_copy.h"
#include "engine/memory/region.h"
#include "engine/memory/write_batch.h"

namespace uib::memory {
namespace {

constexpr std::size_t kStagingAlignment = 64;

/// Address spaces with writes kept back at one time; one more makes all of them be written.
constexpr std::size_t kMaxBatches = 8;

/// Ranges of one gathering read.
constexpr std::size_t kMaxReadRanges = 64;

/// Staging memory: anonymous pages, touched first when used, taken from the start again each turn so that the
/// part in use stays in the cache.
class Staging {
  public:
    explicit Staging(std::size_t size) : size_(size) {
        void* const at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        base_ = static_cast<std::byte*>(at);
        madvise(at, size_, MADV_HUGEPAGE);  // advice: whether it is taken does not matter
    }
    ~Staging() { munmap(base_, size_); }
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    [[nodiscard]] std::size_t room() const { return size_ - used_; }
    /// Nullptr when there is no room.
    std::byte* take(std::size_t length) {
        if (length > room()) return nullptr;
        std::byte* const at = base_ + used_;
        const std::size_t padded = (length + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
        used_ = std::min(size_, used_ + padded);
        return at;
    }
    void reset() { used_ = 0; }

  private:
    std::byte* base_ = nullptr;
    std::size_t size_;
    std::size_t used_ = 0;
};

/// Read-modify-writes of memory that is not mapped: lanes exclude each other by place.
std::mutex& lock_of(const void* identity, std::uint64_t address) {
    static std::array<std::mutex, 64> locks;
    const std::uint64_t mixed =
        (reinterpret_cast<std::uintptr_t>(identity) ^ (address >> 3)) * 0x9E3779B97F4A7C15;
    return locks[mixed >> 58];
}

}  // namespace

struct Mover::Implementation {
    explicit Implementation(std::size_t staging_bytes)
        : staging(staging_bytes), batches(std::make_unique<WriteBatch[]>(kMaxBatches)) {
        failed.reserve(64);
    }

    void fail(Owner owner) {
        if (std::find(failed.begin(), failed.end(), owner) == failed.end()) failed.push_back(owner);
    }
    void write(WriteBatch& batch) {
        if (!batch.empty()) batch.write([this](Owner owner) { fail(owner); });
    }
    void write_all() {
        for (std::size_t i = 0; i < open_batches; ++i) write(batches[i]);
        open_batches = 0;
    }
    bool pending_of(Owner owner, const WriteBatch* but) const {
        for (std::size_t i = 0; i < open_batches; ++i) {
            if (&batches[i] != but && batches[i].may_hold(owner)) return true;
        }
        return false;
    }
    WriteBatch& batch_for(AddressSpace& space);
    bool read(std::span<const Slice> from, std::byte* to);
    template <typename Direct, typename Change>
    std::optional<std::uint64_t> change_word(const Slice& at, Direct direct, Change change);

    Staging staging;
    std::unique_ptr<WriteBatch[]> batches;
    std::size_t open_batches = 0;
    std::vector<Owner> failed;  ///< owners with a failed write that they were not yet told of
};

WriteBatch& Mover::Implementation::batch_for(AddressSpace& space) {
    bool alias = false;
    for (std::size_t i = 0; i < open_batches; ++i) {
        if (batches[i].space() == &space) return batches[i];
        alias = alias || batches[i].space()->identity() == space.identity();
    }
    // Another space that shows the same memory: its writes came first and must be made first.
    if (alias || open_batches == kMaxBatches) write_all();
    WriteBatch& batch = batches[open_batches++];
    batch.open(&space);
    return batch;
}

/// Reads slices into `to`: mapped ones by copy, runs of slices in one space by one call.
bool Mover::Implementation::read(std::span<const Slice> from, std::byte* to) {
    std::array<RemoteRange, kMaxReadRanges> ranges;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    AddressSpace* space = nullptr;
    const auto read_run = [&] {
        if (count == 0) return true;
        const bool good = space->read({ranges.data(), count}, to);
        to += bytes;
        count = 0;
        bytes = 0;
        return good;
    };
    for (const Slice& slice : from) {
        if (slice.length == 0) continue;
        AddressSpace& owner = slice.region->space();
        const std::uint64_t address = slice.region->space_address(slice.offset);
        if (const std::byte* const mapped = owner.direct(address, slice.length)) {
            if (!read_run() || !guarded_copy(to, mapped, slice.length)) return false;
            to += slice.length;
            continue;
        }
        if (space != &owner && !read_run()) return false;
        space = &owner;
        bytes += slice.length;
        if (count != 0 && ranges[count - 1].address + ranges[count - 1].length == address) {
            ranges[count - 1].length += slice.length;
            continue;
        }
        if (count == kMaxReadRanges) {
            bytes -= slice.length;
            if (!read_run()) return false;
            bytes = slice.length;
        }
        ranges[count++] = {address, slice.length};
    }
    return read_run();
}

template <typename Direct, typename Change>
std::optional<std::uint64_t> Mover::Implementation::change_word(const Slice& at, Direct direct,
                                                                Change change) {
    if (at.length != sizeof(std::uint64_t)) return std::nullopt;
    write_all();
    AddressSpace& space = at.region->space();
    const std::uint64_t address = at.region->space_address(at.offset);
    std::byte* const mapped = space.direct(address, at.length);
    if (mapped != nullptr && reinterpret_cast<std::uintptr_t>(mapped) % sizeof(std::uint64_t) == 0) {
        return direct(reinterpret_cast<std::uint64_t*>(mapped));
    }
    const std::lock_guard lock(lock_of(space.identity(), address));
    const RemoteRange range = {address, at.length};
    std::uint64_t before = 0;
    if (!space.read({&range, 1}, reinterpret_cast<std::byte*>(&before))) return std::nullopt;
    const std::uint64_t after = change(before);
    const ConstBytes bytes = {reinterpret_cast<const std::byte*>(&after), sizeof(after)};
    if (!space.write({&range, 1}, {&bytes, 1})) return std::nullopt;
    return before;
}

Mover::Mover(std::size_t staging_bytes) : implementation_(std::make_unique<Implementation>(staging_bytes)) {
    install_fault_guard();
}

Mover::~Mover() = default;

std::size_t Mover::room() const {
    return implementation_->staging.room();
}

std::optional<std::span<const std::byte>> Mover::gather(std::span<const Slice> from) {
    Implementation& self = *implementation_;
    if (self.open_batches != 0) self.write_all();

    std::uint64_t length = 0;
    std::size_t filled = 0;
    const Slice* only = nullptr;
    for (const Slice& slice : from) {
        if (slice.length == 0) continue;
        if (slice.length > ~std::uint64_t{0} - length) return std::nullopt;
        length += slice.length;
        only = &slice;
        ++filled;
    }
    if (filled == 0) return std::span<const std::byte>();
    if (filled == 1) {
        AddressSpace& space = only->region->space();
        if (const std::byte* const mapped =
                space.direct(only->region->space_address(only->offset), only->length)) {
            return std::span<const std::byte>(mapped, only->length);
        }
    }
    if (length > self.staging.room()) return std::nullopt;
    std::byte* const to = self.staging.take(length);
    if (!self.read(from, to)) return std::nullopt;
    return std::span<const std::byte>(to, length);
}

std::span<std::byte> Mover::stage(std::size_t length) {
    std::byte* const at = implementation_->staging.take(length);
    if (at == nullptr) return {};
    return {at, length};
}

void Mover::scatter(Owner owner, const Slice& to, std::span<const std::byte> from) {
    if (from.empty()) return;
    Implementation& self = *implementation_;
    AddressSpace& space = to.region->space();
    const std::uint64_t address = to.region->space_address(to.offset);
    std::byte* const mapped = space.direct(address, from.size());
    if (mapped != nullptr) {
        // Programs poll on the last bytes: an owner's writes become visible in their order.
        if (self.open_batches != 0 && self.pending_of(owner, nullptr)) self.write_all();
        if (!guarded_copy(mapped, from.data(), from.size())) self.fail(owner);
        return;
    }
    WriteBatch* batch = &self.batch_for(space);
    if (self.open_batches > 1 && self.pending_of(owner, batch)) {
        self.write_all();
        batch = &self.batch_for(space);
    }
    if (batch->add(owner, address, from)) return;
    self.write(*batch);
    batch->add(owner, address, from);
}

bool Mover::flush(Owner owner) {
    Implementation& self = *implementation_;
    if (self.open_batches != 0) self.write_all();
    if (self.failed.empty()) return true;
    return std::erase(self.failed, owner) == 0;
}

std::optional<std::uint64_t> Mover::compare_swap(Slice at, std::uint64_t compare, std::uint64_t swap) {
    return implementation_->change_word(
        at, [=](std::uint64_t* word) { return guarded_compare_swap(word, compare, swap); },
        [=](std::uint64_t before) { return before == compare ? swap : before; });
}

std::optional<std::uint64_t> Mover::fetch_add(Slice at, std::uint64_t add) {
    return implementation_->change_word(
        at, [=](std::uint64_t* word) { return guarded_fetch_add(word, add); },
        [=](std::uint64_t before) { return before + add; });
}

bool Mover::store(Slice at, std::uint64_t value) {
    return implementation_
        ->change_word(
            at,
            [=](std::uint64_t* word) {
                return guarded_store(word, value) ? std::optional(value) : std::nullopt;
            },
            [=](std::uint64_t) { return value; })
        .has_value();
}

void Mover::end_turn() {
    implementation_->write_all();
    implementation_->staging.reset();
}

}  // namespace uib::memory
