// Datagrams of subnet administration (IBA 15.2.1) and the records in them that the engine uses. They fit one
// datagram each, so the RMPP header says nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/mad.h"
#include "net/wire/packet.h"

namespace uib::management {

inline constexpr std::uint8_t kAdministrationClassVersion = 2;
inline constexpr std::size_t kRecordBytes = 200;
inline constexpr std::uint16_t kMcMemberRecordId = 0x0038;

// Statuses of the class (15.2.3), in the upper byte of the header's.
inline constexpr std::uint16_t kSaNoResources = 0x0100;
inline constexpr std::uint16_t kSaInvalidRequest = 0x0200;
inline constexpr std::uint16_t kSaNoRecords = 0x0300;
inline constexpr std::uint16_t kSaInvalidGid = 0x0500;
inline constexpr std::uint16_t kSaInsufficientComponents = 0x0600;

struct AdministrationMad {
    net::MadHeader header{.management_class = net::kClassSubnAdministration,
                          .class_version = kAdministrationClassVersion};
    std::uint64_t sm_key = 0;
    std::uint64_t component_mask = 0;
    std::array<std::byte, kRecordBytes> data{};
};

void build_administration_mad(const AdministrationMad& mad, std::span<std::byte, net::kMadBytes> out);
/// kClass for another class.
net::MadError parse_administration_mad(std::span<const std::byte> bytes, AdministrationMad& out);

// JoinState.
inline constexpr std::uint8_t kFullMember = 1;
inline constexpr std::uint8_t kNonMember = 2;
inline constexpr std::uint8_t kSendOnlyMember = 4;

struct McMemberRecord {  // 15.2.5.17
    net::Gid group{};
    net::Gid port{};
    std::uint32_t qkey = 0;
    net::Lid mlid = 0;
    std::uint8_t mtu_selector = 0;  ///< kExactly and its like
    std::uint8_t mtu = 0;
    std::uint8_t traffic_class = 0;
    std::uint16_t pkey = 0;
    std::uint8_t rate_selector = 0;
    std::uint8_t rate = 0;
    std::uint8_t life_time_selector = 0;
    std::uint8_t life_time = 0;
    std::uint8_t sl = 0;
    std::uint32_t flow_label = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t scope = 0;
    std::uint8_t join_state = 0;
    bool proxy_join = false;
};
inline constexpr std::uint8_t kExactly = 2;

/// Bits of the component mask.
namespace mc_member {
inline constexpr std::uint64_t kGroup = 1U << 0;
inline constexpr std::uint64_t kPort = 1U << 1;
inline constexpr std::uint64_t kQkey = 1U << 2;
inline constexpr std::uint64_t kMlid = 1U << 3;
inline constexpr std::uint64_t kTrafficClass = 1U << 6;
inline constexpr std::uint64_t kPkey = 1U << 7;
inline constexpr std::uint64_t kSl = 1U << 12;
inline constexpr std::uint64_t kFlowLabel = 1U << 13;
inline constexpr std::uint64_t kJoinState = 1U << 16;
/// What a request must have to name a membership, and to make a group (15.2.5.17.2).
inline constexpr std::uint64_t kToName = kGroup | kPort | kJoinState;
inline constexpr std::uint64_t kToCreate = kToName | kQkey | kTrafficClass | kPkey | kSl | kFlowLabel;
}  // namespace mc_member

void encode(const McMemberRecord& record, std::span<std::byte, kRecordBytes> out);
McMemberRecord decode_mc_member_record(std::span<const std::byte, kRecordBytes> in);

}  // namespace uib::management
