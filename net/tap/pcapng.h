// A pcapng file in pieces (draft-ietf-opsawg-pcapng): section, interfaces, packets, statistics, as bytes to
// append.
//
// Pure: the caller owns the buffer and the file. Times are nanoseconds since the Unix epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace uib::net {

/// Link types of the tcpdump registry.
enum class LinkType : std::uint16_t { kEthernet = 1, kErf = 197 };

/// InfiniBand packets have a link type of their own (247), but Wireshark does not read it. It reads them in
/// records of the Extensible Record Format (Endace, ERF types reference, type 21): a header of this size in
/// front of the LRH.
inline constexpr std::size_t kErfHeaderBytes = 16;
/// Writes the header of a packet of `length` bytes, `kept` of which follow.
void write_erf_header(std::span<std::byte, kErfHeaderBytes> out, std::uint64_t time_ns, std::size_t kept,
                      std::size_t length);

enum class CaptureDirection : std::uint8_t { kUnknown = 0, kInbound = 1, kOutbound = 2 };

void append_section(std::vector<std::byte>& out, std::string_view application);
/// Interfaces are numbered from 0 in the order in which they are appended. `snap`: bytes kept of a packet, 0
/// for all.
void append_interface(std::vector<std::byte>& out, LinkType type, std::string_view name, std::uint32_t snap);
/// `bytes` is what was kept of a packet of `length` bytes.
void append_packet(std::vector<std::byte>& out, std::uint32_t interface, std::uint64_t time_ns,
                   std::span<const std::byte> bytes, std::uint32_t length, CaptureDirection direction);
/// What the capture of an interface has seen and lost so far.
void append_statistics(std::vector<std::byte>& out, std::uint32_t interface, std::uint64_t time_ns,
                       std::uint64_t received, std::uint64_t dropped);

}  // namespace uib::net
