// The CRCs of packets (IBA 7.8): CRC-32 of the ICRC, CRC-16 of VCRC and LPCRC.
//
// Both work bit-reversed (least significant bit of each byte first) and start with all ones; the complement
// is stored least significant byte first. A running value is the register before the complement, so data may
// come in pieces. How the bytes are gone through is chosen at start-up (crc_kernels.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace uib::net {

/// Polynomial 0x04C11DB7, the CRC-32 of Ethernet.
class Crc32 {
  public:
    void add(std::span<const std::byte> bytes);
    [[nodiscard]] std::uint32_t value() const { return ~register_; }

  private:
    std::uint32_t register_ = 0xFFFFFFFF;
};

/// Polynomial 0x100B, the CRC-16 of HIPPI-6400.
class Crc16 {
  public:
    void add(std::span<const std::byte> bytes);
    [[nodiscard]] std::uint16_t value() const { return static_cast<std::uint16_t>(~register_); }

  private:
    std::uint16_t register_ = 0xFFFF;
};

/// VCRC of a packet from the LRH to the byte before the VCRC (7.8.2), LPCRC of a link packet's first four
/// bytes (7.8.3).
std::uint16_t vcrc(std::span<const std::byte> bytes);

/// Bits of a packet's first bytes that the ICRC takes for ones, because they may change on the way (7.8.1;
/// Annex A17 for RoCEv2). All of them are among the first 64 bytes, whatever the headers.
struct IcrcMask {
    alignas(64) std::array<std::byte, 64> bytes{};
};

/// ICRC of a packet from its first byte to the last in front of the ICRC. The packet begins with the LRH;
/// that of RoCEv2 with the eight bytes in front of its IP header, all of them masked.
std::uint32_t icrc(const IcrcMask& mask, std::span<const std::byte> bytes);

/// The network headers that this form takes at most: eight bytes of ones, IPv6 and UDP.
inline constexpr std::size_t kIcrcPrefixMax = 56;
/// The same for a packet that does not lie in memory as a whole: `transport` is the BTH (a whole one at
/// least) to the last pad byte, `prefix` what precedes it with its masked bits already set. The BTH is masked
/// here.
std::uint32_t icrc(std::span<const std::byte> prefix, std::span<const std::byte> transport);

/// Value as it is stored, least significant byte first.
void store_icrc(std::uint32_t value, std::span<std::byte, 4> out);
void store_vcrc(std::uint16_t value, std::span<std::byte, 2> out);
std::uint32_t load_icrc(std::span<const std::byte, 4> in);
std::uint16_t load_vcrc(std::span<const std::byte, 2> in);

}  // namespace uib::net
