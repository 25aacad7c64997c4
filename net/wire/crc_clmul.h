// Parts of the carry-less multiplication kernels: what works on 128-bit registers (crc_folding.h explains the
// method). For the kernels' files only.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/wire/crc_folding.h"
#include "net/wire/crc_kernels.h"

#define UIB_CLMUL [[gnu::target("pclmul,sse4.1"), gnu::always_inline]] inline

namespace uib::net::clmul {

inline constexpr std::size_t kBlock = 16;

UIB_CLMUL __m128i load(const std::byte* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

/// The factors for folding by `Distance` bits.
template <typename Crc, unsigned Distance>
UIB_CLMUL __m128i factors() {
    return _mm_set_epi64x(static_cast<long long>(Crc::high_factor(Distance)),
                          static_cast<long long>(Crc::low_factor(Distance)));
}

/// `block` moved by the distance of `by`, to be added to what lies there.
UIB_CLMUL __m128i fold(__m128i block, __m128i by) {
    return _mm_xor_si128(_mm_clmulepi64_si128(block, by, 0x00), _mm_clmulepi64_si128(block, by, 0x11));
}

/// Adds the last `count` bytes (1 to 15) of a message that has a whole block in front of `end`.
template <typename Crc>
UIB_CLMUL __m128i add_tail(__m128i block, const std::byte* end, std::size_t count) {
    // Selectors for byte shuffles: 16 times "zero", 0 to 15, 16 times "zero".
    alignas(16) static constexpr std::int8_t kSelect[48] = {
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,  //
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    const auto* const select = reinterpret_cast<const __m128i*>(kSelect + count);
    // The message moves up by `count` bytes: as many leave the block and are folded back, the tail comes in.
    const __m128i leaving = _mm_loadu_si128(select);
    const __m128i staying = _mm_loadu_si128(select + 1);
    const __m128i is_tail = _mm_cmpgt_epi8(leaving, _mm_set1_epi8(-1));
    const __m128i tail = _mm_and_si128(load(end - kBlock), is_tail);
    const __m128i next = _mm_or_si128(_mm_shuffle_epi8(block, staying), tail);
    return _mm_xor_si128(fold(_mm_shuffle_epi8(block, leaving), factors<Crc, 128>()), next);
}

/// The register for a message that was folded into one block.
template <typename Crc>
UIB_CLMUL std::uint64_t reduce(__m128i block) {
    const __m128i half = _mm_cvtsi64_si128(static_cast<long long>(Crc::kHalf));
    const __m128i low_half = _mm_set_epi64x(0, -1);
    // The upper powers are in the low half of the register: 128 bits to 64 + w, then to 64.
    __m128i rest = _mm_xor_si128(_mm_clmulepi64_si128(block, half, 0x00), _mm_andnot_si128(low_half, block));
    rest = _mm_xor_si128(_mm_clmulepi64_si128(rest, half, 0x00), rest);
    const auto last = static_cast<std::uint64_t>(_mm_extract_epi64(rest, 1));
    const __m128i constants =
        _mm_set_epi64x(static_cast<long long>(Crc::kPolynomial), static_cast<long long>(Crc::kQuotient));
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(last)), constants, 0x00);
    const std::uint64_t quotient = last ^ static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)) << 1;
    const __m128i remainder =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(quotient)), constants, 0x10);
    return static_cast<std::uint64_t>(_mm_extract_epi64(remainder, 1)) >> (63 - Crc::kWidth);
}

/// Folds the rest of a message into `block`, which holds what came before `at`, and gives the register.
template <typename Crc>
UIB_CLMUL std::uint64_t finish(__m128i block, const std::byte* at, const std::byte* end) {
    const __m128i by_block = factors<Crc, 128>();
    for (; static_cast<std::size_t>(end - at) >= kBlock; at += kBlock)
        block = _mm_xor_si128(fold(block, by_block), load(at));
    if (at != end) block = add_tail<Crc>(block, end, static_cast<std::size_t>(end - at));
    return reduce<Crc>(block);
}

/// A message of a block at least, four blocks abreast.
template <typename Crc>
UIB_CLMUL std::uint64_t advance(std::uint64_t value, std::span<const std::byte> bytes) {
    constexpr std::size_t kStride = 4 * kBlock;
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    const __m128i start = _mm_cvtsi64_si128(static_cast<long long>(value));
    if (bytes.size() < kStride) return finish<Crc>(_mm_xor_si128(load(at), start), at + kBlock, end);
    __m128i a = _mm_xor_si128(load(at), start);
    __m128i b = load(at + kBlock);
    __m128i c = load(at + 2 * kBlock);
    __m128i d = load(at + 3 * kBlock);
    const __m128i by_stride = factors<Crc, 512>();
    for (at += kStride; static_cast<std::size_t>(end - at) >= kStride; at += kStride) {
        a = _mm_xor_si128(fold(a, by_stride), load(at));
        b = _mm_xor_si128(fold(b, by_stride), load(at + kBlock));
        c = _mm_xor_si128(fold(c, by_stride), load(at + 2 * kBlock));
        d = _mm_xor_si128(fold(d, by_stride), load(at + 3 * kBlock));
    }
    const __m128i ab = _mm_xor_si128(fold(a, factors<Crc, 384>()), fold(b, factors<Crc, 256>()));
    const __m128i cd = _mm_xor_si128(fold(c, factors<Crc, 128>()), d);
    return finish<Crc>(_mm_xor_si128(ab, cd), at, end);
}

}  // namespace uib::net::clmul

#endif
