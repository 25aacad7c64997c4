// Control messages about the device and its port.
#pragma once

#include <cstdint>

namespace uib::ipc {

inline constexpr std::uint32_t kGidTableSize = 16;

struct DeviceLimits {
    std::uint64_t max_mr_size;
    std::uint64_t page_size_cap;
    std::uint32_t vendor_id;
    std::uint32_t vendor_part_id;
    std::uint32_t hw_ver;
    std::uint32_t max_qp;
    std::uint32_t max_qp_wr;
    std::uint32_t max_sge;
    std::uint32_t max_sge_rd;
    std::uint32_t max_inline;
    std::uint32_t max_cq;
    std::uint32_t max_cqe;
    std::uint32_t max_mr;
    std::uint32_t max_pd;
    std::uint32_t max_mw;
    std::uint32_t max_qp_rd_atom;
    std::uint32_t max_res_rd_atom;
    std::uint32_t max_qp_init_rd_atom;
    std::uint32_t max_mcast_grp;
    std::uint32_t max_mcast_qp_attach;
    std::uint32_t max_ah;
    std::uint32_t max_srq;
    std::uint32_t max_srq_wr;
    std::uint32_t max_srq_sge;
    std::uint32_t local_ca_ack_delay;
    std::uint16_t max_pkeys;
    std::uint16_t ports;
    std::uint64_t max_dm_size;
    std::uint32_t max_wq;  ///< this and the next three: 0 without receive side scaling
    std::uint32_t max_rwq_tables;
    std::uint32_t max_rwq_table_entries;
    std::uint32_t rx_hash_fields;  ///< HashFields (control_rss.h)
    std::uint64_t node_guid;       ///< host order
    std::uint64_t sys_image_guid;
    char fw_ver[64];
};

struct QueryPortRequest {
    std::uint32_t port;
    std::uint32_t reserved;
};
struct PortAttributes {
    std::uint32_t state;  ///< ibv_port_state
    std::uint32_t max_mtu;
    std::uint32_t active_mtu;
    std::uint32_t gid_table_length;
    std::uint32_t port_cap_flags;
    std::uint32_t max_msg_sz;
    std::uint32_t bad_pkey_counter;
    std::uint32_t qkey_violation_counter;
    std::uint16_t pkey_table_length;
    std::uint16_t lid;
    std::uint16_t sm_lid;
    std::uint16_t port_cap_flags2;
    std::uint8_t lmc;
    std::uint8_t max_vl_num;
    std::uint8_t sm_sl;
    std::uint8_t subnet_timeout;
    std::uint8_t init_type_reply;
    std::uint8_t active_width;
    std::uint8_t active_speed;
    std::uint8_t phys_state;
    std::uint8_t link_layer;
    std::uint8_t reserved[3];
    std::uint32_t active_speed_ex;
    std::uint8_t gids[kGidTableSize][16];  ///< gid_table_length entries are valid
    std::uint16_t pkeys[16];
};

}  // namespace uib::ipc
