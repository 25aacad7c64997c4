#include "provider/qp_attributes.h"

#include "provider/ah.h"

namespace uib::provider {

ipc::QpAttributes to_ipc(const ibv_qp_attr& from, int mask) {
    ipc::QpAttributes to{};
    if (mask & IBV_QP_STATE) to.state = static_cast<std::uint8_t>(from.qp_state);
    if (mask & IBV_QP_CUR_STATE) to.current_state = static_cast<std::uint8_t>(from.cur_qp_state);
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) to.enable_sqd_event = from.en_sqd_async_notify;
    if (mask & IBV_QP_ACCESS_FLAGS) to.access = from.qp_access_flags;
    if (mask & IBV_QP_PKEY_INDEX) to.pkey_index = from.pkey_index;
    if (mask & IBV_QP_PORT) to.port = from.port_num;
    if (mask & IBV_QP_QKEY) to.qkey = from.qkey;
    if (mask & IBV_QP_AV) to.path = to_path(from.ah_attr);
    if (mask & IBV_QP_PATH_MTU) to.path_mtu = static_cast<std::uint8_t>(from.path_mtu);
    if (mask & IBV_QP_TIMEOUT) to.timeout = from.timeout;
    if (mask & IBV_QP_RETRY_CNT) to.retry_count = from.retry_cnt;
    if (mask & IBV_QP_RNR_RETRY) to.rnr_retry = from.rnr_retry;
    if (mask & IBV_QP_RQ_PSN) to.rq_psn = from.rq_psn;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to.max_rd_atomic = from.max_rd_atomic;
    if (mask & IBV_QP_ALT_PATH) {
        to.alternate_path = to_path(from.alt_ah_attr);
        to.alternate_pkey_index = from.alt_pkey_index;
        to.alternate_port = from.alt_port_num;
        to.alternate_timeout = from.alt_timeout;
    }
    if (mask & IBV_QP_MIN_RNR_TIMER) to.min_rnr_timer = from.min_rnr_timer;
    if (mask & IBV_QP_SQ_PSN) to.sq_psn = from.sq_psn;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
    if (mask & IBV_QP_PATH_MIG_STATE)
        to.path_migration_state = static_cast<std::uint8_t>(from.path_mig_state);
    if (mask & IBV_QP_DEST_QPN) to.dest_qp_number = from.dest_qp_num;
    if (mask & IBV_QP_RATE_LIMIT) to.rate_limit = from.rate_limit;
    return to;
}

ibv_qp_attr from_ipc(const ipc::QpAttributes& from) {
    ibv_qp_attr to{};
    to.qp_state = static_cast<ibv_qp_state>(from.state);
    to.cur_qp_state = static_cast<ibv_qp_state>(from.current_state);
    to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
    to.path_mig_state = static_cast<ibv_mig_state>(from.path_migration_state);
    to.qkey = from.qkey;
    to.rq_psn = from.rq_psn;
    to.sq_psn = from.sq_psn;
    to.dest_qp_num = from.dest_qp_number;
    to.qp_access_flags = from.access;
    to.ah_attr = from_path(from.path);
    to.alt_ah_attr = from_path(from.alternate_path);
    to.pkey_index = from.pkey_index;
    to.alt_pkey_index = from.alternate_pkey_index;
    to.en_sqd_async_notify = from.enable_sqd_event;
    to.sq_draining = from.sq_draining;
    to.max_rd_atomic = from.max_rd_atomic;
    to.max_dest_rd_atomic = from.max_dest_rd_atomic;
    to.min_rnr_timer = from.min_rnr_timer;
    to.port_num = from.port;
    to.timeout = from.timeout;
    to.retry_cnt = from.retry_count;
    to.rnr_retry = from.rnr_retry;
    to.alt_port_num = from.alternate_port;
    to.alt_timeout = from.alternate_timeout;
    to.rate_limit = from.rate_limit;
    return to;
}

}  // namespace uib::provider
