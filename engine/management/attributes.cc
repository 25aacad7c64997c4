#include "engine/management/attributes.h"

#include <algorithm>

namespace uib::management {
namespace {

/// Bit `bit` (7 is the most significant) of byte `byte`.
constexpr std::uint16_t at(unsigned byte, unsigned bit = 7) {
    return static_cast<std::uint16_t>(byte * 8 + 7 - bit);
}

constexpr Component<NodeInfo> kNodeInfo[] = {
    {&NodeInfo::base_version, at(0), 8},
    {&NodeInfo::class_version, at(1), 8},
    {&NodeInfo::type, at(2), 8},
    {&NodeInfo::ports, at(3), 8},
    {&NodeInfo::system_image_guid, at(4), 64},
    {&NodeInfo::node_guid, at(12), 64},
    {&NodeInfo::port_guid, at(20), 64},
    {&NodeInfo::partition_cap, at(28), 16},
    {&NodeInfo::device_id, at(30), 16},
    {&NodeInfo::revision, at(32), 32},
    {&NodeInfo::local_port, at(36), 8},
    {&NodeInfo::vendor_id, at(37), 24},
};

constexpr Component<SwitchInfo> kSwitchInfo[] = {
    {&SwitchInfo::linear_cap, at(0), 16},
    {&SwitchInfo::random_cap, at(2), 16},
    {&SwitchInfo::multicast_cap, at(4), 16},
    {&SwitchInfo::linear_top, at(6), 16},
    {&SwitchInfo::default_port, at(8), 8},
    {&SwitchInfo::default_multicast_primary, at(9), 8},
    {&SwitchInfo::default_multicast_other, at(10), 8},
    {&SwitchInfo::life_time, at(11), 5},
    {&SwitchInfo::port_state_change, at(11, 2), 1},
    {&SwitchInfo::optimized_sl_to_vl, at(11, 1), 2},
    {&SwitchInfo::lids_per_port, at(12), 16},
    {&SwitchInfo::partition_enforcement_cap, at(14), 16},
    {&SwitchInfo::enforcement, at(16), 5},
    {&SwitchInfo::multicast_top, at(18), 16},
};

constexpr std::uint8_t kEnd = kSetAtEnd;
constexpr std::uint8_t kBoth = kSetAtEnd | kSetAtExternal | kOfLink;
constexpr std::uint8_t kExternal = kSetAtExternal;

constexpr Component<PortInfo> kPortInfo[] = {
    {&PortInfo::mkey, at(0), 64, kEnd},
    {&PortInfo::gid_prefix, at(8), 64, kEnd},
    {&PortInfo::lid, at(16), 16, kEnd},
    {&PortInfo::master_sm_lid, at(18), 16, kEnd},
    {&PortInfo::capability_mask, at(20), 32},
    {&PortInfo::diag_code, at(24), 16},
    {&PortInfo::mkey_lease_period, at(26), 16, kEnd},
    {&PortInfo::local_port, at(28), 8},
    {&PortInfo::link_width_enabled, at(29), 8, kBoth},
    {&PortInfo::link_width_supported, at(30), 8},
    {&PortInfo::link_width_active, at(31), 8},
    {&PortInfo::link_speed_supported, at(32), 4},
    {&PortInfo::port_state, at(32, 3), 4, kBoth},
    {&PortInfo::physical_state, at(33), 4, kBoth},
    {&PortInfo::link_down_default, at(33, 3), 4, kBoth},
    {&PortInfo::mkey_protect, at(34), 2, kEnd},
    {&PortInfo::lmc, at(34, 2), 3, kEnd},
    {&PortInfo::link_speed_active, at(35), 4},
    {&PortInfo::link_speed_enabled, at(35, 3), 4, kBoth},
    {&PortInfo::neighbor_mtu, at(36), 4, kBoth},
    {&PortInfo::master_sm_sl, at(36, 3), 4, kEnd},
    {&PortInfo::vl_cap, at(37), 4},
    {&PortInfo::init_type, at(37, 3), 4, kEnd},
    {&PortInfo::vl_high_limit, at(38), 8, kBoth},
    {&PortInfo::vl_arbitration_high_cap, at(39), 8},
    {&PortInfo::vl_arbitration_low_cap, at(40), 8},
    {&PortInfo::init_type_reply, at(41), 4},
    {&PortInfo::mtu_cap, at(41, 3), 4},
    {&PortInfo::vl_stall_count, at(42), 3, kExternal},
    {&PortInfo::hoq_life, at(42, 4), 5, kExternal},
    {&PortInfo::operational_vls, at(43), 4, kBoth},
    {&PortInfo::enforce_inbound, at(43, 3), 1, kExternal},
    {&PortInfo::enforce_outbound, at(43, 2), 1, kExternal},
    {&PortInfo::filter_raw_inbound, at(43, 1), 1, kExternal},
    {&PortInfo::filter_raw_outbound, at(43, 0), 1, kExternal},
    {&PortInfo::mkey_violations, at(44), 16, kEnd},
    {&PortInfo::pkey_violations, at(46), 16, kEnd | kExternal},
    {&PortInfo::qkey_violations, at(48), 16, kEnd},
    {&PortInfo::guid_cap, at(50), 8},
    {&PortInfo::client_reregister, at(51), 1, kEnd},
    {&PortInfo::multicast_pkey_suppression, at(51, 6), 2, kEnd},
    {&PortInfo::subnet_timeout, at(51, 4), 5, kEnd},
    {&PortInfo::response_time, at(52, 4), 5},
    {&PortInfo::local_phy_errors, at(53), 4, kBoth},
    {&PortInfo::overrun_errors, at(53, 3), 4, kBoth},
    {&PortInfo::max_credit_hint, at(54), 16},
    {&PortInfo::round_trip_latency, at(57), 24},
    {&PortInfo::capability_mask2, at(60), 16},
    {&PortInfo::link_speed_ext_active, at(62), 4},
    {&PortInfo::link_speed_ext_supported, at(62, 3), 4},
    {&PortInfo::link_speed_ext_enabled, at(63, 4), 5, kBoth},
};

constexpr Component<SmInfo> kSmInfoComponents[] = {
    {&SmInfo::guid, at(0), 64},     {&SmInfo::sm_key, at(8), 64},   {&SmInfo::act_count, at(16), 32},
    {&SmInfo::priority, at(20), 4}, {&SmInfo::state, at(20, 3), 4},
};

}  // namespace

std::span<const Component<PortInfo>> port_info_components() {
    return kPortInfo;
}

void encode(const NodeInfo& info, Data out) {
    encode(kNodeInfo, info, out);
}

void encode(const SwitchInfo& info, Data out) {
    encode(kSwitchInfo, info, out);
}

void encode(const PortInfo& info, Data out) {
    encode(kPortInfo, info, out);
}

void encode(const SmInfo& info, Data out) {
    encode(kSmInfoComponents, info, out);
}

void encode(const SlToVl& table, Data out) {
    for (unsigned sl = 0; sl < table.size(); ++sl) write_bits(out, sl * 4, 4, table[sl]);
}

void encode(const VlArbitrationBlock& block, Data out) {
    for (std::size_t i = 0; i < block.size(); ++i) {
        out[2 * i] = std::byte{block[i].vl};
        out[2 * i + 1] = std::byte{block[i].weight};
    }
}

NodeInfo decode_node_info(ConstData in) {
    return decode(kNodeInfo, in);
}

SwitchInfo decode_switch_info(ConstData in) {
    return decode(kSwitchInfo, in);
}

PortInfo decode_port_info(ConstData in) {
    return decode(kPortInfo, in);
}

SmInfo decode_sm_info(ConstData in) {
    return decode(kSmInfoComponents, in);
}

SlToVl decode_sl_to_vl(ConstData in) {
    SlToVl table{};
    for (unsigned sl = 0; sl < table.size(); ++sl)
        table[sl] = static_cast<std::uint8_t>(read_bits(in, sl * 4, 4));
    return table;
}

VlArbitrationBlock decode_vl_arbitration(ConstData in) {
    VlArbitrationBlock block{};
    for (std::size_t i = 0; i < block.size(); ++i)
        block[i] = {static_cast<std::uint8_t>(in[2 * i] & std::byte{0x0F}),
                    std::to_integer<std::uint8_t>(in[2 * i + 1])};
    return block;
}

}  // namespace uib::management
