#include "engine/verbs/state_table/qp_state_table.h"

#include <cerrno>

namespace uib::verbs {
namespace {

/// A transition of one service. Transitions to Reset and Error take no attributes and are not in the table.
struct Row {
    ibv_qp_type service;
    ibv_qp_state from;
    ibv_qp_state to;
    int required;
    int optional;
};

constexpr int kPartition = IBV_QP_PKEY_INDEX;
constexpr int kAccess = IBV_QP_ACCESS_FLAGS;
constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kConnection = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kResponder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRequester = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
/// What may change while a connection carries traffic.
constexpr int kUcLive = IBV_QP_CUR_STATE | kAccess | kMigration;
constexpr int kRcLive = kUcLive | IBV_QP_MIN_RNR_TIMER;
constexpr int kUdLive = IBV_QP_CUR_STATE | IBV_QP_QKEY;
/// An XRC initiator has a requester only, a target a responder only. The target takes a timeout all the same,
/// as Linux and mlx5 want one.
constexpr int kInitiatorLive = kUcLive;
constexpr int kTargetLive = kRcLive;

constexpr Row kRows[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, kPartition | IBV_QP_PORT | kAccess, 0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, kPartition | IBV_QP_PORT | kAccess},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, kConnection | kResponder, IBV_QP_ALT_PATH | kAccess | kPartition},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, kRequester | IBV_QP_SQ_PSN, kRcLive},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, kRcLive},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, kRcLive},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | kRequester | kResponder | kAccess | kPartition | kMigration},

    {IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, kPartition | IBV_QP_PORT | kAccess, 0},
    {IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_INIT, 0, kPartition | IBV_QP_PORT | kAccess},
    {IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, kConnection, IBV_QP_ALT_PATH | kAccess | kPartition},
    {IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS, kRequester | IBV_QP_SQ_PSN, kInitiatorLive},
    {IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, 0, kInitiatorLive},
    {IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_RTS, 0, kInitiatorLive},
    {IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | kRequester | kAccess | kPartition | kMigration},

    {IBV_QPT_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT, kPartition | IBV_QP_PORT | kAccess, 0},
    {IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_INIT, 0, kPartition | IBV_QP_PORT | kAccess},
    {IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, kConnection | kResponder,
     IBV_QP_ALT_PATH | kAccess | kPartition},
    {IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, kTargetLive},
    {IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, 0, kTargetLive},
    {IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_RTS, 0, kTargetLive},
    {IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | kResponder | kAccess | kPartition | kMigration},

    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, kPartition | IBV_QP_PORT | kAccess, 0},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, kPartition | IBV_QP_PORT | kAccess},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, kConnection, IBV_QP_ALT_PATH | kAccess | kPartition},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kUcLive},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, kUcLive},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, kUcLive},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_AV | kAccess | kPartition | kMigration},
    {IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | kAccess},

    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, kPartition | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, kPartition | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, kPartition | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kUdLive},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, kUdLive},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, kUdLive},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, kPartition | IBV_QP_QKEY},
    {IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, kUdLive},

    // A raw packet has no address, key or number of its own: nothing is set but the port.
    {IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PORT, 0},
    {IBV_QPT_RAW_PACKET, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PORT},
    {IBV_QPT_RAW_PACKET, IBV_QPS_INIT, IBV_QPS_RTR, 0, 0},
    {IBV_QPT_RAW_PACKET, IBV_QPS_RTR, IBV_QPS_RTS, 0, 0},
    {IBV_QPT_RAW_PACKET, IBV_QPS_RTS, IBV_QPS_RTS, 0, 0},
    {IBV_QPT_RAW_PACKET, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPT_RAW_PACKET, IBV_QPS_SQD, IBV_QPS_RTS, 0, 0},
    {IBV_QPT_RAW_PACKET, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE},
};

bool known_service(ibv_qp_type service) {
    switch (service) {
        case IBV_QPT_RC:
        case IBV_QPT_UC:
        case IBV_QPT_UD:
        case IBV_QPT_XRC_SEND:
        case IBV_QPT_XRC_RECV:
        case IBV_QPT_RAW_PACKET:
            return true;
        default:
            return false;
    }
}

constexpr unsigned kFiveBits = 31;
constexpr unsigned kThreeBits = 7;
constexpr std::uint32_t kQpNumberMask = 0xFFFFFF;
constexpr unsigned kServiceLevels = 16;
constexpr unsigned kFirstMulticastLid = 0xC000;
constexpr unsigned kUnusedRate = 1;
constexpr unsigned kLastRate = 23;

