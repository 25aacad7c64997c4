// Control operations on channels, completion queues, shared receive queues and queue pairs.
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "engine/verbs/context.h"

namespace uib::verbs {

namespace {

constexpr int kTurnsBeforeResize = 16;

}  // namespace

int Context::create_channel(Client& client, ipc::UniqueFd write_end, std::uint32_t& handle) {
    if (!write_end) return EBADF;
    if (channels_.live() >= Limits::kMaxChannels) return ENOMEM;
    handle = channels_.add(std::unique_ptr<Channel>(
        new Channel{&client, 0, EventPipe(std::move(write_end), sizeof(std::uint64_t))}));
    return 0;
}

int Context::destroy_channel(std::uint32_t handle) {
    const Channel* channel = channels_.get(handle);
    if (channel == nullptr) return ENOENT;
    if (channel->uses != 0) return EBUSY;
    channels_.take(handle);
    return 0;
}

// Completion queues.

int Context::create_cq(Client& client, const ipc::CreateCqRequest& request, ipc::CqReply& reply) {
    if (request.entries == 0 || request.entries > Limits::kMaxCqe) return EINVAL;
    if ((request.flags & ~std::uint32_t{ipc::kCqIgnoreOverrun}) != 0) return EINVAL;
    if (cqs_.live() >= Limits::kMaxCq) return ENOMEM;
    Channel* channel = nullptr;
    if (request.channel != 0) {
        channel = channels_.get(request.channel - 1);
        if (channel == nullptr || channel->client != &client) return EINVAL;
    }
    auto cq = std::make_unique<CompletionQueue>(client, request.user_handle, channel,
                                                (request.flags & ipc::kCqIgnoreOverrun) != 0);
    if (const int error = cq->resize(request.entries); error != 0) return error;
    reply.entries = cq->entries();
    reply.control = cq->control_location();
    reply.ring = cq->ring_location();
    reply.handle = cqs_.add(std::move(cq));
    return 0;
}

int Context::resize_cq(const ipc::ResizeCqRequest& request, ipc::CqReply& reply) {
    CompletionQueue* cq = cqs_.get(request.handle);
    if (cq == nullptr) return ENOENT;
    if (request.entries == 0 || request.entries > Limits::kMaxCqe) return EINVAL;
    // Work posted before the call is carried out before the entries are counted: the caller's request came by
    // another way than its doorbells and must not overtake them.
    for (int turns = 0; turns < kTurnsBeforeResize && adapter_.turn(); ++turns) {
    }
    if (const int error = cq->resize(request.entries); error != 0) return error;
    reply.handle = request.handle;
    reply.entries = cq->entries();
    reply.control = cq->control_location();
    reply.ring = cq->ring_location();
    return 0;
}

int Context::modify_cq(const ipc::ModifyCqRequest& request) {
    CompletionQueue* cq = cqs_.get(request.handle);
    if (cq == nullptr) return ENOENT;
    cq->moderate(request.moderation_count, request.moderation_period_us);
    return 0;
}

int Context::destroy_cq(std::uint32_t handle, ipc::EventsReply& reply) {
    CompletionQueue* cq = cqs_.get(handle);
    if (cq == nullptr) return ENOENT;
    if (cq->uses != 0) return EBUSY;
    // What is still in a backlog was never written, so nobody will acknowledge it.
    cq->async_events -= cq->client().async_pipe().purge(cq->user_handle());
    if (cq->channel() != nullptr) cq->completion_events -= cq->channel()->pipe.purge(cq->user_handle());
    reply.completion_events = cq->completion_events;
    reply.async_events = cq->async_events;
    adapter_.forget(*cq);
    cqs_.take(handle);
    return 0;
}

// Shared receive queues.

int Context::create_srq(Client& client, const ipc::CreateSrqRequest& request, ipc::SrqReply& reply) {
    Pd* pd = pds_.get(request.pd);
    if (pd == nullptr || request.max_wr == 0 || request.max_wr > Limits::kMaxSrqWr ||
        request.max_sge > Limits::kMaxSge)
        return EINVAL;
    if (srqs_.live() >= Limits::kMaxSrq) return ENOMEM;
    RingShape shape;
    shape.entries = std::bit_ceil(request.max_wr);
    shape.max_sge = std::max(request.max_sge, 1U);
    shape.stride = ipc::receive_slot_stride(shape.max_sge);
    auto srq = std::make_unique<SharedReceiveQueue>(client, shape, request.user_handle, next_srq_number_++);
    if (!srq->allocate()) return ENOMEM;
    srq->max_wr = request.max_wr;
    srq->pd = pd;
    ++pd->uses;
    reply.srq_number = srq->number();
    reply.queue = srq->slots().location();
    reply.available = srq->slots().available_location();
    reply.handle = srqs_.add(std::move(srq));
    return 0;
}

int Context::modify_srq(const ipc::ModifySrqRequest& request) {
    SharedReceiveQueue* srq = srqs_.get(request.handle);
    if (srq == nullptr) return ENOENT;
    if ((request.mask & ~std::uint32_t{ipc::kSrqMaxWr | ipc::kSrqLimit}) != 0) return EINVAL;
    if ((request.mask & ipc::kSrqMaxWr) != 0 &&
        (request.max_wr == 0 || request.max_wr > srq->slots().shape().entries))
        return EINVAL;
    if ((request.mask & ipc::kSrqLimit) != 0 && request.limit > srq->slots().shape().entries) return EINVAL;
    if ((request.mask & ipc::kSrqMaxWr) != 0) srq->max_wr = request.max_wr;
    if ((request.mask & ipc::kSrqLimit) != 0) srq->set_limit(request.limit);
    return 0;
}

int Context::query_srq(std::uint32_t handle, ipc::QuerySrqReply& reply) {
    const SharedReceiveQueue* srq = srqs_.get(handle);
    if (srq == nullptr) return ENOENT;
    reply.max_wr = srq->max_wr;
    reply.max_sge = srq->slots().shape().max_sge;
    reply.limit = srq->limit();
    return 0;
}

int Context::destroy_srq(std::uint32_t handle, ipc::EventsReply& reply) {
    SharedReceiveQueue* srq = srqs_.get(handle);
    if (srq == nullptr) return ENOENT;
    if (srq->uses != 0) return EBUSY;
    srq->async_events -= srq->slots().client().async_pipe().purge(srq->user_handle());
    reply.async_events = srq->async_events;
    srqs_.take(handle);
    return 0;
}

// Queue pairs.

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
        case ipc::Service::kRawPacket:
        case ipc::Service::kXrcSend:
        case ipc::Service::kXrcReceive:
            break;
    }
    return false;
}

}  // namespace

