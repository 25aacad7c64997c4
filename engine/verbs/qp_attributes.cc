// The attributes of a QP: what Modify QP sets and Query QP shows (IBA 11.2.5.2, 11.2.5.3).
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/verbs/adapter.h"
#include "engine/verbs/qp.h"
#include "engine/verbs/state_table/qp_state_table.h"
#include "net/wire/gid.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kPsnMask = 0xFFFFFF;
constexpr std::uint32_t kFlowLabelMask = 0xFFFFF;

constexpr std::uint32_t mtu_bytes(std::uint8_t code) {
    return 128U << code;
}  // IBV_MTU_256 is 1

constexpr ibv_qp_type qp_type(transport::Service service) {
    switch (service) {
        case transport::Service::kRc:
            return IBV_QPT_RC;
        case transport::Service::kUc:
            return IBV_QPT_UC;
        case transport::Service::kUd:
            break;
        case transport::Service::kXrcInitiator:
            return IBV_QPT_XRC_SEND;
        case transport::Service::kXrcTarget:
            return IBV_QPT_XRC_RECV;
        case transport::Service::kRaw:
            return IBV_QPT_RAW_PACKET;
    }
    return IBV_QPT_UD;
}

ValueLimits value_limits(const Device& device) {
    const ipc::PortAttributes port = device.port_attributes();
    ValueLimits limits{};
    limits.ports = 1;
    limits.pkey_table_length = port.pkey_table_length;
    limits.gid_table_length = Limits::kGids;
    limits.active_mtu = static_cast<ibv_mtu>(port.active_mtu);
    limits.ethernet = device.ethernet();
    limits.max_rd_atomic = Limits::kMaxRdAtomic;
    limits.max_dest_rd_atomic = Limits::kMaxRdAtomic;
    return limits;
}

/// The source GID exists (a stale index is refused at once), and there is a way from it to the destination:
/// RoCE has none from an IPv4 address to an IPv6 one or back, and connections have none to groups.
bool good_gids(const Device& device, const ipc::PathAttributes& path) {
    if (path.is_global == 0) return true;
    if (path.sgid_index >= device.gids().size()) return false;
    const net::Gid& from = device.gids()[path.sgid_index];
    net::Gid to{};
    std::copy(std::begin(path.dgid), std::end(path.dgid), to.begin());
    if (from == net::Gid{} || net::is_multicast(to)) return false;
    return !device.ethernet() || net::is_ipv4(from) == net::is_ipv4(to);
}

}  // namespace

void Qp::take_attributes(const ipc::QpAttributes& from, std::uint32_t mask) {
    const auto take = [&](std::uint32_t bit, auto member) {
        if ((mask & bit) != 0) attributes_.*member = from.*member;
    };
    using A = ipc::QpAttributes;
    take(IBV_QP_EN_SQD_ASYNC_NOTIFY, &A::enable_sqd_event);
    take(IBV_QP_ACCESS_FLAGS, &A::access);
    take(IBV_QP_PKEY_INDEX, &A::pkey_index);
    take(IBV_QP_PORT, &A::port);
    take(IBV_QP_QKEY, &A::qkey);
    take(IBV_QP_AV, &A::path);
    take(IBV_QP_PATH_MTU, &A::path_mtu);
    take(IBV_QP_TIMEOUT, &A::timeout);
    take(IBV_QP_RETRY_CNT, &A::retry_count);
    take(IBV_QP_RNR_RETRY, &A::rnr_retry);
    take(IBV_QP_RQ_PSN, &A::rq_psn);
    take(IBV_QP_MAX_QP_RD_ATOMIC, &A::max_rd_atomic);
    take(IBV_QP_ALT_PATH, &A::alternate_path);
    take(IBV_QP_ALT_PATH, &A::alternate_pkey_index);
    take(IBV_QP_ALT_PATH, &A::alternate_port);
    take(IBV_QP_ALT_PATH, &A::alternate_timeout);
    take(IBV_QP_MIN_RNR_TIMER, &A::min_rnr_timer);
    take(IBV_QP_SQ_PSN, &A::sq_psn);
    take(IBV_QP_MAX_DEST_RD_ATOMIC, &A::max_dest_rd_atomic);
    take(IBV_QP_PATH_MIG_STATE, &A::path_migration_state);
    take(IBV_QP_DEST_QPN, &A::dest_qp_number);
    take(IBV_QP_RATE_LIMIT, &A::rate_limit);
    if ((mask & IBV_QP_ALT_PATH) != 0) alternate_loaded_ = true;
    attributes_.rq_psn &= kPsnMask;
    attributes_.sq_psn &= kPsnMask;
}

