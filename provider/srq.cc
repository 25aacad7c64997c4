#include "provider/srq.h"

#include <cerrno>
#include <memory>

#include "provider/context.h"
#include "provider/events.h"

namespace uib::provider {
namespace {

int create(Srq& srq, ibv_pd* pd, const ibv_srq_attr& wish) {
    Context& context = Context::of(pd->context);
    srq.context = &context;
    srq.generation = context.generation();
    srq.pd = pd->handle;
    ipc::CreateSrqRequest request{};
    request.user_handle = reinterpret_cast<std::uint64_t>(&srq.verbs.srq);
    request.pd = pd->handle;
    request.max_wr = wish.max_wr;
    request.max_sge = wish.max_sge;
    // libibverbs has no limit at creation (the field is ignored): it is armed by ibv_modify_srq.
    ipc::SrqReply made{};
    if (const int error = context.control().call(ipc::Operation::kCreateSrq, request, made); error != 0)
        return error;
    RingMemory ring{};
    ring.entries = made.queue.entries;
    ring.stride = made.queue.stride;
    ring.max_sge = made.queue.max_sge;
    ring.control = context.control().resolve_array<ipc::QueueControl>(made.queue.control);
    ring.slots = context.control().resolve(made.queue.slots, std::size_t{ring.entries} * ring.stride);
    auto* available = context.control().resolve_array<std::uint32_t>(made.available, ring.entries);
    if (ring.control == nullptr || ring.slots == nullptr || available == nullptr) return EPROTO;
    srq.queue.attach(ring, available);
    srq.verbs.srq.handle = made.handle;
    srq.verbs.type = IBV_SRQT_BASIC;
    srq.verbs.number = made.srq_number;
    return 0;
}

}  // namespace

bool Srq::inherited() const {
    return context->inherited(generation);
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
    auto srq = std::make_unique<Srq>();
    if (const int error = create(*srq, pd, attributes->attr); error != 0) {
        errno = error;
        return nullptr;
    }
    attributes->attr.max_wr = srq->queue.memory().entries;
    attributes->attr.max_sge = srq->queue.memory().max_sge;
    return &srq.release()->verbs.srq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
    constexpr std::uint32_t kKnown = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    const bool basic =
        (attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || attributes->srq_type == IBV_SRQT_BASIC;
    if (!basic || (attributes->comp_mask & ~kKnown) != 0) {
        errno = EOPNOTSUPP;
        return nullptr;
    }
    if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes->pd->context != context) {
        errno = EINVAL;
        return nullptr;
    }
    ibv_srq_init_attr plain{attributes->srq_context, attributes->attr};
    ibv_srq* srq = create_srq(attributes->pd, &plain);
    if (srq == nullptr) return nullptr;
    attributes->attr = plain.attr;
    srq->context = context;
    srq->srq_context = attributes->srq_context;
    srq->pd = attributes->pd;
    srq->events_completed = 0;
    ::pthread_mutex_init(&srq->mutex, nullptr);
    ::pthread_cond_init(&srq->cond, nullptr);
    return srq;
}

int modify_srq(ibv_srq* handle, ibv_srq_attr* attributes, int mask) {
    if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
    const ipc::ModifySrqRequest request{handle->handle, static_cast<std::uint32_t>(mask), attributes->max_wr,
                                        attributes->srq_limit};
    return Srq::of(handle).context->control().command(ipc::Operation::kModifySrq, request);
}

int query_srq(ibv_srq* handle, ibv_srq_attr* attributes) {
    ipc::QuerySrqReply reply{};
    const int error = Srq::of(handle).context->control().call(ipc::Operation::kQuerySrq,
                                                              ipc::HandleBody{handle->handle, 0}, reply);
    if (error != 0) return error;
    attributes->max_wr = Srq::of(handle).queue.memory().entries;
    attributes->max_sge = Srq::of(handle).queue.memory().max_sge;
    attributes->srq_limit = reply.limit;
    return 0;
}

int destroy_srq(ibv_srq* handle) {
    Srq& srq = Srq::of(handle);
    Context& context = *srq.context;
    ipc::EventsReply events{};
    const int error =
        context.control().call(ipc::Operation::kDestroySrq, ipc::HandleBody{handle->handle, 0}, events);
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<Srq> owner(&srq);
    if (srq.inherited()) return 0;
    const int unread =
        purge_events(context.async_read_fd(), context.async_write_fd(), sizeof(ipc::AsyncEvent),
                     reinterpret_cast<std::uint64_t>(handle), is_srq_event);
    await_acknowledged(handle->mutex, handle->cond, handle->events_completed,
                       owed_events(error == 0, events.async_events, unread, srq.async_events_read));
    return 0;
}

int get_srq_num(ibv_srq* handle, std::uint32_t* number) {
    *number = Srq::of(handle).verbs.number;
    return 0;
}

}  // namespace uib::provider
