#include "net/wire/crc_kernels.h"

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
    const bool wide = __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("avx512f") != 0;
    if (narrow && wide) usable.add(kWideClmulCrc);
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

}  // namespace uib::net