void Qp::forget_attributes() {
    attributes_ = ipc::QpAttributes{};
    attributes_.path_mtu = IBV_MTU_1024;
    attributes_.path_migration_state = IBV_MIG_MIGRATED;
    alternate_loaded_ = false;
}

// Each migration puts the alternate path in the primary's place (IBA 17.2.8.1.3); the old primary is shown as
// the alternate, but must be loaded anew before it can serve as one.
void Qp::follow_migrations() {
    const std::uint32_t now = machine_->migrations();
    for (; migrations_ != now; ++migrations_) {
        std::swap(attributes_.path, attributes_.alternate_path);
        std::swap(attributes_.pkey_index, attributes_.alternate_pkey_index);
        std::swap(attributes_.port, attributes_.alternate_port);
        std::swap(attributes_.timeout, attributes_.alternate_timeout);
        alternate_loaded_ = false;
    }
}

transport::Path Qp::resolve(const ipc::PathAttributes& path) const {
    transport::Path out;
    out.dlid = path.dlid;
    const unsigned path_bits = path.source_path_bits & ((1U << init_.device->subnet().lmc) - 1);
    out.slid = static_cast<net::Lid>(init_.device->lid() | path_bits);
    out.sl = path.sl;
    out.static_rate = path.static_rate;
    out.global = path.is_global != 0;
    out.grh.sgid = init_.device->gids()[std::min<std::size_t>(path.sgid_index, Limits::kGids - 1)];
    std::copy(std::begin(path.dgid), std::end(path.dgid), out.grh.dgid.begin());
    out.grh.flow_label = path.flow_label & kFlowLabelMask;
    out.grh.traffic_class = path.traffic_class;
    out.grh.hop_limit = path.hop_limit;
    return out;
}

std::uint16_t Qp::pkey_at(std::uint16_t index) const {
    const auto& pkeys = init_.device->pkeys();
    return pkeys[std::min<std::size_t>(index, pkeys.size() - 1)];
}

transport::QpParameters Qp::parameters() const {
    transport::QpParameters out;
    out.path = resolve(attributes_.path);
    // A datagram is as long as the port lets it be.
    out.mtu_bytes =
        mtu_bytes(init_.service == transport::Service::kUd ? init_.device->port_attributes().active_mtu
                                                           : attributes_.path_mtu);
    out.dest_qp = attributes_.dest_qp_number;
    out.rq_psn = attributes_.rq_psn;
    out.sq_psn = attributes_.sq_psn;
    out.qkey = attributes_.qkey;
    out.access = attributes_.access;
    out.pkey = pkey_at(attributes_.pkey_index);
    out.timeout = attributes_.timeout;
    out.retry_count = attributes_.retry_count;
    out.rnr_retry = attributes_.rnr_retry;
    out.min_rnr_timer = attributes_.min_rnr_timer;
    out.max_rd_atomic = attributes_.max_rd_atomic;
    out.max_dest_rd_atomic = attributes_.max_dest_rd_atomic;
    out.alternate_loaded = alternate_loaded_;
    if (alternate_loaded_) {
        out.alternate = resolve(attributes_.alternate_path);
        out.alternate_pkey = pkey_at(attributes_.alternate_pkey_index);
        out.alternate_timeout = attributes_.alternate_timeout;
    }
    return out;
}

