// Numbers for folding a bit-reversed CRC by 8 x 8 bit matrices (GFNI), derived from its polynomial; see
// crc_folding.h for the notation.
//
// A polynomial below x^8 times x^n mod P has w = 8 * g bits. It can be spread over the same byte of g 64-bit
// words of a vector, as a sum of r * x^(place of the word) with each r below x^8, if the powers x^(place +
// i), i < 8, of these words are a basis modulo P. So a vector is folded by giving the bytes of each word to g
// words through g matrices, the same for all bytes of the word. Word i goes to the words i ^ part; which sets
// of parts give a basis for every i was found by trying, and is checked here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/wire/crc_folding.h"

namespace uib::net {

/// For folding a vector of eight words by `Distance` bits to the words i ^ Parts.
template <typename Crc, unsigned Distance, unsigned... Parts>
class ByteMatrices {
  public:
    static constexpr std::size_t kWords = 8;
    static constexpr std::array<unsigned, sizeof...(Parts)> kParts{Parts...};
    static_assert(kParts.size() * 8 == Crc::kWidth);

    using Vector = std::array<std::uint64_t, kWords>;

    /// The matrices through which the words go to the words i ^ kParts[number], as the instruction wants
    /// them: bit s of byte m says whether input bit s counts for output bit 7 - m.
    static constexpr Vector matrices(std::size_t number) {
        Vector result{};
        for (unsigned from = 0; from < kWords; ++from) {
            for (unsigned s = 0; s < 8; ++s) {
                const std::uint64_t power = kPowers[place(from) + 7 - s + Distance];
                const std::uint64_t sum = coordinates(kInverses[from], power);
                const std::uint64_t bits = sum >> (8 * number) & 0xFF;
                for (unsigned m = 0; m < 8; ++m) result[from] |= (bits >> m & 1) << (8 * m + s);
            }
        }
        return result;
    }
    /// For each word, the word that comes to its place.
    static constexpr Vector sources(std::size_t number) {
        Vector result{};
        for (std::size_t word = 0; word < kWords; ++word) result[word] = word ^ kParts[number];
        return result;
    }
    static constexpr bool is_basis() {
        for (const Inverse& inverse : kInverses)
            if (!inverse.exists) return false;
        return true;
    }

  private:
    /// x^n mod P, bit i the coefficient of x^i.
    static constexpr auto kPowers = [] {
        std::array<std::uint64_t, 64 * kWords + Distance> powers{1};
        for (std::size_t n = 1; n < powers.size(); ++n) {
            powers[n] = powers[n - 1] << 1;
            if ((powers[n] >> Crc::kWidth & 1) != 0) powers[n] ^= Crc::kWhole;
        }
        return powers;
    }();
    /// Exponent of the last bit of each byte of a word, less that of the byte in the word.
    static constexpr unsigned place(unsigned word) { return 64 * (kWords - 1 - word); }

    struct Inverse {
        std::array<std::uint64_t, Crc::kWidth> of_bit{};  ///< which basis powers add up to x^bit
        bool exists = true;
    };
    /// Gauss and Jordan's elimination on the basis for a word; bit 8 * j + i is for the destination
    /// kParts[j].
    static constexpr Inverse invert(unsigned from) {
        std::array<std::uint64_t, Crc::kWidth> value{};
        Inverse inverse;
        for (unsigned k = 0; k < Crc::kWidth; ++k) {
            value[k] = kPowers[place(from ^ kParts[k / 8]) + k % 8];
            inverse.of_bit[k] = std::uint64_t{1} << k;
        }
        for (unsigned bit = 0; bit < Crc::kWidth; ++bit) {
            unsigned pivot = bit;
            while (pivot < Crc::kWidth && (value[pivot] >> bit & 1) == 0) ++pivot;
            if (pivot == Crc::kWidth) return {.of_bit = {}, .exists = false};
            exchange(value[bit], value[pivot]);
            exchange(inverse.of_bit[bit], inverse.of_bit[pivot]);
            for (unsigned row = 0; row < Crc::kWidth; ++row) {
                if (row == bit || (value[row] >> bit & 1) == 0) continue;
                value[row] ^= value[bit];
                inverse.of_bit[row] ^= inverse.of_bit[bit];
            }
        }
        return inverse;
    }
    static constexpr std::array<Inverse, kWords> kInverses{invert(0), invert(1), invert(2), invert(3),
                                                           invert(4), invert(5), invert(6), invert(7)};

    static constexpr void exchange(std::uint64_t& a, std::uint64_t& b) {
        const std::uint64_t old = a;
        a = b;
        b = old;
    }
    static constexpr std::uint64_t coordinates(const Inverse& inverse, std::uint64_t value) {
        std::uint64_t result = 0;
        for (unsigned bit = 0; bit < Crc::kWidth; ++bit)
            if ((value >> bit & 1) != 0) result ^= inverse.of_bit[bit];
        return result;
    }
};

}  // namespace uib::net
