// CRCs with 512-bit vectors, sixteen blocks of 128 bits abreast. Half of them are folded by carry-less
// multiplication and half by bit matrices: these use other units of the CPU, and alone the multiplier would
// be what limits the speed. Messages too short for that go the 128-bit way.
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes the undefined registers of its own intrinsics for ours (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "net/wire/crc_clmul.h"
#include "net/wire/crc_matrices.h"

#if defined(__x86_64__)

#define UIB_WIDE [[gnu::target("avx512f,avx512bw,vpclmulqdq,gfni,pclmul,sse4.1"), gnu::always_inline]] inline
#define UIB_WIDE_ENTRY [[gnu::target("avx512f,avx512bw,vpclmulqdq,gfni,pclmul,sse4.1")]]

namespace uib::net {
namespace {

constexpr std::size_t kVector = 64;
constexpr std::size_t kStride = 4 * kVector;
constexpr int kXorOfThree = 0x96;

UIB_WIDE __m512i load(const std::byte* at) {
    return _mm512_loadu_si512(at);
}

UIB_WIDE __m512i xor_of(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi64(a, b, c, kXorOfThree);
}

/// The same factors for each of the four blocks.
template <typename Crc, unsigned Distance>
UIB_WIDE __m512i factors() {
    return _mm512_broadcast_i32x4(clmul::factors<Crc, Distance>());
}

/// `blocks` moved by the distance of `by`, and added to `next`.
UIB_WIDE __m512i fold(__m512i blocks, __m512i by, __m512i next) {
    return xor_of(_mm512_clmulepi64_epi128(blocks, by, 0x00), _mm512_clmulepi64_epi128(blocks, by, 0x11),
                  next);
}

/// Folding by matrices, by the distance of the stride.
template <typename Crc>
struct Matrices;

template <>
struct Matrices<Folding16> {
    using Numbers = ByteMatrices<Folding16, kStride * 8, 0, 1>;
    static_assert(Numbers::is_basis());
    alignas(kVector) static constexpr Numbers::Vector kMatrices[] = {Numbers::matrices(0),
                                                                     Numbers::matrices(1)};
};

template <>
struct Matrices<Folding32> {
    using Numbers = ByteMatrices<Folding32, kStride * 8, 0, 2, 5, 7>;
    static_assert(Numbers::is_basis());
    alignas(kVector) static constexpr Numbers::Vector kMatrices[] = {
        Numbers::matrices(0), Numbers::matrices(1), Numbers::matrices(2), Numbers::matrices(3)};
};

/// The share of each word that goes to the words i ^ kParts[Number].
template <typename Crc, std::size_t Number>
UIB_WIDE __m512i share(__m512i blocks) {
    using Numbers = typename Matrices<Crc>::Numbers;
    alignas(kVector) static constexpr typename Numbers::Vector kSources = Numbers::sources(Number);
    const __m512i through =
        _mm512_gf2p8affine_epi64_epi8(blocks, _mm512_load_si512(&Matrices<Crc>::kMatrices[Number]), 0);
    if constexpr (Numbers::kParts[Number] == 0) return through;
    return _mm512_permutexvar_epi64(_mm512_load_si512(&kSources), through);
}

template <typename Crc>
UIB_WIDE __m512i fold_by_matrices(__m512i blocks, __m512i next) {
    const __m512i sum = xor_of(share<Crc, 0>(blocks), share<Crc, 1>(blocks), next);
    if constexpr (Crc::kWidth == 16) {
        return sum;
    } else {
        return xor_of(share<Crc, 2>(blocks), share<Crc, 3>(blocks), sum);
    }
}

/// Four blocks to one, at the place of the last.
template <typename Crc>
UIB_WIDE __m128i join(__m512i blocks) {
    __m128i sum = _mm512_extracti32x4_epi32(blocks, 3);
    sum = _mm_xor_si128(sum, clmul::fold(_mm512_extracti32x4_epi32(blocks, 2), clmul::factors<Crc, 128>()));
    sum = _mm_xor_si128(sum, clmul::fold(_mm512_extracti32x4_epi32(blocks, 1), clmul::factors<Crc, 256>()));
    return _mm_xor_si128(sum, clmul::fold(_mm512_castsi512_si128(blocks), clmul::factors<Crc, 384>()));
}

/// A message of a stride at least; the bits that are set in `ones` are ones in its first vector.
template <typename Crc>
UIB_WIDE std::uint64_t advance(std::uint64_t value, __m512i ones, std::span<const std::byte> bytes) {
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    const __m128i start = _mm_cvtsi64_si128(static_cast<long long>(value));
    __m512i a = _mm512_xor_si512(_mm512_or_si512(load(at), ones), _mm512_zextsi128_si512(start));
    __m512i b = load(at + kVector);
    __m512i c = load(at + 2 * kVector);
    __m512i d = load(at + 3 * kVector);
    const __m512i by_stride = factors<Crc, kStride * 8>();
    for (at += kStride; static_cast<std::size_t>(end - at) >= kStride; at += kStride) {
        a = fold_by_matrices<Crc>(a, load(at));
        b = fold(b, by_stride, load(at + kVector));
        c = fold_by_matrices<Crc>(c, load(at + 2 * kVector));
        d = fold(d, by_stride, load(at + 3 * kVector));
    }
    const __m512i by_vector = factors<Crc, 512>();
    d = fold(c, by_vector, d);
    d = fold(b, factors<Crc, 1024>(), d);
    d = fold(a, factors<Crc, 1536>(), d);
    for (; static_cast<std::size_t>(end - at) >= kVector; at += kVector) d = fold(d, by_vector, load(at));
    return clmul::finish<Crc>(join<Crc>(d), at, end);
}

template <typename Crc>
UIB_WIDE std::uint64_t advance(std::uint64_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < kStride) return clmul::advance<Crc>(value, bytes);
    return advance<Crc>(value, _mm512_setzero_si512(), bytes);
}

UIB_WIDE_ENTRY std::uint32_t crc32(std::uint32_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < clmul::kBlock) return kPortableCrc.crc32(value, bytes);
    return static_cast<std::uint32_t>(advance<Folding32>(value, bytes));
}

UIB_WIDE_ENTRY std::uint16_t crc16(std::uint16_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < clmul::kBlock) return kPortableCrc.crc16(value, bytes);
    return static_cast<std::uint16_t>(advance<Folding16>(value, bytes));
}

UIB_WIDE_ENTRY std::uint32_t crc32_masked(std::uint32_t value, CrcMask mask,
                                          std::span<const std::byte> bytes) {
    static_assert(kCrcMaskBytes == kVector);
    if (bytes.size() < kStride) return crc32_of_masked_copy(crc32, value, mask, bytes);
    return static_cast<std::uint32_t>(advance<Folding32>(value, load(mask.data()), bytes));
}

}  // namespace

const CrcKernel kWideCrc{"wide", crc32, crc16, crc32_masked};

}  // namespace uib::net

#endif