int Context::check_qp_request(const Client& client, const ipc::CreateQpRequest& request, QpInit& init) {
    if (!service_of(request.service, init.service)) return EOPNOTSUPP;
    if (request.create_flags != 0) return EINVAL;
    init.pd = pds_.get(request.pd);
    init.send_cq = cqs_.get(request.send_cq);
    init.recv_cq = cqs_.get(request.recv_cq);
    if (init.pd == nullptr || init.send_cq == nullptr || init.recv_cq == nullptr) return EINVAL;
    if (request.srq != 0) {
        init.srq = srqs_.get(request.srq - 1);
        if (init.srq == nullptr || &init.srq->slots().client() != &client) return EINVAL;
    }
    // Queues of another session live in memory that this client has not mapped.
    if (&init.send_cq->client() != &client || &init.recv_cq->client() != &client) return EINVAL;
    if (request.max_send_wr > Limits::kMaxQpWr || request.max_send_sge > Limits::kMaxSge ||
        request.max_inline > Limits::kMaxInline)
        return EINVAL;
    if (init.srq == nullptr &&
        (request.max_recv_wr > Limits::kMaxQpWr || request.max_recv_sge > Limits::kMaxSge))
        return EINVAL;
    if (qps_.live() >= Limits::kMaxQp) return ENOMEM;
    return 0;
}

int Context::create_qp(Client& client, const ipc::CreateQpRequest& request, ipc::QpReply& reply) {
    QpInit init;
    if (const int error = check_qp_request(client, request, init); error != 0) return error;
    init.client = &client;
    init.context = this;
    init.device = &device_;
    init.user_handle = request.user_handle;
    init.signal_all = request.signal_all != 0;
    init.send.entries = std::bit_ceil(std::max(request.max_send_wr, 1U));
    init.send.max_sge = std::max(request.max_send_sge, 1U);
    init.send.max_inline = std::max(request.max_inline, ipc::kAutoInlineBytes);
    const std::uint32_t offset =
        init.service == transport::Service::kUd ? ipc::kDatagramPayloadOffset : ipc::kSendPayloadOffset;
    init.send.stride = ipc::send_slot_stride(offset, init.send.max_sge, init.send.max_inline);
    init.max_send_wr = request.max_send_wr;
    if (init.srq == nullptr && request.max_recv_wr != 0) {
        init.receive.entries = std::bit_ceil(request.max_recv_wr);
        init.receive.max_sge = std::max(request.max_recv_sge, 1U);
        init.receive.stride = ipc::receive_slot_stride(init.receive.max_sge);
        init.max_recv_wr = request.max_recv_wr;
    }
    auto qp = std::make_unique<Qp>(adapter_, init);
    if (const int error = qp->start(); error != 0) return error;
    reply = qp->description();
    reply.handle = qps_.add(std::move(qp));
    return 0;
}

int Context::modify_qp(const ipc::ModifyQpRequest& request) {
    Qp* qp = qps_.get(request.handle);
    return qp == nullptr ? ENOENT : qp->modify(request.attributes, request.mask);
}

int Context::query_qp(std::uint32_t handle, ipc::QueryQpReply& reply) {
    const Qp* qp = qps_.get(handle);
    if (qp == nullptr) return ENOENT;
    reply = qp->query();
    return 0;
}

int Context::destroy_qp(std::uint32_t handle, ipc::EventsReply& reply) {
    Qp* qp = qps_.get(handle);
    if (qp == nullptr) return ENOENT;
    if (qp->multicast_groups != 0) return EBUSY;
    qp->async_events -= qp->client().async_pipe().purge(qp->init().user_handle);
    reply.async_events = qp->async_events;
    qps_.take(handle);
    return 0;
}

int Context::attach_multicast(const ipc::MulticastRequest& request) {
    Qp* qp = qps_.get(request.qp);
    if (qp == nullptr) return ENOENT;
    net::Gid gid;
    std::copy(std::begin(request.gid), std::end(request.gid), gid.begin());
    return adapter_.multicast().attach(*qp, gid, request.lid);
}

int Context::detach_multicast(const ipc::MulticastRequest& request) {
    Qp* qp = qps_.get(request.qp);
    if (qp == nullptr) return ENOENT;
    net::Gid gid;
    std::copy(std::begin(request.gid), std::end(request.gid), gid.begin());
    return adapter_.multicast().detach(*qp, gid, request.lid);
}

}  // namespace uib::verbs
