// Completion queues: create, resize, moderation, destroy.
#include <cerrno>
#include <memory>
#include <mutex>

#include "engine/ipc/control_cq.h"
#include "provider/context.h"
#include "provider/cq.h"
#include "provider/events.h"

namespace uib::provider {
namespace {

struct CqWish {
    std::uint32_t entries;
    ibv_comp_channel* channel;
    std::uint32_t vector;
    std::uint32_t flags;
};

/// The arena's addresses of a ring that the engine made; false if it names none.
bool attach(Cq& cq, const ipc::CqReply& made) {
    auto& control = cq.context->control();
    auto* head = control.resolve_array<ipc::CqControl>(made.control);
    auto* ring = control.resolve_array<ipc::Cqe>(made.ring, made.entries);
    if (head == nullptr || ring == nullptr || made.entries == 0 || (made.entries & (made.entries - 1)) != 0)
        return false;
    cq.ring.attach(head, ring, made.entries);
    cq.handle().cqe = static_cast<int>(made.entries);
    return true;
}

int create(Cq& cq, ibv_context* verbs, const CqWish& wish) {
    Context& context = Context::of(verbs);
    if (wish.entries == 0 || wish.entries > context.limits().max_cqe) return EINVAL;
    if (wish.vector >= static_cast<std::uint32_t>(verbs->num_comp_vectors)) return EINVAL;
    cq.context = &context;
    cq.generation = context.generation();
    cq.channel = wish.channel;
    ipc::CreateCqRequest request{};
    request.user_handle = reinterpret_cast<std::uint64_t>(&cq.handle());
    request.entries = wish.entries;
    request.completion_vector = wish.vector;
    request.flags = wish.flags;
    if (wish.channel != nullptr) {
        const auto handle = context.channels().handle_of(wish.channel->fd);
        if (!handle) return EINVAL;
        request.channel = *handle + 1;
    }
    ipc::CqReply made{};
    if (const int error = context.control().call(ipc::Operation::kCreateCq, request, made); error != 0)
        return error;
    cq.handle().handle = made.handle;
    if (!attach(cq, made)) return EPROTO;
    context.add_cq(&cq);
    return 0;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
    auto cq = std::make_unique<Cq>();
    const int error =
        cqe <= 0 || comp_vector < 0
            ? EINVAL
            : create(*cq, context,
                     {static_cast<std::uint32_t>(cqe), channel, static_cast<std::uint32_t>(comp_vector), 0});
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return &cq.release()->handle();
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
    constexpr std::uint64_t kKnownFields =
        (IBV_CREATE_CQ_SUP_WC_FLAGS) & ~static_cast<std::uint64_t>(IBV_WC_EX_WITH_TM_INFO);
    constexpr std::uint32_t kKnownFlags =
        IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    const std::uint32_t flags = attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attributes->flags : 0;
    int error = 0;
    // Tag matching belongs to a kind of SRQ that uib has not.
    if ((attributes->wc_flags & ~kKnownFields) != 0 || (flags & ~kKnownFlags) != 0) error = EOPNOTSUPP;
    if ((attributes->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) != 0)
        error = EINVAL;
    auto cq = std::make_unique<Cq>();
    if (error == 0) {
        const std::uint32_t wish = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN ? ipc::kCqIgnoreOverrun : 0U;
        error = create(*cq, context, {attributes->cqe, attributes->channel, attributes->comp_vector, wish});
    }
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    if (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) cq->lock.disable();
    install_extended_poll(cq->verbs.cq_ex, attributes->wc_flags);
    return &cq.release()->verbs.cq_ex;
}

int resize_cq(ibv_cq* handle, int cqe) {
    Cq& cq = Cq::of(handle);
    if (cqe <= 0 || static_cast<std::uint32_t>(cqe) > cq.context->limits().max_cqe) return EINVAL;
    if (cq.inherited()) return EIO;
    // Nobody may poll while the engine moves the entries.
    const std::lock_guard lock(cq.lock);
    cq.ring.release();
    ipc::CqReply made{};
    const ipc::ResizeCqRequest request{handle->handle, static_cast<std::uint32_t>(cqe)};
    if (const int error = cq.context->control().call(ipc::Operation::kResizeCq, request, made); error != 0)
        return error;
    return attach(cq, made) ? 0 : EPROTO;
}

int modify_cq(ibv_cq* handle, ibv_modify_cq_attr* attributes) {
    if ((attributes->attr_mask & ~IBV_CQ_ATTR_MODERATE) != 0) return EOPNOTSUPP;
    if ((attributes->attr_mask & IBV_CQ_ATTR_MODERATE) == 0) return 0;
    const ipc::ModifyCqRequest request{handle->handle, attributes->moderate.cq_count,
                                       attributes->moderate.cq_period};
    return Cq::of(handle).context->control().command(ipc::Operation::kModifyCq, request);
}

int destroy_cq(ibv_cq* handle) {
    Cq& cq = Cq::of(handle);
    Context& context = *cq.context;
    ipc::EventsReply events{};
    const int error =
        context.control().call(ipc::Operation::kDestroyCq, ipc::HandleBody{handle->handle, 0}, events);
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<Cq> owner(&cq);
    if (cq.inherited()) return 0;
    context.remove_cq(&cq);
    const auto element = reinterpret_cast<std::uint64_t>(handle);
    int unread = 0;
    if (cq.channel != nullptr)
        unread = purge_events(cq.channel->fd, context.channels().write_fd_of(cq.channel->fd), sizeof element,
                              element);
    const int unread_async = purge_events(context.async_read_fd(), context.async_write_fd(),
                                          sizeof(ipc::AsyncEvent), element, is_cq_event);
    await_acknowledged(handle->mutex, handle->cond, handle->comp_events_completed,
                       owed_events(error == 0, events.completion_events, unread, cq.completion_events_read));
    await_acknowledged(handle->mutex, handle->cond, handle->async_events_completed,
                       owed_events(error == 0, events.async_events, unread_async, cq.async_events_read));
    return 0;
}

void cq_event(ibv_cq* handle) {
    ++Cq::of(handle).completion_events_read;
}

}  // namespace uib::provider