// Software asks for Rearm or Migrated; Armed is what both ends come to by the packets they exchange (IBA
// 17.2.8.1). Neither has a meaning without an alternate path: mlx5's firmware refuses with EINVAL as well.
bool Qp::may_migrate(const ipc::QpAttributes& attributes, std::uint32_t mask) const {
    if ((mask & IBV_QP_PATH_MIG_STATE) == 0) return true;
    switch (attributes.path_migration_state) {
        case IBV_MIG_MIGRATED:
            return true;
        case IBV_MIG_REARM:
            return alternate_loaded_ || (mask & IBV_QP_ALT_PATH) != 0;
        default:
            return false;
    }
}

void Qp::start_over() {
    if (send_ring_ != nullptr) send_ring_->reset();
    if (receive_ring_ != nullptr) receive_ring_->reset();
    adapter_.keys().release_windows_of(number_);
    adapter_.forget_writes(*this);
    forget_attributes();
}

int Qp::modify(const ipc::QpAttributes& attributes, std::uint32_t given) {
    const auto mask =
        static_cast<std::uint32_t>(relevant_attributes(qp_type(init_.service), static_cast<int>(given)));
    follow_migrations();
    const auto current = static_cast<ibv_qp_state>(machine_->state());
    if ((mask & IBV_QP_CUR_STATE) != 0 && attributes.current_state != current) return EINVAL;
    const auto next = (mask & IBV_QP_STATE) != 0 ? static_cast<ibv_qp_state>(attributes.state) : current;
    if (next > IBV_QPS_ERR) return EINVAL;
    if (const int error = check_transition(qp_type(init_.service), current, next, static_cast<int>(mask));
        error != 0)
        return error;
    if (const int error = check_values(qp_type(init_.service), attributes, static_cast<int>(mask),
                                       value_limits(*init_.device));
        error != 0)
        return error;
    if ((mask & IBV_QP_AV) != 0 && !good_gids(*init_.device, attributes.path)) return EINVAL;
    if ((mask & IBV_QP_ALT_PATH) != 0 && !good_gids(*init_.device, attributes.alternate_path)) return EINVAL;
    if (!may_migrate(attributes, mask)) return EINVAL;
    take_attributes(attributes, mask);
    const auto state = static_cast<transport::QpState>(next);
    if (state == transport::QpState::kReset) start_over();
    transport::QpParameters wanted = parameters();
    if ((mask & IBV_QP_PATH_MIG_STATE) != 0)
        wanted.migration = static_cast<transport::MigrationState>(attributes.path_migration_state);
    machine_->apply(state, wanted,
                    (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attributes.enable_sqd_event != 0);
    if (state == transport::QpState::kReset) migrations_ = machine_->migrations();
    note_state();
    if (machine_->wants_run()) adapter_.activate(*this);
    return 0;
}

ipc::QueryQpReply Qp::query() {
    follow_migrations();
    ipc::QueryQpReply reply{};
    reply.attributes = attributes_;
    reply.attributes.state = static_cast<std::uint8_t>(machine_->state());
    reply.attributes.current_state = reply.attributes.state;
    reply.attributes.path_migration_state = static_cast<std::uint8_t>(machine_->migration());
    if (machine_->state() >= transport::QpState::kRtr) {
        reply.attributes.sq_psn =
            machine_->state() >= transport::QpState::kRts ? machine_->send_psn() : attributes_.sq_psn;
        reply.attributes.rq_psn =
            init_.service == transport::Service::kUd ? attributes_.rq_psn : machine_->receive_psn();
    }
    reply.attributes.sq_draining =
        machine_->state() == transport::QpState::kSqd && !machine_->drained() ? 1 : 0;
    reply.max_send_wr = init_.max_send_wr;
    reply.max_recv_wr = init_.max_recv_wr;
    reply.max_send_sge = init_.send.max_sge;
    reply.max_recv_sge = init_.receive.max_sge;
    reply.max_inline = init_.send.max_inline;
    reply.signal_all = init_.signal_all ? 1 : 0;
    return reply;
}

}  // namespace uib::verbs
