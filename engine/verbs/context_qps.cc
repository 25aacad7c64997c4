// Control operations on queue pairs.
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "engine/verbs/context.h"

namespace uib::verbs {

namespace {

bool service_of(std::uint32_t value, transport::Service& service) {
    switch (static_cast<ipc::Service>(value)) {
        case ipc::Service::kRc:
            service = transport::Service::kRc;
            return true;
        case ipc::Service::kUc:
            service = transport::Service::kUc;
            return true;
        case ipc::Service::kUd:
            service = transport::Service::kUd;
            return true;
        case ipc::Service::kXrcSend:
            service = transport::Service::kXrcInitiator;
            return true;
        case ipc::Service::kXrcReceive:
            service = transport::Service::kXrcTarget;
            return true;
        case ipc::Service::kRawPacket:
            service = transport::Service::kRaw;
            return true;
    }
    return false;
}

bool receives(transport::Service service) {
    return service != transport::Service::kXrcInitiator;
}

void shape_rings(const ipc::CreateQpRequest& request, QpInit& init) {
    init.send.entries = std::bit_ceil(std::max(request.max_send_wr, 1U));
    init.send.max_sge = std::max(request.max_send_sge, 1U);
    init.send.max_inline = std::max(request.max_inline, ipc::kAutoInlineBytes);
    const std::uint32_t offset =
        init.service == transport::Service::kUd ? ipc::kDatagramPayloadOffset : ipc::kSendPayloadOffset;
    init.send.stride = ipc::send_slot_stride(offset, init.send.max_sge, init.send.max_inline);
    init.max_send_wr = request.max_send_wr;
    if (!receives(init.service) || init.srq != nullptr || request.max_recv_wr == 0) return;
    init.receive.entries = std::bit_ceil(request.max_recv_wr);
    init.receive.max_sge = std::max(request.max_recv_sge, 1U);
    init.receive.stride = ipc::receive_slot_stride(init.receive.max_sge);
    init.max_recv_wr = request.max_recv_wr;
}

}  // namespace

QpHandle::QpHandle(std::shared_ptr<Qp> qp, Client& client, std::uint64_t user_handle, XrcdObject* xrcd)
    : qp_(std::move(qp)), holder_{&client, user_handle, 0}, xrcd_(xrcd) {
    if (xrcd_ != nullptr) ++xrcd_->uses;
    qp_->add_holder(holder_);
}

QpHandle::~QpHandle() {
    qp_->remove_holder(holder_);
    qp_.reset();
    if (xrcd_ != nullptr) --xrcd_->uses;
}

std::uint32_t QpHandle::withdraw_events() {
    // What is still in a backlog was never written, so nobody will acknowledge it.
    holder_.async_events -= holder_.client->async_pipe().purge(holder_.user_handle);
    return holder_.async_events;
}

Qp* Context::qp_of(std::uint32_t handle) const {
    const QpHandle* found = qps_.get(handle);
    return found == nullptr ? nullptr : &found->qp();
}

/// The PD and the queues that the request names.
int Context::check_queues(const Client& client, const ipc::CreateQpRequest& request, QpInit& init) {
    init.pd = pds_.get(request.pd);
    init.send_cq = cqs_.get(request.send_cq);
    if (init.pd == nullptr || init.send_cq == nullptr) return EINVAL;
    // Queues of another session live in memory that this client has not mapped.
    if (&init.send_cq->client() != &client) return EINVAL;
    // What receives come with is left unread for an XRC initiator, as Linux does.
    if (!receives(init.service)) return 0;
    init.recv_cq = cqs_.get(request.recv_cq);
    if (init.recv_cq == nullptr || &init.recv_cq->client() != &client) return EINVAL;
    if (request.srq == 0) return 0;
    init.srq = srqs_.get(request.srq - 1);
    const bool usable =
        init.srq != nullptr && &init.srq->slots().client() == &client && init.srq->xrc == nullptr;
    return usable ? 0 : EINVAL;
}

int Context::check_qp_request(const Client& client, const ipc::CreateQpRequest& request, QpInit& init) {
    if (request.create_flags != 0) return EINVAL;
    if (const int error = check_queues(client, request, init); error != 0) return error;
    if (request.max_send_wr > Limits::kMaxQpWr || request.max_send_sge > Limits::kMaxSge ||
        request.max_inline > Limits::kMaxInline)
        return EINVAL;
    const bool own_receives = receives(init.service) && init.srq == nullptr;
    if (own_receives && (request.max_recv_wr > Limits::kMaxQpWr || request.max_recv_sge > Limits::kMaxSge))
        return EINVAL;
    return qps_.live() >= Limits::kMaxQp ? ENOMEM : 0;
}

int Context::create_qp(Client& client, const ipc::CreateQpRequest& request, ipc::QpReply& reply) {
    QpInit init;
    if (!service_of(request.service, init.service)) return EOPNOTSUPP;
    if (init.service == transport::Service::kRaw)
        if (const int error = check_raw_packets(client); error != 0) return error;
    if (init.service == transport::Service::kXrcTarget) return create_target(client, request, reply);
    if (const int error = check_qp_request(client, request, init); error != 0) return error;
    init.client = &client;
    init.context = this;
    init.device = &device_;
    init.signal_all = request.signal_all != 0;
    shape_rings(request, init);
    auto qp = std::make_shared<Qp>(adapter_, init);
    if (const int error = qp->start(); error != 0) return error;
    reply = qp->description();
    reply.handle = qps_.add(std::make_unique<QpHandle>(std::move(qp), client, request.user_handle, nullptr));
    return 0;
}

int Context::modify_qp(const ipc::ModifyQpRequest& request) {
    Qp* qp = qp_of(request.handle);
    if (qp == nullptr) return ENOENT;
    if (qp->init().hash.table != nullptr) return EOPNOTSUPP;  // its work queues have the states
    const std::uint32_t next = request.attributes.state;
    if ((request.mask & IBV_QP_STATE) != 0 && (next == IBV_QPS_ERR || next == IBV_QPS_RESET))
        adapter_.pay_debts(*qp);
    return qp->modify(request.attributes, request.mask);
}

int Context::query_qp(std::uint32_t handle, ipc::QueryQpReply& reply) {
    Qp* qp = qp_of(handle);
    if (qp == nullptr) return ENOENT;
    reply = qp->query();
    return 0;
}

int Context::destroy_qp(std::uint32_t handle, ipc::EventsReply& reply) {
    QpHandle* qp = qps_.get(handle);
    if (qp == nullptr) return ENOENT;
    if (qp->qp().multicast_groups != 0 || qp->qp().flow_rules != 0) return EBUSY;
    reply.async_events = qp->withdraw_events();
    qps_.take(handle);
    return 0;
}

int Context::attach_multicast(const ipc::MulticastRequest& request) {
    Qp* qp = qp_of(request.qp);
    if (qp == nullptr) return ENOENT;
    net::Gid gid;
    std::copy(std::begin(request.gid), std::end(request.gid), gid.begin());
    return adapter_.multicast().attach(*qp, gid, request.lid);
}

int Context::detach_multicast(const ipc::MulticastRequest& request) {
    Qp* qp = qp_of(request.qp);
    if (qp == nullptr) return ENOENT;
    net::Gid gid;
    std::copy(std::begin(request.gid), std::end(request.gid), gid.begin());
    return adapter_.multicast().detach(*qp, gid, request.lid);
}

}  // namespace uib::verbs
