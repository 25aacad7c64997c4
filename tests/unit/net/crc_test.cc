// The CRCs against the specification's examples, and every kernel that this CPU can run against the bit by
// bit definition.
#include "net/wire/crc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "net/wire/crc_kernels.h"
#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

const char* const kBody =
    "0A2024870087B1B3000DEC2A 01710A1C015D400238F27A050000000E BB884D85FD5CFBA4728BC0690ED40000";
const char* const kLocalLrh = "7012375C000E17D2";
const char* const kGlobalLrh = "7013375C001817D2";
const char* const kGrh = "6000000000300010 00000000000001250000000000000026 00000000000001170000000000000096";

Bytes stored(std::uint32_t value) {
    Bytes bytes(4);
    store_icrc(value, std::span<std::byte, 4>(bytes));
    EXPECT_EQ(load_icrc(std::span<const std::byte, 4>(bytes)), value);
    return bytes;
}

Bytes stored(std::uint16_t value) {
    Bytes bytes(2);
    store_vcrc(value, std::span<std::byte, 2>(bytes));
    EXPECT_EQ(load_vcrc(std::span<const std::byte, 2>(bytes)), value);
    return bytes;
}

// 7.8.4, packet without GRH: C7-48, C7-50.
TEST(Crc, WorkedExampleOfALocalPacket) {
    const Bytes prefix = hex("F012375C000E17D2");
    EXPECT_EQ(stored(icrc(prefix, hex(kBody))), hex("9625B75A"));
    EXPECT_EQ(stored(vcrc(hex(std::string(kLocalLrh) + kBody + "9625B75A"))), hex("45FA"));
}

// 7.8.4, packet with GRH.
TEST(Crc, WorkedExampleOfAGlobalPacket) {
    Bytes prefix = hex(std::string("FFFFFFFFFFFFFFFF") + kGrh);
    for (const std::size_t at : {9, 10, 11, 15}) prefix[at] = std::byte{0xFF};
    prefix[8] = std::byte{0x6F};
    EXPECT_EQ(stored(icrc(prefix, hex(kBody))), hex("B67D1ED1"));
    EXPECT_EQ(stored(vcrc(hex(std::string(kGlobalLrh) + kGrh + kBody + "B67D1ED1"))), hex("B148"));
}

TEST(Crc, CheckValuesAndResidues) {
    const Bytes digits = hex("313233343536373839");
    Crc32 crc32;
    crc32.add(digits);
    EXPECT_EQ(crc32.value(), 0xCBF43926U);
    crc32.add(stored(crc32.value()));
    EXPECT_EQ(crc32.value(), 0x2144DF1CU);
    Crc16 crc16;
    crc16.add(digits);
    EXPECT_EQ(crc16.value(), 0x0A3D);
    crc16.add(stored(crc16.value()));
    EXPECT_EQ(crc16.value(), 0xAA90);
}

// Annex A17: ones in place of the LRH, then IPv4 (ToS, TTL and checksum masked), then UDP (checksum masked).
TEST(Crc, InvariantCrcBehindPseudoHeaders) {
    const Bytes prefix =
        hex("FFFFFFFFFFFFFFFF 45FF00401234 4000 FF11FFFF C0A80001 C0A80002 C000 12B7 002C FFFF");
    Bytes transport = hex("1140FFFF 00000011 00000022 1F000001");
    Bytes whole = prefix;
    whole.insert(whole.end(), transport.begin(), transport.end());
    whole[prefix.size() + 4] = std::byte{0xFF};
    EXPECT_EQ(icrc(prefix, transport), bitwise_crc32(whole));
    transport[4] = std::byte{0xC0};  // FECN and BECN are set on the way
    EXPECT_EQ(icrc(prefix, transport), bitwise_crc32(whole));
    transport[5] = std::byte{1};
    EXPECT_NE(icrc(prefix, transport), bitwise_crc32(whole));
}

TEST(Crc, MaskedBitsCountAsOnes) {
    IcrcMask mask;
    mask.bytes[0] = std::byte{0xF0};
    mask.bytes[12] = std::byte{0xFF};
    const Bytes packet = hex(std::string(kLocalLrh) + kBody);
    EXPECT_EQ(stored(icrc(mask, packet)), hex("9625B75A"));
    Bytes changed = packet;
    changed[0] = std::byte{0xA0};
    changed[12] = std::byte{0xC0};
    EXPECT_EQ(stored(icrc(mask, changed)), hex("9625B75A"));
}

