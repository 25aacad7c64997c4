// Control messages about queue pairs.
#pragma once

#include <cstdint>

#include "engine/ipc/control_srq.h"

namespace uib::ipc {

enum class Service : std::uint32_t {
    kRc = 2,
    kUc = 3,
    kUd = 4,
    kRawPacket = 8,
    kXrcSend = 9,
    kXrcReceive = 10,
};  // as ibv_qp_type; reliable datagrams follow with their issue

struct CreateQpRequest {
    std::uint64_t user_handle;
    std::uint32_t pd;
    std::uint32_t send_cq;
    std::uint32_t recv_cq;
    std::uint32_t srq;  ///< handle + 1, or 0
    std::uint32_t service;
    std::uint32_t signal_all;
    std::uint32_t max_send_wr;
    std::uint32_t max_recv_wr;
    std::uint32_t max_send_sge;
    std::uint32_t max_recv_sge;
    std::uint32_t max_inline;
    std::uint32_t create_flags;
    std::uint32_t xrcd;  ///< kXrcReceive: handle + 1 of the domain (and no PD, CQs, SRQ)
    std::uint32_t reserved;
};
/// kOpenQp: a target QP of the domain, by number (ibv_open_qp). Reply QpReply without queues; the QP lives
/// until it is destroyed by every holder or its domain goes.
struct OpenQpRequest {
    std::uint64_t user_handle;
    std::uint32_t xrcd;  ///< handle of the domain
    std::uint32_t qp_number;
};
struct QpReply {
    std::uint32_t handle;
    std::uint32_t qp_number;
    std::uint32_t slot;  ///< doorbell slot, dense from 0 in the context
    std::uint32_t reserved;
    QueueLocation send;
    QueueLocation receive;  ///< entries 0 with an SRQ or without receives
};

/// Path of a connected QP or destination of a datagram, field for field ibv_ah_attr.
struct PathAttributes {
    std::uint8_t dgid[16];
    std::uint32_t flow_label;
    std::uint16_t dlid;
    std::uint8_t sgid_index;
    std::uint8_t hop_limit;
    std::uint8_t traffic_class;
    std::uint8_t sl;
    std::uint8_t source_path_bits;
    std::uint8_t static_rate;
    std::uint8_t is_global;
    std::uint8_t port;
    std::uint8_t reserved[2];
};
static_assert(sizeof(PathAttributes) == 32);

/// Field for field ibv_qp_attr; `mask` has ibv_qp_attr_mask's bits, `*state` ibv_qp_state's values, MTUs
/// ibv_mtu's.
struct QpAttributes {
    PathAttributes path;
    PathAttributes alternate_path;
    std::uint32_t qkey;
    std::uint32_t rq_psn;
    std::uint32_t sq_psn;
    std::uint32_t dest_qp_number;
    std::uint32_t access;
    std::uint32_t rate_limit;
    std::uint16_t pkey_index;
    std::uint16_t alternate_pkey_index;
    std::uint8_t state;
    std::uint8_t current_state;
    std::uint8_t path_mtu;
    std::uint8_t path_migration_state;
    std::uint8_t enable_sqd_event;
    std::uint8_t sq_draining;
    std::uint8_t max_rd_atomic;
    std::uint8_t max_dest_rd_atomic;
    std::uint8_t min_rnr_timer;
    std::uint8_t port;
    std::uint8_t timeout;
    std::uint8_t retry_count;
    std::uint8_t rnr_retry;
    std::uint8_t alternate_port;
    std::uint8_t alternate_timeout;
    std::uint8_t reserved;
};
struct ModifyQpRequest {
    std::uint32_t handle;
    std::uint32_t mask;
    QpAttributes attributes;
};
struct QueryQpReply {
    QpAttributes attributes;
    std::uint32_t max_send_wr;
    std::uint32_t max_recv_wr;
    std::uint32_t max_send_sge;
    std::uint32_t max_recv_sge;
    std::uint32_t max_inline;
    std::uint32_t signal_all;
};
struct MulticastRequest {
    std::uint32_t qp;
    std::uint16_t lid;
    std::uint16_t reserved;
    std::uint8_t gid[16];
};

}  // namespace uib::ipc
