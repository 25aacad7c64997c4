// Shared memory of one client: memfd chunks that the engine makes, maps and passes on, and the allocator
// inside them.
//
// Chunks are sealed against shrinking and growing, so the engine may touch them without fear of SIGBUS
// whatever the client does. They are never given back before the client goes (the client has them mapped),
// but the pages of freed blocks are: freeing punches them out, which also makes them zero again. The
// allocator's own records stay in private memory, out of the client's reach. Used with the lane's baton held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/ring.h"
#include "engine/ipc/unique_fd.h"

namespace uib::verbs {

struct ArenaBlock {
    ipc::Location location{};
    std::byte* memory = nullptr;
    std::size_t size = 0;
};

class Arena {
  public:
    Arena() = default;
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    /// Zeroed memory of at least `size` bytes, aligned to a cache line (blocks of a page and more: to a
    /// page). Nullopt when the machine has none (errno says why).
    std::optional<ArenaBlock> allocate(std::size_t size);
    void free(const ArenaBlock& block);

    /// Descriptors of chunks made since the last call, in the order of their numbers, to go with the next
    /// reply. They stay owned by the arena.
    std::vector<int> take_new_chunks();

    [[nodiscard]] std::size_t bytes_allocated() const { return allocated_; }

  private:
    struct Chunk {
        ipc::UniqueFd fd;
        std::byte* memory = nullptr;
        std::size_t size = 0;
        std::map<std::size_t, std::size_t> free;  ///< offset -> length, joined
    };
    bool add_chunk(std::size_t at_least);
    static std::optional<std::size_t> take_from(Chunk& chunk, std::size_t size, std::size_t alignment);

    std::vector<std::unique_ptr<Chunk>> chunks_;
    std::size_t announced_ = 0;
    std::size_t allocated_ = 0;
};

}  // namespace uib::verbs
