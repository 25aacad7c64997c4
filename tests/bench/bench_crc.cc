// GB/s of the packet CRCs over buffers that stay in the first-level cache, by kernel, beside memcpy over the
// same bytes in the same run. Prints one "name value unit" a line; each value is the median of several
// repetitions.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "net/wire/crc.h"
#include "net/wire/crc_kernels.h"

namespace {

using uib::net::CrcKernel;
using Bytes = std::vector<std::byte>;

constexpr int kRepetitions = 9;
constexpr std::size_t kBytesPerRepetition = std::size_t{256} << 20;

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// GB a second of CPU time, so that other programs on the machine count little, of `work`, which goes through
/// `bytes` bytes a call.
double rate(std::size_t bytes, const std::function<void(std::size_t rounds)>& work) {
    const std::size_t rounds = kBytesPerRepetition / bytes;
    std::vector<double> values(kRepetitions);
    for (double& value : values) {
        const double start = cpu_seconds();
        work(rounds);
        value = static_cast<double>(rounds * bytes) / (cpu_seconds() - start) / 1e9;
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void report(const std::string& name, double value) {
    std::printf("%s %.2f GB/s\n", name.c_str(), value);
    std::fflush(stdout);
}

/// Keeps the compiler from leaving out or joining the calls of a loop.
template <typename Value>
void keep(const Value& value) {
    asm volatile("" : : "r"(value) : "memory");
}

void measure(std::size_t bytes) {
    const std::string size = "_" + std::to_string(bytes);
    // Half a page beside each other, so that no store of the copy looks like the address of a later load.
    constexpr std::size_t kPage = 4096;
    Bytes memory(4 * kPage, std::byte{0x5A});
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(memory.data()) % kPage;
    const std::span<std::byte> pages = std::span(memory).subspan(kPage - misaligned);
    const std::span<const std::byte> from = pages.first(bytes);
    const std::span<std::byte> to = pages.subspan(kPage + kPage / 2).first(bytes);
    report("memcpy" + size, rate(bytes, [&](std::size_t rounds) {
               for (std::size_t i = 0; i < rounds; ++i) {
                   std::memcpy(to.data(), from.data(), bytes);
                   keep(to.data());
               }
           }));
    for (const CrcKernel& kernel : uib::net::usable_crc_kernels()) {
        std::string name = kernel.name;
        std::replace(name.begin(), name.end(), ' ', '_');
        report("crc32_" + name + size, rate(bytes, [&](std::size_t rounds) {
                   for (std::size_t i = 0; i < rounds; ++i) keep(kernel.crc32(0xFFFFFFFF, from));
               }));
        report("crc16_" + name + size, rate(bytes, [&](std::size_t rounds) {
                   for (std::size_t i = 0; i < rounds; ++i) keep(kernel.crc16(0xFFFF, from));
               }));
    }
    const uib::net::IcrcMask mask{};
    report("icrc" + size, rate(bytes, [&](std::size_t rounds) {
               for (std::size_t i = 0; i < rounds; ++i) keep(uib::net::icrc(mask, from));
           }));
    report("icrc_of_two" + size, rate(bytes, [&](std::size_t rounds) {
               for (std::size_t i = 0; i < rounds; ++i) keep(uib::net::icrc(from.first(8), from.subspan(8)));
           }));
    report("vcrc" + size, rate(bytes, [&](std::size_t rounds) {
               for (std::size_t i = 0; i < rounds; ++i) keep(uib::net::vcrc(from));
           }));
}

}  // namespace

int main() {
    for (const std::size_t bytes : {64, 256, 1024, 4096}) measure(bytes);
    return 0;
}
