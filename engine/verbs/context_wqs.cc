// Control operations of receive side scaling (control_rss.h). A work queue is a raw packet queue pair that
// only receives, known to the client by handles of its own; a hash queue pair has no queues at all.
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "engine/verbs/context.h"

namespace uib::verbs {

int Context::create_wq(Client& client, const ipc::CreateWqRequest& request, ipc::QpReply& reply) {
    if (const int error = check_raw_packets(client); error != 0) return error;
    QpInit init;
    init.pd = pds_.get(request.pd);
    init.recv_cq = cqs_.get(request.cq);
    if (init.pd == nullptr || init.recv_cq == nullptr || &init.recv_cq->client() != &client) return EINVAL;
    if (request.max_wr == 0 || request.max_wr > Limits::kMaxQpWr || request.max_sge > Limits::kMaxSge)
        return EINVAL;
    if (wqs_.live() >= Limits::kMaxWq) return ENOMEM;
    init.client = &client;
    init.context = this;
    init.device = &device_;
    init.service = transport::Service::kRaw;
    init.work_queue = true;
    init.receive.entries = std::bit_ceil(request.max_wr);
    init.receive.max_sge = std::max(request.max_sge, 1U);
    init.receive.stride = ipc::receive_slot_stride(init.receive.max_sge);
    init.max_recv_wr = request.max_wr;
    auto wq = std::make_shared<Qp>(adapter_, init);
    if (const int error = wq->start(); error != 0) return error;
    reply = wq->description();
    reply.handle = wqs_.add(std::make_unique<QpHandle>(std::move(wq), client, request.user_handle, nullptr));
    return 0;
}

// Ready is a queue pair's RTR, which it comes to by INIT.
int Context::modify_wq(const ipc::ModifyWqRequest& request) {
    QpHandle* wq = wqs_.get(request.handle);
    if (wq == nullptr) return ENOENT;
    ipc::QpAttributes attributes{};
    attributes.port = 1;
    const auto move = [&](ibv_qp_state to, std::uint32_t mask) {
        attributes.state = static_cast<std::uint8_t>(to);
        return wq->qp().modify(attributes, IBV_QP_STATE | mask);
    };
    const transport::QpState now = wq->qp().machine().state();
    switch (static_cast<ipc::WqState>(request.state)) {
        case ipc::WqState::kReset:
            return move(IBV_QPS_RESET, 0);
        case ipc::WqState::kReady:
            if (now == transport::QpState::kRtr) return 0;
            if (now != transport::QpState::kReset) return EINVAL;
            if (const int error = move(IBV_QPS_INIT, IBV_QP_PORT); error != 0) return error;
            return move(IBV_QPS_RTR, 0);
        case ipc::WqState::kError:
            return move(IBV_QPS_ERR, 0);
    }
    return EINVAL;
}

int Context::destroy_wq(std::uint32_t handle, ipc::EventsReply& reply) {
    QpHandle* wq = wqs_.get(handle);
    if (wq == nullptr) return ENOENT;
    if (wq->qp().rwq_entries != 0) return EBUSY;
    reply.async_events = wq->withdraw_events();
    wqs_.take(handle);
    return 0;
}

int Context::create_rwq_table(Client& client, const ipc::CreateRwqTableRequest& request,
                              std::uint32_t& handle) {
    if (const int error = check_raw_packets(client); error != 0) return error;
    if (request.entries > ipc::kMaxRwqTableEntries || !std::has_single_bit(request.entries)) return EINVAL;
    if (rwq_tables_.live() >= Limits::kMaxRwqTables) return ENOMEM;
    std::vector<Qp*> queues;
    for (const std::uint32_t wanted : std::span(request.wqs).first(request.entries)) {
        QpHandle* wq = wqs_.get(wanted);
        if (wq == nullptr || wq->holder().client != &client) return EINVAL;
        queues.push_back(&wq->qp());
    }
    handle = rwq_tables_.add(std::make_unique<RwqTable>(client, std::move(queues)));
    return 0;
}

int Context::destroy_rwq_table(std::uint32_t handle) {
    const RwqTable* table = rwq_tables_.get(handle);
    if (table == nullptr) return ENOENT;
    if (table->uses != 0) return EBUSY;
    rwq_tables_.take(handle);
    return 0;
}

int Context::create_hash_qp(Client& client, const ipc::CreateHashQpRequest& request, ipc::QpReply& reply) {
    if (const int error = check_raw_packets(client); error != 0) return error;
    if (const int error = check_hash_fields(request.fields); error != 0) return error;
    QpInit init;
    init.pd = pds_.get(request.pd);
    init.hash.table = rwq_tables_.get(request.table);
    if (init.pd == nullptr || init.hash.table == nullptr || &init.hash.table->owner() != &client)
        return EINVAL;
    if (qps_.live() >= Limits::kMaxQp) return ENOMEM;
    init.hash.fields = request.fields;
    std::copy(std::begin(request.key), std::end(request.key), init.hash.key.begin());
    init.client = &client;
    init.context = this;
    init.device = &device_;
    init.service = transport::Service::kRaw;
    auto qp = std::make_shared<Qp>(adapter_, init);
    if (const int error = qp->start(); error != 0) return error;
    reply = qp->description();
    reply.handle = qps_.add(std::make_unique<QpHandle>(std::move(qp), client, request.user_handle, nullptr));
    return 0;
}

}  // namespace uib::verbs
