// End-to-end credit codes of the AETH (IBA 9.7.7.2, Table 50): 0, 1, 2, 3, 4, 6, 8, 12 ... 32768, each pair
// of codes doubling; 31 says that the responder generates no credits.
#pragma once

#include <bit>
#include <cstdint>

namespace uib::transport {

inline constexpr std::uint8_t kNoCreditCode = 0x1F;
inline constexpr std::uint8_t kLargestCreditCode = 0x1E;

/// The largest code whose value does not exceed `count`.
constexpr std::uint8_t encode_credits(std::uint32_t count) {
    if (count < 2) return static_cast<std::uint8_t>(count);
    const auto exponent = static_cast<std::uint32_t>(std::bit_width(count)) - 1;
    const std::uint32_t code = 2 * exponent + (count >> (exponent - 1) & 1);
    return static_cast<std::uint8_t>(code < kLargestCreditCode ? code : kLargestCreditCode);
}

/// Credits of a valid code (0 to 30).
constexpr std::uint32_t decode_credits(std::uint8_t code) {
    if (code < 2) return code;
    return (2U + (code & 1U)) << (code / 2U - 1U);
}

}  // namespace uib::transport
