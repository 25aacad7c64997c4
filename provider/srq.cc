#include "provider/srq.h"

#include <cerrno>
#include <memory>
#include <mutex>

#include "engine/ipc/control_srq.h"
#include "provider/async_events.h"
#include "provider/context.h"
#include "provider/cq.h"
#include "provider/xrc.h"

namespace uib::provider {
namespace {

/// XRC, if `xrcd` is there; its receives then complete on `cq`.
struct XrcWish {
    ibv_xrcd* xrcd = nullptr;
    ibv_cq* cq = nullptr;
};

int create(Srq& srq, ibv_pd* pd, const ibv_srq_attr& wish, const XrcWish& xrc) {
    Context& context = Context::of(pd->context);
    srq.context = &context;
    srq.generation = context.generation();
    srq.pd = pd->handle;
    ipc::CreateSrqRequest request{};
    request.user_handle = reinterpret_cast<std::uint64_t>(&srq.verbs.srq);
    request.pd = pd->handle;
    request.max_wr = wish.max_wr;
    request.max_sge = wish.max_sge;
    if (xrc.xrcd != nullptr) {
        request.kind = static_cast<std::uint32_t>(ipc::SrqKind::kXrc);
        request.xrcd = Xrcd::of(xrc.xrcd).verbs.handle + 1;
        request.cq = xrc.cq->handle + 1;
    }
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
    if (xrc.xrcd == nullptr) return 0;
    srq.verbs.type = IBV_SRQT_XRC;
    srq.verbs.xrcd = &Xrcd::of(xrc.xrcd).verbs;
    srq.verbs.cq = xrc.cq;
    srq.cq = &Cq::of(xrc.cq);
    const std::lock_guard lock(srq.cq->lock);
    srq.cq->xrc_srqs.push_back(&srq);
    return 0;
}

ibv_srq* make(ibv_pd* pd, ibv_srq_attr& attributes, const XrcWish& xrc) {
    auto srq = std::make_unique<Srq>();
    if (const int error = create(*srq, pd, attributes, xrc); error != 0) {
        errno = error;
        return nullptr;
    }
    attributes.max_wr = srq->queue.memory().entries;
    attributes.max_sge = srq->queue.memory().max_sge;
    return &srq.release()->verbs.srq;
}

/// 0 or errno; `xrc` is filled for an XRC SRQ.
int check(const ibv_context* context, const ibv_srq_init_attr_ex& wish, XrcWish& xrc) {
    constexpr std::uint32_t kBasic = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    constexpr std::uint32_t kXrc = kBasic | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const ibv_srq_type type = (wish.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 ? IBV_SRQT_BASIC : wish.srq_type;
    if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) return EOPNOTSUPP;
    if ((wish.comp_mask & ~kXrc) != 0) return EOPNOTSUPP;
    if ((wish.comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || wish.pd->context != context) return EINVAL;
    if (type == IBV_SRQT_BASIC) return (wish.comp_mask & ~kBasic) == 0 ? 0 : EINVAL;
    if (wish.comp_mask != kXrc || wish.xrcd == nullptr || wish.cq == nullptr) return EINVAL;
    if (wish.xrcd->context != context || wish.cq->context != context) return EINVAL;
    xrc = {wish.xrcd, wish.cq};
    return 0;
}

}  // namespace

bool Srq::inherited() const {
    return context->inherited(generation);
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
    return make(pd, attributes->attr, {});
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
    XrcWish xrc;
    if (const int error = check(context, *attributes, xrc); error != 0) {
        errno = error;
        return nullptr;
    }
    ibv_srq* srq = make(attributes->pd, attributes->attr, xrc);
    if (srq == nullptr) return nullptr;
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
    if (srq.cq != nullptr) {
        const std::lock_guard lock(srq.cq->lock);
        srq.cq->forget(srq);
    }
    settle_async_events(context, *handle, is_srq_event, error == 0, events.async_events,
                        srq.async_events_read);
    return 0;
}

int get_srq_num(ibv_srq* handle, std::uint32_t* number) {
    *number = Srq::of(handle).verbs.number;
    return 0;
}

}  // namespace uib::provider