TEST(Crc, ThePortableKernelIsAlwaysThereAndLast) {
    ASSERT_FALSE(usable_crc_kernels().empty());
    EXPECT_STREQ(usable_crc_kernels().back().name, "portable");
}

class CrcKernels : public ::testing::TestWithParam<CrcKernel> {
  protected:
    CrcKernels() : bytes_(8192) {
        for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random_());
    }
    std::uint32_t crc32(std::span<const std::byte> bytes) const {
        return ~GetParam().crc32(0xFFFFFFFF, bytes);
    }
    std::uint16_t crc16(std::span<const std::byte> bytes) const {
        return static_cast<std::uint16_t>(~GetParam().crc16(0xFFFF, bytes));
    }
    /// A copy of its own size, so that a sanitizer sees every byte read beside it.
    Bytes piece(std::size_t offset, std::size_t length) const {
        const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
        return {from, from + static_cast<std::ptrdiff_t>(length)};
    }

    std::mt19937 random_{7};
    Bytes bytes_;
};

TEST_P(CrcKernels, EveryLengthUpToAThousand) {
    for (std::size_t length = 0; length <= 1000; ++length) {
        const Bytes data = piece(length % 61, length);
        ASSERT_EQ(crc32(data), bitwise_crc32(data)) << length;
        ASSERT_EQ(crc16(data), bitwise_crc16(data)) << length;
    }
}

TEST_P(CrcKernels, RandomLengthsAndAlignments) {
    for (int round = 0; round < 500; ++round) {
        const std::size_t offset = random_() % 130;
        const auto data = std::span(bytes_).subspan(offset, random_() % 5001);
        ASSERT_EQ(crc32(data), bitwise_crc32(data)) << offset << " " << data.size();
        ASSERT_EQ(crc16(data), bitwise_crc16(data)) << offset << " " << data.size();
    }
}

TEST_P(CrcKernels, MaskOfAnyLengthAndPlace) {
    for (int round = 0; round < 1000; ++round) {
        Bytes data = piece(random_() % 130, random_() % (round % 2 != 0 ? 400 : 5001));
        Bytes mask(kCrcMaskBytes);
        for (std::byte& byte : mask)
            byte = random_() % 4 == 0 ? static_cast<std::byte>(random_()) : std::byte{0};
        const auto value = static_cast<std::uint32_t>(random_());
        const std::uint32_t masked = GetParam().crc32_masked(value, CrcMask(mask), data);
        for (std::size_t i = 0; i < std::min(data.size(), mask.size()); ++i) data[i] |= mask[i];
        ASSERT_EQ(masked, GetParam().crc32(value, data)) << data.size();
    }
}

TEST_P(CrcKernels, PiecesGiveWhatTheWholeGives) {
    for (int round = 0; round < 300; ++round) {
        const auto data = std::span(bytes_).first(random_() % 5001);
        std::uint32_t running32 = 0xFFFFFFFF;
        std::uint16_t running16 = 0xFFFF;
        for (auto rest = data; !rest.empty();) {
            const std::size_t count =
                std::min<std::size_t>(rest.size(), random_() % (round % 2 != 0 ? 40 : 900));
            running32 = GetParam().crc32(running32, rest.first(count));
            running16 = GetParam().crc16(running16, rest.first(count));
            rest = rest.subspan(count);
        }
        ASSERT_EQ(~running32, bitwise_crc32(data));
        ASSERT_EQ(static_cast<std::uint16_t>(~running16), bitwise_crc16(data));
    }
}

INSTANTIATE_TEST_SUITE_P(Usable, CrcKernels,
                         ::testing::ValuesIn(usable_crc_kernels().begin(), usable_crc_kernels().end()),
                         [](const auto& parameter) {
                             std::string name = parameter.param.name;
                             for (char& c : name)
                                 if (c == ' ') c = '_';
                             return name;
                         });

}  // namespace
}  // namespace uib::net
