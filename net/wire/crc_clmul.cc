// CRCs by 128-bit carry-less multiplication.
#include "net/wire/crc_clmul.h"

#if defined(__x86_64__)

namespace uib::net {
namespace {

[[gnu::target("pclmul,sse4.1")]] std::uint32_t crc32(std::uint32_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < clmul::kBlock) return kPortableCrc.crc32(value, bytes);
    return static_cast<std::uint32_t>(clmul::advance<Folding32>(value, bytes));
}

[[gnu::target("pclmul,sse4.1")]] std::uint16_t crc16(std::uint16_t value, std::span<const std::byte> bytes) {
    if (bytes.size() < clmul::kBlock) return kPortableCrc.crc16(value, bytes);
    return static_cast<std::uint16_t>(clmul::advance<Folding16>(value, bytes));
}

std::uint32_t crc32_masked(std::uint32_t value, CrcMask mask, std::span<const std::byte> bytes) {
    return crc32_of_masked_copy(crc32, value, mask, bytes);
}

}  // namespace

const CrcKernel kClmulCrc{"clmul", crc32, crc16, crc32_masked};

}  // namespace uib::net

#endif
