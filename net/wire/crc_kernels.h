// The ways to compute the CRCs of crc.h, one of which is chosen at start-up by what the CPU can do.
//
// A kernel advances a register (the running value before the complement) over bytes. All give the same result
// for any length, alignment and division into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uib::net {

struct CrcKernel {
    const char* name;
    std::uint32_t (*crc32)(std::uint32_t value, std::span<const std::byte> bytes);
    std::uint16_t (*crc16)(std::uint16_t value, std::span<const std::byte> bytes);
};

/// Those that this CPU can run, the fastest first; the last is the portable one.
std::span<const CrcKernel> usable_crc_kernels();

/// Tables, eight bytes a step; for any CPU.
extern const CrcKernel kPortableCrc;
#if defined(__x86_64__)
/// 128-bit carry-less multiplication: needs PCLMULQDQ and SSE4.1.
extern const CrcKernel kClmulCrc;
/// 512-bit carry-less multiplication: needs VPCLMULQDQ and AVX-512F besides.
extern const CrcKernel kWideClmulCrc;
#endif

}  // namespace uib::net
