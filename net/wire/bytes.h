// Big-endian fields of a packet: loads and stores, and a cursor that walks through headers.
//
// Nothing here checks lengths at run time; callers compare them before they walk (the fixed extents of the
// spans say how much each header takes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uib::net {

/// The unsigned number of `Bytes` bytes at `at`, most significant first.
template <typename Number, std::size_t Bytes = sizeof(Number)>
constexpr Number load_be(const std::byte* at) {
    static_assert(Bytes <= sizeof(Number));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < Bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(at[i]);
    return static_cast<Number>(value);
}

/// Stores the low `Bytes` bytes of `value`, most significant first.
template <std::size_t Bytes, typename Number>
constexpr void store_be(std::byte* at, Number value) {
    static_assert(Bytes <= sizeof(Number));
    for (std::size_t i = 0; i < Bytes; ++i)
        at[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * (Bytes - 1 - i)));
}

/// Flips bit `bit` of `bytes`, counted round their length.
constexpr void flip_bit(std::span<std::byte> bytes, std::size_t bit) {
    bytes[bit / 8 % bytes.size()] ^= static_cast<std::byte>(1U << bit % 8);
}

/// Walks through `Byte`s from the front.
template <typename Byte>
class Cursor {
  public:
    constexpr explicit Cursor(std::span<Byte> bytes) : bytes_(bytes) {}

    /// The next `Count` bytes; there must be as many.
    template <std::size_t Count>
    constexpr std::span<Byte, Count> take() {
        const auto front = bytes_.template first<Count>();
        bytes_ = bytes_.subspan(Count);
        return front;
    }
    [[nodiscard]] constexpr std::span<Byte> rest() const { return bytes_; }

  private:
    std::span<Byte> bytes_;
};

}  // namespace uib::net
