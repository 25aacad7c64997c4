// Numbers for computing a bit-reversed CRC by carry-less multiplication, derived from its polynomial.
//
// Notation: P = x^w + p the polynomial of the CRC; bytes come in with the highest power first and each byte's
// least significant bit first, so bit i of a register of n bits that was loaded little-endian is the
// coefficient of x^(n-1-i). The CRC of a message M is M * x^w mod P, the old register value having been added
// to the first w bits of M.
//
// Multiplying two reversed 64-bit values gives, read as a reversed 128-bit value, their product times x.
// Hence:
//  - a block L * x^64 + H that lies D bits in front of another is added to it as
//    L * (x^(D+63) mod P) * x + H * (x^(D-1) mod P) * x, of 64 + w bits at most: "folding by D";
//  - 128 bits come down to 64 by folding the upper half twice by 0, at first 64 bits, then what sticks out;
//  - the last 64 bits U give U * x^w mod P by Barrett's method with m = x^(64+w) / P: the quotient is the
//  upper
//    half of U * m, and the remainder the lower w bits of quotient * p.
#pragma once

#include <cstdint>

namespace uib::net {

template <unsigned Width, std::uint64_t Polynomial>
struct Folding {
    static constexpr unsigned kWidth = Width;
    /// P itself, its leading term included.
    static constexpr std::uint64_t kWhole = std::uint64_t{1} << Width | Polynomial;

    static constexpr std::uint64_t reversed(std::uint64_t value) {
        std::uint64_t result = 0;
        for (unsigned i = 0; i < 64; ++i) result |= (value >> i & 1) << (63 - i);
        return result;
    }
    /// x^n mod P, reversed.
    static constexpr std::uint64_t power(unsigned n) {
        std::uint64_t value = 1;
        for (; n > 0; --n) {
            value <<= 1;
            if ((value >> Width & 1) != 0) value ^= kWhole;
        }
        return reversed(value);
    }
    /// Factors of the two halves of a block that is folded by `distance` bits, a multiple of 128.
    static constexpr std::uint64_t low_factor(unsigned distance) { return power(distance + 63); }
    static constexpr std::uint64_t high_factor(unsigned distance) { return power(distance - 1); }

    /// Of x^64 mod P through one multiplication.
    static constexpr std::uint64_t kHalf = power(63);
    static constexpr std::uint64_t kPolynomial = reversed(Polynomial);
    /// m without its leading term.
    static constexpr std::uint64_t kQuotient = [] {
        std::uint64_t remainder = 0;
        std::uint64_t quotient = 0;
        for (unsigned i = 64 + Width + 1; i-- > 0;) {
            remainder = remainder << 1 | (i == 64 + Width ? 1 : 0);
            if ((remainder >> Width & 1) == 0) continue;
            remainder ^= kWhole;
            if (i < 64) quotient |= std::uint64_t{1} << i;
        }
        return reversed(quotient);
    }();
};

using Folding32 = Folding<32, 0x04C11DB7>;
using Folding16 = Folding<16, 0x100B>;

}  // namespace uib::net
