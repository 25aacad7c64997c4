#include "engine/verbs/device.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "engine/ipc/control_rss.h"
#include "net/wire/gid.h"

namespace uib::verbs {

namespace {

/// Locally administered: no vendor's. SPDK and others treat 0 and 0xFFFFFF specially, so neither is used.
constexpr std::uint32_t kVendorId = 0x025549;
constexpr std::uint8_t kMtu4096 = 5;    // IBV_MTU_4096
constexpr std::uint8_t kWidth4x = 2;    // IBV_WIDTH_4X
constexpr std::uint8_t kSpeedEdr = 32;  // 25 Gb/s a lane
constexpr std::uint8_t kPhysLinkUp = 5;
constexpr std::uint8_t kPhysPolling = 2;
constexpr std::uint32_t kPortDown = 1;    // IBV_PORT_DOWN
constexpr std::uint32_t kPortActive = 4;  // IBV_PORT_ACTIVE
constexpr std::uint32_t kCapExtendedSpeeds = 1 << 14;
constexpr std::uint64_t kLinkLocalPrefix = 0xFE80000000000000;

/// EUI-64 with the locally administered bit set; stable across restarts as device names and indices are.
constexpr std::uint64_t guid_of(std::uint16_t engine, std::uint32_t index) {
    return 0x0255'4900'0000'0000ULL | std::uint64_t{engine} << 24 | (index + 1);
}

/// Locally administered like the GUID.
constexpr net::MacAddress mac_of(std::uint32_t index) {
    const std::uint32_t number = index + 1;
    return {0x02,
            0x55,
            0x49,
            static_cast<std::uint8_t>(number >> 16),
            static_cast<std::uint8_t>(number >> 8),
            static_cast<std::uint8_t>(number)};
}

/// The interface identifier of a MAC address (RFC 4291, appendix A).
constexpr std::uint64_t eui64_of(const net::MacAddress& mac) {
    std::uint64_t id = 0;
    for (const std::uint8_t byte : {static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], std::uint8_t{0xFF},
                                    std::uint8_t{0xFE}, mac[3], mac[4], mac[5]})
        id = id << 8 | byte;
    return id;
}

}  // namespace

Device::Device(DeviceConfig config, std::uint32_t index, net::Lid lid, net::InternalSwitch& fabric,
               std::uint8_t subnet)
    : static_rate(transport::port_mbps(kWidth4x, kSpeedEdr)),
      config_(std::move(config)),
      index_(index),
      lid_(lid),
      subnet_number_(subnet),
      guid_(guid_of(config_.engine, index)),
      mac_(mac_of(index)),
      fabric_(fabric),
      port_(ethernet() ? fabric.add_port(lid) : fabric.add_port()),
      gids_(Limits::kGids),
      pkeys_{0xFFFF} {
    gids_[0] = net::gid_of(kLinkLocalPrefix, ethernet() ? eui64_of(mac_) : guid_);
}

void Device::attach(std::unique_ptr<net::Uplink> uplink) {
    uplink_ = std::move(uplink);
    if (ethernet()) {
        mac_ = uplink_->mac();
        guid_ = eui64_of(mac_);
        follow_gids();
    }
}

void Device::follow_subnet(const management::NodePort& port) {
    const management::PortInfo& info = port.info;
    subnet_ = {static_cast<net::Lid>(info.lid),
               static_cast<net::Lid>(info.master_sm_lid),
               static_cast<std::uint8_t>(info.lmc),
               static_cast<std::uint8_t>(info.master_sm_sl),
               static_cast<std::uint8_t>(info.subnet_timeout),
               static_cast<std::uint8_t>(info.port_state),
               static_cast<std::uint8_t>(info.neighbor_mtu),
               static_cast<std::uint32_t>(info.capability_mask),
               port.reregistrations};
    for (std::size_t i = 0; i < std::min(gids_.size(), port.guids.size()); ++i)
        gids_[i] = port.guids[i] == 0 ? net::Gid{} : net::gid_of(info.gid_prefix, port.guids[i]);
    // Connections look at the entries in place.
    std::copy_n(port.pkeys.begin(), std::min(port.pkeys.size(), pkeys_.size()), pkeys_.begin());
}

// Entry 0 is the link-local address's, as for the kernel's devices, so that the others have the same entries
// whichever the host tells first after an interface has come back.
void Device::follow_gids() {
    const std::vector<net::Gid> wanted = uplink_->gids();
    const auto has = [](const auto& list, const net::Gid& gid) {
        return std::find(list.begin(), list.end(), gid) != list.end();
    };
    for (net::Gid& gid : gids_)
        if (!has(wanted, gid)) gid = {};
    for (const net::Gid& gid : wanted) {
        if (has(gids_, gid)) continue;
        const auto first = gids_.begin() + (net::is_link_local(gid) ? 0 : 1);
        const auto free = std::find(first, gids_.end(), net::Gid{});
        if (free == gids_.end()) break;  // the table is full: the first addresses count
        *free = gid;
    }
}

