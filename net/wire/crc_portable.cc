// CRCs by tables, eight bytes a step: the value after a byte and k zero bytes is a table's entry, and the
// entries of eight neighbours add up.
#include <array>

#include "net/wire/crc_kernels.h"

namespace uib::net {
namespace {

constexpr std::size_t kStep = 8;

/// [k][b]: register after byte b and k zero bytes, with the bit-reversed polynomial.
template <typename Register>
constexpr std::array<std::array<Register, 256>, kStep> make_tables(Register polynomial) {
    std::array<std::array<Register, 256>, kStep> tables{};
    for (unsigned byte = 0; byte < 256; ++byte) {
        auto value = static_cast<Register>(byte);
        for (int i = 0; i < 8; ++i)
            value = static_cast<Register>(value >> 1 ^ ((value & 1) != 0 ? polynomial : 0));
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < kStep; ++k) {
        for (unsigned byte = 0; byte < 256; ++byte) {
            const Register before = tables[k - 1][byte];
            tables[k][byte] = static_cast<Register>(before >> 8 ^ tables[0][before & 0xFF]);
        }
    }
    return tables;
}

constexpr auto kTables32 = make_tables<std::uint32_t>(0xEDB88320);
constexpr auto kTables16 = make_tables<std::uint16_t>(0xD008);

template <typename Register, const std::array<std::array<Register, 256>, kStep>& tables>
Register advance(Register value, std::span<const std::byte> bytes) {
    while (bytes.size() >= kStep) {
        std::uint64_t word = value;
        for (std::size_t i = 0; i < kStep; ++i) word ^= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
        value = 0;
        for (std::size_t i = 0; i < kStep; ++i) value ^= tables[kStep - 1 - i][word >> 8 * i & 0xFF];
        bytes = bytes.subspan(kStep);
    }
    for (const std::byte byte : bytes)
        value =
            static_cast<Register>(value >> 8 ^ tables[0][(value ^ std::to_integer<unsigned>(byte)) & 0xFF]);
    return value;
}

std::uint32_t crc32_masked(std::uint32_t value, CrcMask mask, std::span<const std::byte> bytes) {
    return crc32_of_masked_copy(kPortableCrc.crc32, value, mask, bytes);
}

}  // namespace

const CrcKernel kPortableCrc{"portable", advance<std::uint32_t, kTables32>, advance<std::uint16_t, kTables16>,
                             crc32_masked};

}  // namespace uib::net
