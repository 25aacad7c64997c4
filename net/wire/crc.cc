#include "net/wire/crc.h"

#include <algorithm>
#include <array>

#include "net/wire/crc_kernels.h"

namespace uib::net {
namespace {

const CrcKernel& kernel() {
    static const CrcKernel fastest = usable_crc_kernels().front();
    return fastest;
}

}  // namespace

void Crc32::add(std::span<const std::byte> bytes) {
    register_ = kernel().crc32(register_, bytes);
}

void Crc16::add(std::span<const std::byte> bytes) {
    register_ = kernel().crc16(register_, bytes);
}

std::uint16_t vcrc(std::span<const std::byte> bytes) {
    Crc16 crc;
    crc.add(bytes);
    return crc.value();
}

std::uint32_t icrc(const IcrcMask& mask, std::span<const std::byte> bytes) {
    static_assert(sizeof mask.bytes == kCrcMaskBytes);
    return ~kernel().crc32_masked(0xFFFFFFFF, mask.bytes, bytes);
}

std::uint32_t icrc(std::span<const std::byte> prefix, std::span<const std::byte> transport) {
    constexpr std::size_t kMaskedByte = 4;  // of the BTH: FECN, BECN, Resv6
    // What has to be changed is copied, and with it enough of what follows that a short packet is one piece.
    constexpr std::size_t kFront = 256;
    std::array<std::byte, kFront> front;
    const std::size_t together = std::min(transport.size(), kFront - kIcrcPrefixMax);
    const auto bth = std::copy(prefix.begin(), prefix.end(), front.begin());
    const auto end = std::copy_n(transport.begin(), together, bth);
    bth[kMaskedByte] = std::byte{0xFF};
    Crc32 crc;
    crc.add({front.begin(), end});
    if (together != transport.size()) crc.add(transport.subspan(together));
    return crc.value();
}

void store_icrc(std::uint32_t value, std::span<std::byte, 4> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(value >> 8 * i);
}

void store_vcrc(std::uint16_t value, std::span<std::byte, 2> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(value >> 8 * i);
}

std::uint32_t load_icrc(std::span<const std::byte, 4> in) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < in.size(); ++i) value |= std::to_integer<std::uint32_t>(in[i]) << 8 * i;
    return value;
}

std::uint16_t load_vcrc(std::span<const std::byte, 2> in) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(in[0]) | std::to_integer<unsigned>(in[1])
                                                                             << 8);
}

}  // namespace uib::net
