// The contents of both sides' memory: a byte is a function of a seed and of its offset, so that either side
// can tell what any byte of either side must be. And the checksum that is exchanged over what was moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace uib::verify {

/// The 64-bit word at word offset `index` of the pattern.
constexpr std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t x = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

/// Writes the pattern for bytes [offset, offset + target.size()).
void fill_pattern(std::span<std::byte> target, std::uint64_t seed, std::uint64_t offset);

/// Index of the first byte that is not the pattern's, if any.
std::optional<std::size_t> find_difference(std::span<const std::byte> data, std::uint64_t seed,
                                           std::uint64_t offset);

/// FNV-1a in 64-bit steps over a byte stream that may come in pieces of any length: the result depends only
/// on the stream.
class Checksum {
  public:
    void add(std::span<const std::byte> data);
    std::uint64_t value() const;

  private:
    void add_word(std::uint64_t word) { hash_ = ((hash_ ^ word) * 0x100000001B3ULL) ^ (hash_ >> 29); }

    std::uint64_t hash_ = 0xCBF29CE484222325ULL;
    std::uint64_t pending_ = 0;  ///< bytes that do not make a word yet
    std::uint32_t pending_bytes_ = 0;
    std::uint64_t total_ = 0;
};

}  // namespace uib::verify
