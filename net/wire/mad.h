// Management datagrams: the header that all have in common (IBA 13.4.3), and subnet management packets
// (14.2.1).
//
// A MAD is always 256 bytes. parse_*() checks only what would make the fields meaningless; a version, method
// or attribute that is not supported gets an answer, so the agents judge those.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace uib::net {

inline constexpr std::size_t kMadBytes = 256;
inline constexpr std::size_t kMadHeaderBytes = 24;
inline constexpr std::size_t kSmpDataBytes = 64;
/// Entries of a path; entry 0 is unused, so a path has 63 hops at most.
inline constexpr std::size_t kSmpPathEntries = 64;
inline constexpr std::uint8_t kMadBaseVersion = 1;

/// Management classes (13.4.4).
inline constexpr std::uint8_t kClassSubnLidRouted = 0x01;
inline constexpr std::uint8_t kClassSubnAdministration = 0x03;
inline constexpr std::uint8_t kClassPerformance = 0x04;
inline constexpr std::uint8_t kClassCommunication = 0x07;
inline constexpr std::uint8_t kClassSubnDirected = 0x81;

/// Methods (13.4.5); bit 7 marks responses.
enum class MadMethod : std::uint8_t {
    kGet = 0x01,
    kSet = 0x02,
    kSend = 0x03,
    kTrap = 0x05,
    kReport = 0x06,
    kTrapRepress = 0x07,
    kGetTable = 0x12,
    kDelete = 0x15,
    kGetResponse = 0x81,
    kReportResponse = 0x86,
    kGetTableResponse = 0x92,
    kDeleteResponse = 0x95,
};

/// Statuses of a response (13.4.7).
inline constexpr std::uint16_t kMadBusy = 0x0001;
inline constexpr std::uint16_t kMadRedirect = 0x0002;
inline constexpr std::uint16_t kMadBadVersion = 0x0004;
inline constexpr std::uint16_t kMadMethodNotSupported = 0x0008;
inline constexpr std::uint16_t kMadAttributeNotSupported = 0x000C;
inline constexpr std::uint16_t kMadInvalidValue = 0x001C;

struct MadHeader {
    std::uint8_t base_version = kMadBaseVersion;
    std::uint8_t management_class = 0;
    std::uint8_t class_version = 1;
    MadMethod method = MadMethod::kGet;
    std::uint16_t status = 0;          ///< responses; of a directed route SMP without the D bit
    std::uint16_t class_specific = 0;  ///< bytes 6 and 7; of a directed route SMP see DirectedRoute
    std::uint64_t transaction_id = 0;
    std::uint16_t attribute_id = 0;
    std::uint32_t attribute_modifier = 0;

    [[nodiscard]] bool is_response() const { return (static_cast<unsigned>(method) & 0x80) != 0; }
};

/// What a directed route SMP has besides (14.2.1.2).
struct DirectedRoute {
    bool returning = false;        ///< D
    std::uint8_t hop_pointer = 0;  ///< may be anything when received
    std::uint8_t hop_count = 0;    ///< 63 at most
    std::uint16_t slid = 0xFFFF;   ///< DrSLID; permissive: the route is directed from its start
    std::uint16_t dlid = 0xFFFF;   ///< DrDLID; permissive: to its end
    std::array<std::uint8_t, kSmpPathEntries> initial_path{};
    std::array<std::uint8_t, kSmpPathEntries> return_path{};
};

struct Smp {
    MadHeader header;
    std::uint64_t mkey = 0;
    std::array<std::byte, kSmpDataBytes> data{};
    DirectedRoute route;  ///< class kClassSubnDirected only

    [[nodiscard]] bool is_directed() const { return header.management_class == kClassSubnDirected; }
};

/// Why bytes are no MAD; such a packet is dropped.
enum class MadError : std::uint8_t {
    kNone,
    kLength,    ///< not 256 bytes
    kClass,     ///< no subnet management class, where an SMP is expected
    kHopCount,  ///< of a directed route: more hops than a path has entries
};

const char* name_of(MadError error);
/// E.g. "GetResp"; nullptr for a method without a name here.
const char* name_of(MadMethod method);

void build_mad_header(const MadHeader& header, std::span<std::byte, kMadHeaderBytes> out);
MadHeader parse_mad_header(std::span<const std::byte, kMadHeaderBytes> in);

/// The header of a whole MAD, whatever its class.
MadError parse_mad(std::span<const std::byte> mad, MadHeader& out);

void build_smp(const Smp& smp, std::span<std::byte, kMadBytes> out);
MadError parse_smp(std::span<const std::byte> mad, Smp& out);

std::string describe(const MadHeader& header);
std::string describe(const Smp& smp);

}  // namespace uib::net
