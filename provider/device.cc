#include "provider/device.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "provider/context.h"

namespace uib::provider {
namespace {

constexpr unsigned kCapabilities =
    IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_SYS_IMAGE_GUID |
    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_MGT_EXTENSIONS |
    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_CURR_QP_STATE_MOD |
    IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_XRC | IBV_DEVICE_AUTO_PATH_MIG;
/// Of the extended word alone. The kernel's header has a name for the bit, libibverbs 44 has none.
constexpr std::uint64_t kDeviceAtomicWrite = std::uint64_t{1} << 40;

constexpr std::uint32_t kOdpUd = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
constexpr std::uint32_t kOdpUc = kOdpUd | IBV_ODP_SUPPORT_WRITE;
constexpr std::uint32_t kOdpRc = kOdpUc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

/// Completion timestamps are nanoseconds; the manual wants the clock's rate in kHz.
constexpr std::uint64_t kClockKhz = 1'000'000;

int to_int(std::uint32_t value) {
    return static_cast<int>(std::min<std::uint32_t>(value, INT32_MAX));
}

ibv_device_attr to_basic(const ipc::DeviceLimits& limits) {
    ibv_device_attr to{};
    std::memcpy(to.fw_ver, limits.fw_ver, sizeof to.fw_ver - 1);
    to.node_guid = htobe64(limits.node_guid);
    to.sys_image_guid = htobe64(limits.sys_image_guid);
    to.max_mr_size = limits.max_mr_size;
    to.page_size_cap = limits.page_size_cap;
    to.vendor_id = limits.vendor_id;
    to.vendor_part_id = limits.vendor_part_id;
    to.hw_ver = limits.hw_ver;
    to.max_qp = to_int(limits.max_qp);
    to.max_qp_wr = to_int(limits.max_qp_wr);
    to.device_cap_flags = kCapabilities;
    to.max_sge = to_int(limits.max_sge);
    to.max_sge_rd = to_int(limits.max_sge_rd);
    to.max_cq = to_int(limits.max_cq);
    to.max_cqe = to_int(limits.max_cqe);
    to.max_mr = to_int(limits.max_mr);
    to.max_pd = to_int(limits.max_pd);
    to.max_qp_rd_atom = to_int(limits.max_qp_rd_atom);
    to.max_res_rd_atom = to_int(limits.max_res_rd_atom);
    to.max_qp_init_rd_atom = to_int(limits.max_qp_init_rd_atom);
    to.atomic_cap = IBV_ATOMIC_HCA;
    to.max_mw = to_int(limits.max_mw);
    to.max_mcast_grp = to_int(limits.max_mcast_grp);
    to.max_mcast_qp_attach = to_int(limits.max_mcast_qp_attach);
    const std::uint64_t attachments = std::uint64_t{limits.max_mcast_grp} * limits.max_mcast_qp_attach;
    to.max_total_mcast_qp_attach = static_cast<int>(std::min<std::uint64_t>(attachments, INT32_MAX));
    to.max_ah = to_int(limits.max_ah);
    to.max_srq = to_int(limits.max_srq);
    to.max_srq_wr = to_int(limits.max_srq_wr);
    to.max_srq_sge = to_int(limits.max_srq_sge);
    to.max_pkeys = limits.max_pkeys;
    to.local_ca_ack_delay = static_cast<std::uint8_t>(limits.local_ca_ack_delay);
    to.phys_port_cnt = static_cast<std::uint8_t>(std::min<unsigned>(limits.ports, UINT8_MAX));
    return to;
}

}  // namespace

int query_device_ex(ibv_context* verbs, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t size) {
    if (input != nullptr && input->comp_mask != 0) return EINVAL;
    Context& context = Context::of(verbs);
    if (context.dead()) return EIO;
    const ipc::DeviceLimits& limits = context.limits();
    ibv_device_attr_ex all{};
    all.orig_attr = to_basic(limits);
    // Only raw packet queue pairs have flow rules, and only Ethernet ports have those.
    if (context.port(1).link_layer.load(std::memory_order_relaxed) == IBV_LINK_LAYER_ETHERNET)
        all.orig_attr.device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
    all.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    all.odp_caps.per_transport_caps = {kOdpRc, kOdpUc, kOdpUd};
    all.xrc_odp_caps = kOdpRc;
    all.completion_timestamp_mask = UINT64_MAX;
    all.hca_core_clock = kClockKhz;
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags | kDeviceAtomicWrite;
    all.cq_mod_caps = {UINT16_MAX, UINT16_MAX};
    all.max_dm_size = limits.max_dm_size;
    // No raw packet capability: frames are delivered as they are, checksums unchecked and tags in place.
    all.max_wq_type_rq = limits.max_wq;
    if (limits.max_rwq_tables != 0)
        all.rss_caps = {1U << IBV_QPT_RAW_PACKET, limits.max_rwq_tables, limits.max_rwq_table_entries,
                        limits.rx_hash_fields, IBV_RX_HASH_FUNC_TOEPLITZ};
    all.phys_port_cnt_ex = limits.ports;
    std::memset(attributes, 0, size);
    std::memcpy(attributes, &all, std::min(size, sizeof all));
    return 0;
}

int query_port(ibv_context* verbs, std::uint8_t port, ibv_port_attr* to) {
    ipc::PortAttributes from{};
    if (const int error = Context::of(verbs).query_port(port, from); error != 0) return error;
    to->state = static_cast<ibv_port_state>(from.state);
    to->max_mtu = static_cast<ibv_mtu>(from.max_mtu);
    to->active_mtu = static_cast<ibv_mtu>(from.active_mtu);
    to->gid_tbl_len = to_int(from.gid_table_length);
    to->port_cap_flags = from.port_cap_flags;
    to->max_msg_sz = from.max_msg_sz;
    to->bad_pkey_cntr = from.bad_pkey_counter;
    to->qkey_viol_cntr = from.qkey_violation_counter;
    to->pkey_tbl_len = from.pkey_table_length;
    to->lid = from.lid;
    to->sm_lid = from.sm_lid;
    to->lmc = from.lmc;
    to->max_vl_num = from.max_vl_num;
    to->sm_sl = from.sm_sl;
    to->subnet_timeout = from.subnet_timeout;
    to->init_type_reply = from.init_type_reply;
    to->active_width = from.active_width;
    to->active_speed = from.active_speed;
    to->phys_state = from.phys_state;
    to->link_layer = from.link_layer;
    if (from.link_layer == IBV_LINK_LAYER_ETHERNET) to->flags = IBV_QPF_GRH_REQUIRED;
    to->port_cap_flags2 = from.port_cap_flags2;
    return 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
    const std::uint32_t wanted = values->comp_mask;
    values->comp_mask = 0;
    if ((wanted & ~static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK)) != 0) return EINVAL;
    if ((wanted & IBV_VALUES_MASK_RAW_CLOCK) == 0) return 0;
    timespec now{};
    if (::clock_gettime(CLOCK_MONOTONIC, &now) != 0) return errno;
    // The convention of other adapters: all of the clock, in the unit of completion timestamps, is in
    // tv_nsec.
    values->raw_clock = {0, now.tv_sec * 1'000'000'000 + now.tv_nsec};
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return 0;
}

}  // namespace uib::provider
