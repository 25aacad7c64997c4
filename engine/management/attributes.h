// The attributes that subnet management reads and sets, as values (IBA 14.2.5).
#pragma once

#include <array>
#include <cstdint>

#include "engine/management/components.h"
#include "net/wire/packet.h"

namespace uib::management {

enum class AttributeId : std::uint16_t {
    kNotice = 0x0002,
    kNodeDescription = 0x0010,
    kNodeInfo = 0x0011,
    kSwitchInfo = 0x0012,
    kGuidInfo = 0x0014,
    kPortInfo = 0x0015,
    kPkeyTable = 0x0016,
    kSlToVlMappingTable = 0x0017,
    kVlArbitrationTable = 0x0018,
    kLinearForwardingTable = 0x0019,
    kMulticastForwardingTable = 0x001B,
    kSmInfo = 0x0020,
};

inline constexpr std::size_t kGuidsInBlock = 8;
inline constexpr std::size_t kPkeysInBlock = 32;
inline constexpr std::size_t kVlArbitrationEntries = 32;  ///< of a block
inline constexpr std::size_t kServiceLevels = 16;
inline constexpr net::Lid kUnicastLidLast = 0xBFFF;

inline constexpr Number kNodeIsCa = 1;
inline constexpr Number kNodeIsSwitch = 2;
inline constexpr Number kNodeIsRouter = 3;

struct NodeInfo {  // 14.2.5.3
    Number base_version = 1;
    Number class_version = 1;
    Number type = kNodeIsCa;
    Number ports = 1;  ///< physical ones, without port 0
    Number system_image_guid = 0;
    Number node_guid = 0;
    Number port_guid = 0;
    Number partition_cap = 1;
    Number device_id = 1;
    Number revision = 1;
    Number local_port = 0;  ///< through which the SMP came
    Number vendor_id = 0;
};

struct SwitchInfo {  // 14.2.5.4
    Number linear_cap = 0;
    Number random_cap = 0;
    Number multicast_cap = 0;
    Number linear_top = 0;
    Number default_port = 0;
    Number default_multicast_primary = 0xFF;
    Number default_multicast_other = 0xFF;
    Number life_time = 0;  ///< 4.096 us * 2^n; above 19: for ever
    Number port_state_change = 0;
    Number optimized_sl_to_vl = 0;
    Number lids_per_port = 0;
    Number partition_enforcement_cap = 0;
    Number enforcement = 0;  ///< bits: inbound, outbound, raw inbound, raw outbound, enhanced port 0
    Number multicast_top = 0;
};

// PortState and PortPhysicalState.
inline constexpr Number kStateNoChange = 0;
inline constexpr Number kStateDown = 1;
inline constexpr Number kStateInitialize = 2;
inline constexpr Number kStateArmed = 3;
inline constexpr Number kStateActive = 4;
inline constexpr Number kPhysicalPolling = 2;
inline constexpr Number kPhysicalDisabled = 3;
inline constexpr Number kPhysicalLinkUp = 5;

// CapabilityMask.
inline constexpr Number kIsSm = 1U << 1;
inline constexpr Number kIsTrapSupported = 1U << 3;
inline constexpr Number kIsSlMapping = 1U << 6;
inline constexpr Number kIsSystemImageGuid = 1U << 11;
inline constexpr Number kIsExtendedSpeeds = 1U << 14;
inline constexpr Number kIsClientReregistration = 1U << 25;

inline constexpr Number kDefaultGidPrefix = 0xFE80000000000000;

struct PortInfo {  // 14.2.5.6
    Number mkey = 0;
    Number gid_prefix = kDefaultGidPrefix;
    Number lid = 0;
    Number master_sm_lid = 0;
    Number capability_mask = 0;
    Number diag_code = 0;
    Number mkey_lease_period = 0;  ///< seconds; 0: for ever
    Number local_port = 0;
    Number link_width_enabled = 3;
    Number link_width_supported = 3;
    Number link_width_active = 2;
    Number link_speed_supported = 7;
    Number port_state = kStateDown;
    Number physical_state = kPhysicalPolling;
    Number link_down_default = 2;
    Number mkey_protect = 0;
    Number lmc = 0;
    Number link_speed_active = 4;
    Number link_speed_enabled = 7;
    Number neighbor_mtu = 1;
    Number master_sm_sl = 0;
    Number vl_cap = 1;  ///< code: 1, 2, 4, 8, 15 data VLs
    Number init_type = 0;
    Number vl_high_limit = 0;
    Number vl_arbitration_high_cap = 0;
    Number vl_arbitration_low_cap = 0;
    Number init_type_reply = 0;
    Number mtu_cap = 5;
    Number vl_stall_count = 0;
    Number hoq_life = 19;
    Number operational_vls = 1;  ///< code like vl_cap
    Number enforce_inbound = 0;
    Number enforce_outbound = 0;
    Number filter_raw_inbound = 0;
    Number filter_raw_outbound = 0;
    Number mkey_violations = 0;
    Number pkey_violations = 0;
    Number qkey_violations = 0;
    Number guid_cap = 0;
    Number client_reregister = 0;
    Number multicast_pkey_suppression = 0;
    Number subnet_timeout = 18;
    Number response_time = 16;
    Number local_phy_errors = 8;
    Number overrun_errors = 8;
    Number max_credit_hint = 0;
    Number round_trip_latency = 0;
    Number capability_mask2 = 0;
    Number link_speed_ext_active = 2;
    Number link_speed_ext_supported = 2;
    Number link_speed_ext_enabled = 2;
};

/// Data VLs that VLCap or OperationalVLs code stands for; 0 for codes that mean none.
constexpr unsigned data_vls(Number code) {
    constexpr std::array<unsigned, 6> kVls = {0, 1, 2, 4, 8, 15};
    return code < kVls.size() ? kVls[code] : 0;
}

enum class SmState : std::uint8_t { kNotActive, kDiscovering, kStandby, kMaster };
/// Attribute modifiers of Set(SMInfo) (14.4).
inline constexpr std::uint32_t kSmHandover = 1;
inline constexpr std::uint32_t kSmAcknowledge = 2;
inline constexpr std::uint32_t kSmDisable = 3;
inline constexpr std::uint32_t kSmStandby = 4;
inline constexpr std::uint32_t kSmDiscover = 5;

struct SmInfo {  // 14.2.5.13
    Number guid = 0;
    Number sm_key = 0;
    Number act_count = 0;
    Number priority = 0;
    Number state = 0;
    [[nodiscard]] SmState sm_state() const { return static_cast<SmState>(state); }
};

struct VlWeight {
    std::uint8_t vl = 0;
    std::uint8_t weight = 0;  ///< units of 64 bytes
    bool operator==(const VlWeight&) const = default;
};
using SlToVl = std::array<std::uint8_t, kServiceLevels>;
using VlArbitrationBlock = std::array<VlWeight, kVlArbitrationEntries>;

void encode(const NodeInfo& info, Data out);
void encode(const SwitchInfo& info, Data out);
void encode(const PortInfo& info, Data out);
void encode(const SmInfo& info, Data out);
void encode(const SlToVl& table, Data out);
void encode(const VlArbitrationBlock& block, Data out);
NodeInfo decode_node_info(ConstData in);
SwitchInfo decode_switch_info(ConstData in);
PortInfo decode_port_info(ConstData in);
SmInfo decode_sm_info(ConstData in);
SlToVl decode_sl_to_vl(ConstData in);
VlArbitrationBlock decode_vl_arbitration(ConstData in);

/// Where each component of PortInfo lies, and who may set it.
std::span<const Component<PortInfo>> port_info_components();

}  // namespace uib::management
