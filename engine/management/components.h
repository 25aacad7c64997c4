// Components of management attributes (IBA 14.2.5): numbers at fixed places of the 64 bytes of data.
//
// An attribute is a struct whose components are all of one type, so that one table says for each where it
// lies, and reading, writing and setting go through that table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/mad.h"

namespace uib::management {

using Data = std::span<std::byte, net::kSmpDataBytes>;
using ConstData = std::span<const std::byte, net::kSmpDataBytes>;
using Number = std::uint64_t;

/// Who may set a component.
enum Access : std::uint8_t {
    kReadOnly = 0,
    kSetAtEnd = 1 << 0,       ///< at a port of a CA, and at port 0 of a switch
    kSetAtExternal = 1 << 1,  ///< at the other ports of a switch
    kOfLink = 1 << 2,         ///< means nothing at port 0 of a switch, which has no link
};

template <typename Attribute>
struct Component {
    Number Attribute::*member;
    std::uint16_t bit;  ///< of its most significant bit, from bit 7 of byte 0 on
    std::uint8_t width;
    std::uint8_t access = kReadOnly;
};

constexpr Number read_bits(ConstData data, unsigned bit, unsigned width) {
    Number value = 0;
    for (unsigned i = bit; i < bit + width; ++i)
        value = value << 1 | (std::to_integer<Number>(data[i / 8]) >> (7 - i % 8) & 1);
    return value;
}

constexpr void write_bits(Data data, unsigned bit, unsigned width, Number value) {
    for (unsigned i = bit + width; i-- > bit; value >>= 1) {
        const auto mask = static_cast<std::byte>(0x80U >> i % 8);
        data[i / 8] = (data[i / 8] & ~mask) | ((value & 1) != 0 ? mask : std::byte{0});
    }
}

template <typename Attribute, std::size_t Count>
void encode(const Component<Attribute> (&components)[Count], const Attribute& attribute, Data out) {
    for (const Component<Attribute>& component : components)
        write_bits(out, component.bit, component.width, attribute.*component.member);
}

template <typename Attribute, std::size_t Count>
Attribute decode(const Component<Attribute> (&components)[Count], ConstData in) {
    Attribute attribute{};
    for (const Component<Attribute>& component : components)
        attribute.*component.member = read_bits(in, component.bit, component.width);
    return attribute;
}

}  // namespace uib::management
