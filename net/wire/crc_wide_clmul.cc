// CRCs by 512-bit carry-less multiplication: sixteen blocks abreast. Messages too short for that go the
// 128-bit way, with the same instructions.
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes the undefined registers of its own intrinsics for ours (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "net/wire/crc_clmul.h"

#if defined(__x86_64__)

#define UIB_WIDE [[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.1")]]

namespace uib::net {
namespace {

constexpr std::size_t kVector = 64;
constexpr std::size_t kStride = 4 * kVector;

UIB_WIDE inline __m512i load(const std::byte* at) {
    return _mm512_loadu_si512(at);
}

/// The same factors for each of the four blocks.
template <typename Crc, unsigned Distance>
UIB_WIDE inline __m512i factors() {
    return _mm512_broadcast_i32x4(clmul::factors<Crc, Distance>());
}

/// `blocks` moved by the distance of `by`, and added to `next`.
UIB_WIDE inline __m512i fold(__m512i blocks, __m512i by, __m512i next) {
    constexpr int kXorOfThree = 0x96;
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(blocks, by, 0x00),
                                     _mm512_clmulepi64_epi128(blocks, by, 0x11), next, kXorOfThree);
}

/// Four blocks to one, at the place of the last.
template <typename Crc>
UIB_WIDE inline __m128i join(__m512i blocks) {
    __m128i sum = _mm512_extracti32x4_epi32(blocks, 3);
    sum = _mm_xor_si128(sum, clmul::fold(_mm512_extracti32x4_epi32(blocks, 2), clmul::factors<Crc, 128>()));
    sum = _mm_xor_si128(sum, clmul::fold(_mm512_extracti32x4_epi32(blocks, 1), clmul::factors<Crc, 256>()));
    return _mm_xor_si128(sum, clmul::fold(_mm512_castsi512_si128(blocks), clmul::factors<Crc, 384>()));
}

template <typename Crc>
UIB_WIDE inline std::uint64_t advance(std::uint64_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < kStride) return clmul::advance<Crc>(value, bytes);
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    const __m128i start = _mm_cvtsi64_si128(static_cast<long long>(value));
    __m512i a = _mm512_xor_si512(load(at), _mm512_zextsi128_si512(start));
    __m512i b = load(at + kVector);
    __m512i c = load(at + 2 * kVector);
    __m512i d = load(at + 3 * kVector);
    const __m512i by_stride = factors<Crc, 2048>();
    for (at += kStride; static_cast<std::size_t>(end - at) >= kStride; at += kStride) {
        a = fold(a, by_stride, load(at));
        b = fold(b, by_stride, load(at + kVector));
        c = fold(c, by_stride, load(at + 2 * kVector));
        d = fold(d, by_stride, load(at + 3 * kVector));
    }
    const __m512i by_vector = factors<Crc, 512>();
    d = fold(c, by_vector, d);
    d = fold(b, factors<Crc, 1024>(), d);
    d = fold(a, factors<Crc, 1536>(), d);
    for (; static_cast<std::size_t>(end - at) >= kVector; at += kVector) d = fold(d, by_vector, load(at));
    return clmul::finish<Crc>(join<Crc>(d), at, end);
}

UIB_WIDE std::uint32_t crc32(std::uint32_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < clmul::kBlock) return kPortableCrc.crc32(value, bytes);
    return static_cast<std::uint32_t>(advance<Folding32>(value, bytes));
}

UIB_WIDE std::uint16_t crc16(std::uint16_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < clmul::kBlock) return kPortableCrc.crc16(value, bytes);
    return static_cast<std::uint16_t>(advance<Folding16>(value, bytes));
}

}  // namespace

const CrcKernel kWideClmulCrc{"wide clmul", crc32, crc16};

}  // namespace uib::net

#endif
