// Control operations on channels, completion queues and shared receive queues.

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
        request.max_sge > Limits::kMaxSge || request.kind > static_cast<std::uint32_t>(ipc::SrqKind::kXrc))
        return EINVAL;
    if (srqs_.live() >= Limits::kMaxSrq) return ENOMEM;
    RingShape shape;
    shape.entries = std::bit_ceil(request.max_wr);
    shape.max_sge = std::max(request.max_sge, 1U);
    shape.stride = ipc::receive_slot_stride(shape.max_sge);
    auto srq = std::make_unique<SharedReceiveQueue>(client, shape, request.user_handle, adapter_.xrc());
    if (srq->number() == 0 || !srq->allocate()) return ENOMEM;
    srq->max_wr = request.max_wr;
    srq->pd = pd;
    ++pd->uses;
    if (request.kind == static_cast<std::uint32_t>(ipc::SrqKind::kXrc)) {
        if (const int error = bind_xrc_srq(client, request, *srq); error != 0) return error;
    }
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

}  // namespace uib::verbs
