// The ways to compute the CRCs of crc.h, one of which is chosen at start-up by what the CPU can do.
//
// A kernel advances a register (the running value before the complement) over bytes. All give the same result
// for any length, alignment and division into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uib::net {

/// Ones for the bits of a message's first bytes that count as ones, whatever they are.
inline constexpr std::size_t kCrcMaskBytes = 64;
using CrcMask = std::span<const std::byte, kCrcMaskBytes>;

using Crc32Function = std::uint32_t(std::uint32_t value, std::span<const std::byte> bytes);

struct CrcKernel {
    const char* name;
    Crc32Function* crc32;
    std::uint16_t (*crc16)(std::uint16_t value, std::span<const std::byte> bytes);
    std::uint32_t (*crc32_masked)(std::uint32_t value, CrcMask mask, std::span<const std::byte> bytes);
};

/// Those that this CPU can run, the fastest first; the last is the portable one.
std::span<const CrcKernel> usable_crc_kernels();

/// crc32_masked() by way of a masked copy of the first bytes.
std::uint32_t crc32_of_masked_copy(Crc32Function* crc32, std::uint32_t value, CrcMask mask,
                                   std::span<const std::byte> bytes);

/// Tables, eight bytes a step; for any CPU.
extern const CrcKernel kPortableCrc;
#if defined(__x86_64__)
/// 128-bit carry-less multiplication: needs PCLMULQDQ and SSE4.1.
extern const CrcKernel kClmulCrc;
/// The same with 512 bits, and bit matrices: needs VPCLMULQDQ, GFNI and AVX-512F besides.
extern const CrcKernel kWideCrc;
#endif

}  // namespace uib::net
