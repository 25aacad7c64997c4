// Moves payload bytes between client memory and packets, a burst at a time. One per lane, used by its thread
// alone.
//
// Sources are gathered when a packet burst is emitted: a slice that lies whole in mapped memory is lent as it
// is, anything else is read with one call a burst into the staging memory of this turn. Destinations that are
// mapped are written at once; others are kept (joined where source and target run on) and written by flush()
// in few calls. Whoever reports that bytes have arrived (a completion, an acknowledge) flushes first, so
// batching is never seen. A gather flushes what was kept, so that a READ sees earlier WRITEs.
//
// All views live until end_turn(), which the lane calls when no packet of the turn is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/memory/slice.h"

namespace uib::memory {

class Mover {
  public:
    /// Tells whose writes failed: the QP number.
    using Owner = std::uint32_t;

    explicit Mover(std::size_t staging_bytes = std::size_t{1} << 20);
    ~Mover();
    Mover(const Mover&) = delete;
    Mover& operator=(const Mover&) = delete;

    /// Staging bytes left in this turn; bursts are cut to it.
    [[nodiscard]] std::size_t room() const;

    /// One contiguous view of the slices' bytes, in order. Nullopt when memory cannot be read (or room() is
    /// too small).
    std::optional<std::span<const std::byte>> gather(std::span<const Slice> from);

    /// Stages bytes that are not in client memory (headers put before payloads, inline data): a view of a
    /// copy.
    std::span<std::byte> stage(std::size_t length);

    /// Writes `from` to `to` (equal lengths), perhaps only at the next flush. `from` must live until then.
    /// Faults are reported by flush(owner).
    void scatter(Owner owner, const Slice& to, std::span<const std::byte> from);

    /// Writes everything kept. False when a write of `owner` has failed since its last flush.
    bool flush(Owner owner);

    /// 64-bit read-modify-write at an 8-byte aligned place, atomic towards all other users of the engine, and
    /// towards CPUs if the memory is mapped. Nullopt when memory cannot be reached. Flushes first.
    std::optional<std::uint64_t> compare_swap(Slice at, std::uint64_t compare, std::uint64_t swap);
    std::optional<std::uint64_t> fetch_add(Slice at, std::uint64_t add);
    /// Atomic write: the 8 bytes of `value` as they lie in memory, seen whole or not at all, under the same
    /// rules. False when memory cannot be reached.
    bool store(Slice at, std::uint64_t value);

    /// End of the lane's turn: flushes and takes all views back.
    void end_turn();

  private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace uib::memory
