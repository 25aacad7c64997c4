#include "net/wire/crc.h"

#include <algorithm>

#include "net/wire/length.h"

namespace uib::net {
namespace {

/// Register after one byte, for each value of the byte, with the bit-reversed polynomial.
template <typename Register>
constexpr std::array<Register, 256> byte_table(Register polynomial) {
    std::array<Register, 256> table{};
    for (unsigned byte = 0; byte < table.size(); ++byte) {
        auto value = static_cast<Register>(byte);
        for (int i = 0; i < 8; ++i)
            value = static_cast<Register>(value >> 1 ^ ((value & 1) != 0 ? polynomial : 0));
        table[byte] = value;
    }
    return table;
}

constexpr auto kTable32 = byte_table<std::uint32_t>(0xEDB88320);
constexpr auto kTable16 = byte_table<std::uint16_t>(0xD008);

template <typename Register>
Register advance(Register value, std::span<const std::byte> bytes, const std::array<Register, 256>& table) {
    for (const std::byte byte : bytes)
        value = static_cast<Register>(value >> 8 ^ table[(value ^ std::to_integer<unsigned>(byte)) & 0xFF]);
    return value;
}

}  // namespace

void Crc32::add(std::span<const std::byte> bytes) {
    register_ = advance(register_, bytes, kTable32);
}

void Crc16::add(std::span<const std::byte> bytes) {
    register_ = advance(register_, bytes, kTable16);
}

std::uint16_t vcrc(std::span<const std::byte> bytes) {
    Crc16 crc;
    crc.add(bytes);
    return crc.value();
}

std::uint32_t icrc(std::span<const std::byte> prefix, std::span<const std::byte> transport) {
    constexpr std::size_t kMaskedByte = 4;  // of the BTH: FECN, BECN, Resv6
    std::array<std::byte, kIcrcPrefixMax + kBthBytes> front;
    const auto bth = std::copy(prefix.begin(), prefix.end(), front.begin());
    const auto end = std::copy_n(transport.begin(), kBthBytes, bth);
    bth[kMaskedByte] = std::byte{0xFF};
    Crc32 crc;
    crc.add({front.begin(), end});
    crc.add(transport.subspan(kBthBytes));
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
