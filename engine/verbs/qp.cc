#include "engine/verbs/qp.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>

#include "engine/verbs/adapter.h"
#include "engine/verbs/state_table/qp_state_table.h"

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
    // Only the entries that hold a GID can be used (A12: a stale index is refused at once).
    limits.gid_table_length = static_cast<unsigned>(std::count_if(
        device.gids().begin(), device.gids().end(), [](const net::Gid& gid) { return gid != net::Gid{}; }));
    limits.active_mtu = static_cast<ibv_mtu>(port.active_mtu);
    limits.ethernet = device.ethernet();
    limits.max_rd_atomic = Limits::kMaxRdAtomic;
    limits.max_dest_rd_atomic = Limits::kMaxRdAtomic;
    return limits;
}

}  // namespace

Qp::Qp(Adapter& adapter, const QpInit& init) : adapter_(adapter), init_(init) {
    attributes_.path_mtu = IBV_MTU_1024;
    attributes_.path_migration_state = IBV_MIG_MIGRATED;
    ++init_.pd->uses;
    ++init_.send_cq->uses;
    ++init_.recv_cq->uses;
    if (init_.srq != nullptr) ++init_.srq->uses;
}

Qp::~Qp() {
    if (number_ != 0) {
        adapter_.remove_qp(*this);
        init_.client->free_slot(slot_);
    }
    --init_.pd->uses;
    --init_.send_cq->uses;
    --init_.recv_cq->uses;
    if (init_.srq != nullptr) --init_.srq->uses;
}

int Qp::start() {
    send_ring_ = std::make_unique<SendRing>(*init_.client, init_.service, init_.send, init_.signal_all);
    if (!send_ring_->allocate()) return ENOMEM;
    if (init_.receive.entries != 0) {
        receive_ring_ = std::make_unique<ReceiveRing>(*init_.client, init_.receive);
        if (!receive_ring_->allocate()) return ENOMEM;
    }
    const auto slot = init_.client->take_slot(*this);
    if (!slot) return ENOMEM;
    slot_ = *slot;
    const std::uint32_t number = adapter_.reserve_qp_number();
    if (number == 0) {
        init_.client->free_slot(slot_);
        return ENOMEM;
    }
    transport::QpConfig config;
    config.number = number;
    config.service = init_.service;
    config.pd = init_.pd->id;
    config.client = init_.client->id();
    config.max_send_wr = init_.send.entries;
    config.send_queue = send_ring_.get();
    config.receive_queue =
        init_.srq != nullptr ? static_cast<transport::ReceiveQueue*>(init_.srq) : receive_ring_.get();
    config.owner = this;
    machine_ = transport::QueuePair::make(config, adapter_);
    send_ring_->set_machine(*machine_);
    number_ = number;
    adapter_.add_qp(*this);
    return 0;
}

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
    attributes_.rq_psn &= kPsnMask;
    attributes_.sq_psn &= kPsnMask;
}

transport::QpParameters Qp::parameters() const {
    transport::QpParameters out;
    const ipc::PathAttributes& path = attributes_.path;
    out.path.dlid = path.dlid;
    out.path.slid = static_cast<net::Lid>(init_.device->lid());  // LMC is 0: no path bits to add
    out.path.sl = path.sl;
    out.path.global = path.is_global != 0;
    out.path.grh.sgid = init_.device->gids()[std::min<std::size_t>(path.sgid_index, Limits::kGids - 1)];
    std::copy(std::begin(path.dgid), std::end(path.dgid), out.path.grh.dgid.begin());
    out.path.grh.flow_label = path.flow_label & kFlowLabelMask;
    out.path.grh.traffic_class = path.traffic_class;
    out.path.grh.hop_limit = path.hop_limit;
    out.mtu_bytes =
        init_.service == transport::Service::kUd ? mtu_bytes(IBV_MTU_4096) : mtu_bytes(attributes_.path_mtu);
    out.dest_qp = attributes_.dest_qp_number;
    out.rq_psn = attributes_.rq_psn;
    out.sq_psn = attributes_.sq_psn;
    out.qkey = attributes_.qkey;
    out.access = attributes_.access;
    out.pkey = init_.device
                   ->pkeys()[std::min<std::size_t>(attributes_.pkey_index, init_.device->pkeys().size() - 1)];
    out.timeout = attributes_.timeout;
    out.retry_count = attributes_.retry_count;
    out.rnr_retry = attributes_.rnr_retry;
    out.min_rnr_timer = attributes_.min_rnr_timer;
    out.max_rd_atomic = attributes_.max_rd_atomic;
    out.max_dest_rd_atomic = attributes_.max_dest_rd_atomic;
    return out;
}

int Qp::modify(const ipc::QpAttributes& attributes, std::uint32_t mask) {
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
    take_attributes(attributes, mask);
    const auto state = static_cast<transport::QpState>(next);
    if (state == transport::QpState::kReset) {
        send_ring_->reset();
        if (receive_ring_ != nullptr) receive_ring_->reset();
        adapter_.keys().release_windows_of(number_);
        adapter_.forget_writes(*this);
        attributes_ = ipc::QpAttributes{};
        attributes_.path_mtu = IBV_MTU_1024;
        attributes_.path_migration_state = IBV_MIG_MIGRATED;
    }
    machine_->apply(state, parameters(),
                    (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attributes.enable_sqd_event != 0);
    note_state();
    if (machine_->wants_run()) adapter_.activate(*this);
    return 0;
}

void Qp::note_state() {
    if (receive_ring_ == nullptr) return;
    // In the error state receives are flushed as they are posted: the client must ring for them.
    const bool error = machine_->state() == transport::QpState::kError;
    receive_ring_->slots().control().need_doorbell.store(error ? 1 : 0, std::memory_order_seq_cst);
}

ipc::QueryQpReply Qp::query() const {
    ipc::QueryQpReply reply{};
    reply.attributes = attributes_;
    reply.attributes.state = static_cast<std::uint8_t>(machine_->state());
    reply.attributes.current_state = reply.attributes.state;
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

ipc::QpReply Qp::description() const {
    ipc::QpReply reply{};
    reply.qp_number = number_;
    reply.slot = slot_;
    reply.send = send_ring_->location();
    if (receive_ring_ != nullptr) reply.receive = receive_ring_->slots().location();
    return reply;
}

}  // namespace uib::verbs