namespace {

/// Code of the largest IB MTU: IBV_MTU_256 is 1. A port without room for any shows the smallest.
std::uint8_t mtu_code(std::uint32_t bytes) {
    return static_cast<std::uint8_t>(std::bit_width(std::max(bytes, 256U) >> 8));
}

}  // namespace

ipc::DeviceLimits Device::limits() const {
    ipc::DeviceLimits limits{};
    limits.max_mr_size = ~std::uint64_t{0};
    limits.page_size_cap = 0xFFFFF000;
    limits.vendor_id = kVendorId;
    limits.vendor_part_id = 1;
    limits.hw_ver = 1;
    limits.max_qp = Limits::kMaxQp;
    limits.max_qp_wr = Limits::kMaxQpWr;
    limits.max_sge = Limits::kMaxSge;
    limits.max_sge_rd = Limits::kMaxSge;
    limits.max_inline = Limits::kMaxInline;
    limits.max_cq = Limits::kMaxCq;
    limits.max_cqe = Limits::kMaxCqe;
    limits.max_mr = Limits::kMaxMr;
    limits.max_pd = Limits::kMaxPd;
    limits.max_mw = Limits::kMaxMw;
    limits.max_qp_rd_atom = Limits::kMaxRdAtomic;
    limits.max_res_rd_atom = Limits::kMaxRdAtomic * Limits::kMaxQp;
    limits.max_qp_init_rd_atom = Limits::kMaxRdAtomic;
    limits.max_mcast_grp = Limits::kMaxMulticastGroups;
    limits.max_mcast_qp_attach = Limits::kMaxMulticastQps;
    limits.max_ah = Limits::kMaxAh;
    limits.max_srq = Limits::kMaxSrq;
    limits.max_srq_wr = Limits::kMaxSrqWr;
    limits.max_srq_sge = Limits::kMaxSge;
    limits.local_ca_ack_delay = 15;
    limits.max_pkeys = static_cast<std::uint16_t>(pkeys_.size());
    limits.ports = 1;
    limits.max_dm_size = Limits::kMaxDm;
    if (ethernet()) {
        limits.max_wq = Limits::kMaxWq;
        limits.max_rwq_tables = Limits::kMaxRwqTables;
        limits.max_rwq_table_entries = ipc::kMaxRwqTableEntries;
        limits.rx_hash_fields = ipc::kAllHashFields;
    }
    limits.node_guid = guid_;
    limits.sys_image_guid = guid_of(config_.engine, 0);
    std::snprintf(limits.fw_ver, sizeof limits.fw_ver, "%s", UIB_VERSION);
    return limits;
}

ipc::PortAttributes Device::port_attributes() const {
    ipc::PortAttributes port{};
    port.state = active() ? kPortActive : kPortDown;
    if (!ethernet()) port.state = subnet_.state;
    port.max_mtu = kMtu4096;
    port.active_mtu = ethernet() ? kMtu4096 : subnet_.mtu;
    if (uplink_ != nullptr) port.active_mtu = mtu_code(uplink_->mtu());
    port.gid_table_length = Limits::kGids;
    port.port_cap_flags = kCapExtendedSpeeds;
    port.max_msg_sz = 1U << 31;
    port.bad_pkey_counter = static_cast<std::uint32_t>(counters().bad_pkey);
    port.qkey_violation_counter = static_cast<std::uint32_t>(counters().qkey_violations);
    port.pkey_table_length = static_cast<std::uint16_t>(pkeys_.size());
    if (!ethernet()) {
        port.lid = subnet_.lid;
        port.lmc = subnet_.lmc;
        port.sm_lid = subnet_.sm_lid;
        port.sm_sl = subnet_.sm_sl;
        port.subnet_timeout = subnet_.subnet_timeout;
        port.port_cap_flags = subnet_.capabilities;
    }
    port.max_vl_num = 1;
    port.active_width = kWidth4x;
    port.active_speed = kSpeedEdr;
    port.active_speed_ex = kSpeedEdr;
    port.phys_state = active() ? kPhysLinkUp : kPhysPolling;
    port.link_layer = static_cast<std::uint8_t>(config_.link_layer);
    for (std::size_t i = 0; i < gids_.size(); ++i) std::copy(gids_[i].begin(), gids_[i].end(), port.gids[i]);
    std::copy(pkeys_.begin(), pkeys_.end(), port.pkeys);
    return port;
}

}  // namespace uib::verbs