bool good_port(unsigned port, const ValueLimits& limits) {
    return port >= 1 && port <= limits.ports;
}

/// A path of a connection: to one port, never to a multicast group.
bool good_path(const ipc::PathAttributes& path, const ValueLimits& limits) {
    if (!good_port(path.port, limits) || path.sl >= kServiceLevels) return false;
    if (path.static_rate == kUnusedRate || path.static_rate > kLastRate) return false;
    const bool global = path.is_global != 0;
    if (global) {
        constexpr std::uint8_t kMulticastGid = 0xFF;
        if (path.sgid_index >= limits.gid_table_length) return false;
        if (path.dgid[0] == kMulticastGid) return false;
    }
    if (limits.ethernet) return global;
    return path.dlid != 0 && path.dlid < kFirstMulticastLid;
}

bool good_path_attributes(const ipc::QpAttributes& attributes, int mask, const ValueLimits& limits) {
    if ((mask & IBV_QP_PORT) != 0 && !good_port(attributes.port, limits)) return false;
    if ((mask & IBV_QP_PKEY_INDEX) != 0 && attributes.pkey_index >= limits.pkey_table_length) return false;
    if ((mask & IBV_QP_AV) != 0 && !good_path(attributes.path, limits)) return false;
    if ((mask & IBV_QP_PATH_MTU) != 0 &&
        (attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > IBV_MTU_4096 ||
         attributes.path_mtu > limits.active_mtu)) {
        return false;
    }
    if ((mask & IBV_QP_ALT_PATH) != 0 &&
        (!good_port(attributes.alternate_port, limits) || attributes.alternate_timeout > kFiveBits ||
         attributes.alternate_pkey_index >= limits.pkey_table_length ||
         !good_path(attributes.alternate_path, limits))) {
        return false;
    }
    return (mask & IBV_QP_PATH_MIG_STATE) == 0 || attributes.path_migration_state <= IBV_MIG_ARMED;
}

bool good_transport_attributes(const ipc::QpAttributes& attributes, int mask, const ValueLimits& limits) {
    const auto above = [&](int bit, std::uint32_t value, std::uint32_t most) {
        return (mask & bit) != 0 && value > most;
    };
    return !above(IBV_QP_TIMEOUT, attributes.timeout, kFiveBits) &&
           !above(IBV_QP_MIN_RNR_TIMER, attributes.min_rnr_timer, kFiveBits) &&
           !above(IBV_QP_RETRY_CNT, attributes.retry_count, kThreeBits) &&
           !above(IBV_QP_RNR_RETRY, attributes.rnr_retry, kThreeBits) &&
           !above(IBV_QP_DEST_QPN, attributes.dest_qp_number, kQpNumberMask) &&
           !above(IBV_QP_MAX_QP_RD_ATOMIC, attributes.max_rd_atomic, limits.max_rd_atomic) &&
           !above(IBV_QP_MAX_DEST_RD_ATOMIC, attributes.max_dest_rd_atomic, limits.max_dest_rd_atomic);
}

}  // namespace

int relevant_attributes(ibv_qp_type service, int mask) {
    if (service == IBV_QPT_XRC_SEND) return mask & ~kResponder;
    if (service == IBV_QPT_XRC_RECV)
        return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    return mask;
}

int check_transition(ibv_qp_type service, ibv_qp_state current, ibv_qp_state next, int mask) {
    if (!known_service(service) || current > IBV_QPS_ERR || next > IBV_QPS_ERR) return EINVAL;
    if (next != current && (mask & IBV_QP_STATE) == 0) return EINVAL;
    const int attributes = mask & ~IBV_QP_STATE;
    if (next == IBV_QPS_RESET) return attributes == 0 ? 0 : EINVAL;
    // A QP in Reset has nothing to flush; Linux refuses to move it to Error.
    if (next == IBV_QPS_ERR) return attributes == 0 && current != IBV_QPS_RESET ? 0 : EINVAL;
    for (const Row& row : kRows) {
        if (row.service != service || row.from != current || row.to != next) continue;
        const bool complete = (attributes & row.required) == row.required;
        return complete && (attributes & ~(row.required | row.optional)) == 0 ? 0 : EINVAL;
    }
    return EINVAL;
}

int check_values(ibv_qp_type service, const ipc::QpAttributes& attributes, int mask,
                 const ValueLimits& limits) {
    if (!known_service(service)) return EINVAL;
    const bool good =
        good_path_attributes(attributes, mask, limits) && good_transport_attributes(attributes, mask, limits);
    return good ? 0 : EINVAL;
}

}  // namespace uib::verbs
