// Bytes for the tests of net/wire: literals, the CRCs by their plain definition, and repair of CRCs after a
// field was changed by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace uib::net {

using Bytes = std::vector<std::byte>;

/// Bytes of hexadecimal digits; blanks are ignored.
inline Bytes hex(std::string_view text) {
    Bytes bytes;
    int high = -1;
    for (const char c : text) {
        if (c == ' ' || c == '\n') continue;
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (high < 0) {
            high = digit;
        } else {
            bytes.push_back(static_cast<std::byte>(high << 4 | digit));
            high = -1;
        }
    }
    return bytes;
}

/// Bit by bit: register shifted right, reversed polynomial, all ones at the start, complement at the end.
template <typename Register>
Register bitwise_crc(std::span<const std::byte> bytes, Register polynomial) {
    auto value = static_cast<Register>(~Register{0});
    for (const std::byte byte : bytes) {
        value = static_cast<Register>(value ^ std::to_integer<unsigned>(byte));
        for (int i = 0; i < 8; ++i)
            value = static_cast<Register>(value >> 1 ^ ((value & 1) != 0 ? polynomial : 0));
    }
    return static_cast<Register>(~value);
}
inline std::uint32_t bitwise_crc32(std::span<const std::byte> bytes) {
    return bitwise_crc<std::uint32_t>(bytes, 0xEDB88320);
}
inline std::uint16_t bitwise_crc16(std::span<const std::byte> bytes) {
    return bitwise_crc<std::uint16_t>(bytes, 0xD008);
}

template <typename Value>
void put_little_endian(std::span<std::byte> out, Value value) {
    for (std::size_t i = 0; i < sizeof(Value); ++i) out[i] = static_cast<std::byte>(value >> 8 * i);
}

/// Makes both CRCs of a frame that is long enough to have them right again; the masks follow LRH:LNH.
inline void repair_crcs(Bytes& frame) {
    const std::size_t end = frame.size() - 2;
    const unsigned next = std::to_integer<unsigned>(frame[1]) & 3;
    if (next >= 2) {
        Bytes masked(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(end - 4));
        if (next == 2) {
            masked[0] |= std::byte{0xF0};
            masked[12] = std::byte{0xFF};
        } else {
            for (const std::size_t at : {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 15, 52})
                masked[at] = std::byte{0xFF};
            masked[8] |= std::byte{0x0F};
        }
        put_little_endian(std::span(frame).subspan(end - 4), bitwise_crc32(masked));
    }
    put_little_endian(std::span(frame).subspan(end), bitwise_crc16(std::span(frame).first(end)));
}

}  // namespace uib::net
