#include "net/wire/crc_kernels.h"

#include <algorithm>
#include <array>

namespace uib::net {
namespace {

struct Usable {
    std::array<CrcKernel, 3> kernels{};
    std::size_t count = 0;
    void add(const CrcKernel& kernel) { kernels[count++] = kernel; }
};

Usable find_usable() {
    Usable usable;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool narrow = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
    const bool wide = __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("gfni") != 0 &&
                      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
    if (narrow && wide) usable.add(kWideCrc);
    if (narrow) usable.add(kClmulCrc);
#endif
    usable.add(kPortableCrc);
    return usable;
}

}  // namespace

std::span<const CrcKernel> usable_crc_kernels() {
    static const Usable usable = find_usable();
    return std::span(usable.kernels).first(usable.count);
}

std::uint32_t crc32_of_masked_copy(Crc32Function* crc32, std::uint32_t value, CrcMask mask,
                                   std::span<const std::byte> bytes) {
    std::array<std::byte, kCrcMaskBytes> copy;
    const std::span<const std::byte> front = bytes.first(std::min(bytes.size(), copy.size()));
    std::transform(front.begin(), front.end(), mask.begin(), copy.begin(),
                   [](std::byte byte, std::byte ones) { return byte | ones; });
    value = crc32(value, std::span(copy).first(front.size()));
    return front.size() == bytes.size() ? value : crc32(value, bytes.subspan(front.size()));
}

}  // namespace uib::net
