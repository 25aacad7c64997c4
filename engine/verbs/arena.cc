#include "engine/verbs/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace uib::verbs {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFirstChunk = std::size_t{1} << 20;
constexpr std::size_t kLargestStep = std::size_t{64} << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
    return (value + to - 1) / to * to;
}

}  // namespace

Arena::~Arena() {
    for (const auto& chunk : chunks_) ::munmap(chunk->memory, chunk->size);
}

bool Arena::add_chunk(std::size_t at_least) {
    const std::size_t step =
        std::min(kFirstChunk << std::min<std::size_t>(chunks_.size() * 2, 6), kLargestStep);
    const std::size_t size = round_up(std::max(at_least, step), kPage);
    auto chunk = std::make_unique<Chunk>();
    chunk->fd = ipc::UniqueFd(::memfd_create("uib-queues", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!chunk->fd) return false;
    if (::ftruncate(chunk->fd.get(), static_cast<off_t>(size)) != 0) return false;
    if (::fcntl(chunk->fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return false;
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, chunk->fd.get(), 0);
    if (memory == MAP_FAILED) return false;
    chunk->memory = static_cast<std::byte*>(memory);
    chunk->size = size;
    chunk->free.emplace(0, size);
    chunks_.push_back(std::move(chunk));
    return true;
}

std::optional<std::size_t> Arena::take_from(Chunk& chunk, std::size_t size, std::size_t alignment) {
    for (auto it = chunk.free.begin(); it != chunk.free.end(); ++it) {
        const auto [offset, length] = *it;
        const std::size_t start = round_up(offset, alignment);
        if (start + size > offset + length) continue;
        chunk.free.erase(it);
        if (start > offset) chunk.free.emplace(offset, start - offset);
        if (start + size < offset + length) chunk.free.emplace(start + size, offset + length - start - size);
        return start;
    }
    return std::nullopt;
}

std::optional<ArenaBlock> Arena::allocate(std::size_t size) {
    const bool pages = size >= kPage;
    const std::size_t rounded = round_up(std::max<std::size_t>(size, 1), pages ? kPage : ipc::kCacheLine);
    const std::size_t alignment = pages ? kPage : ipc::kCacheLine;
    for (bool grown = false;; grown = true) {
        for (std::size_t i = 0; i < chunks_.size(); ++i) {
            Chunk& chunk = *chunks_[i];
            if (const auto offset = take_from(chunk, rounded, alignment)) {
                allocated_ += rounded;
                return ArenaBlock{
                    {static_cast<std::uint32_t>(i), 0, *offset}, chunk.memory + *offset, rounded};
            }
        }
        if (grown || !add_chunk(rounded)) return std::nullopt;
    }
}

void Arena::free(const ArenaBlock& block) {
    if (block.memory == nullptr) return;
    Chunk& chunk = *chunks_[block.location.chunk];
    // Whole pages go back to the system, which makes them zero; a small block shares its page and is cleared
    // by hand.
    if (block.size % kPage != 0 || ::madvise(block.memory, block.size, MADV_REMOVE) != 0)
        std::memset(block.memory, 0, block.size);
    allocated_ -= block.size;
    auto [it, inserted] = chunk.free.emplace(block.location.offset, block.size);
    if (const auto next = std::next(it); next != chunk.free.end() && it->first + it->second == next->first) {
        it->second += next->second;
        chunk.free.erase(next);
    }
    if (it != chunk.free.begin()) {
        const auto before = std::prev(it);
        if (before->first + before->second == it->first) {
            before->second += it->second;
            chunk.free.erase(it);
        }
    }
}

std::vector<int> Arena::take_new_chunks() {
    std::vector<int> fds;
    for (; announced_ < chunks_.size(); ++announced_) fds.push_back(chunks_[announced_]->fd.get());
    return fds;
}

}  // namespace uib::verbs
