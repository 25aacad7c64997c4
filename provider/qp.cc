#include "provider/qp.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "provider/ah.h"
#include "provider/async_events.h"
#include "provider/context.h"
#include "provider/cq.h"
#include "provider/qp_attributes.h"
#include "provider/srq.h"
#include "provider/wq.h"
#include "provider/xrc.h"

namespace uib::provider {

bool find_ring(Context& context, const ipc::QueueLocation& where, RingMemory& ring) {
    ring.entries = where.entries;
    ring.stride = where.stride;
    ring.max_sge = where.max_sge;
    ring.max_inline = where.max_inline;
    if (ring.entries != 0) {
        ring.control = context.control().resolve_array<ipc::QueueControl>(where.control);
        ring.slots = context.control().resolve(where.slots, std::size_t{ring.entries} * ring.stride);
        if (ring.control == nullptr || ring.slots == nullptr) return false;
    }
    return true;
}

void fill_handle(Qp& qp, ibv_context* verbs, const ibv_qp_init_attr_ex& wish, const ipc::QpReply& made) {
    ibv_qp& handle = qp.handle();
    handle.context = verbs;
    handle.qp_context = wish.qp_context;
    if (wish.qp_type == IBV_QPT_XRC_RECV) {
        qp.verbs.comp_mask |= abi::kVerbsQpXrcd;
        qp.verbs.xrcd = &Xrcd::of(wish.xrcd).verbs;
    } else {
        handle.pd = wish.pd;
        handle.send_cq = wish.send_cq;
        handle.recv_cq = wish.recv_cq;
        handle.srq = wish.srq;
    }
    handle.handle = made.handle;
    handle.qp_num = made.qp_number;
    handle.state = IBV_QPS_RESET;
    handle.qp_type = wish.qp_type;
    ::pthread_mutex_init(&handle.mutex, nullptr);
    ::pthread_cond_init(&handle.cond, nullptr);
}

void forget_completions(Qp& qp) {
    if (qp.send_cq != nullptr) {
        const std::lock_guard lock(qp.send_cq->lock);
        qp.send_cq->forget(qp);
    }
    if (qp.recv_cq == qp.send_cq || qp.recv_cq == nullptr) return;
    const std::lock_guard lock(qp.recv_cq->lock);
    qp.recv_cq->forget(qp);
}

void restart(Qp& qp) {
    forget_completions(qp);
    {
        const std::lock_guard lock(qp.sq_lock);
        qp.sq.restart();
    }
    const std::lock_guard lock(qp.rq_lock);
    qp.rq.restart();
}

namespace {

constexpr std::uint32_t kKnownInitMask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                                         IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

bool known_type(ibv_qp_type type) {
    return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD || type == IBV_QPT_RAW_PACKET ||
           type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

bool has_receives(ibv_qp_type type) {
    return type != IBV_QPT_XRC_SEND && type != IBV_QPT_XRC_RECV;
}

/// What create_qp and create_qp_ex have in common to refuse. 0 or errno.
int check(const ibv_context& context, const ibv_qp_init_attr_ex& wish) {
    if (!known_type(wish.qp_type)) return EOPNOTSUPP;
    if ((wish.comp_mask & ~kKnownInitMask) != 0) return EOPNOTSUPP;
    if ((wish.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 &&
        (wish.create_flags & ~static_cast<std::uint32_t>(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)) != 0)
        return EOPNOTSUPP;
    if (wish.qp_type == IBV_QPT_XRC_RECV) {
        const bool has_domain = (wish.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && wish.xrcd != nullptr;
        const bool sends = (wish.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
        return has_domain && !sends && wish.xrcd->context == &context ? 0 : EINVAL;
    }
    if ((wish.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0) return EINVAL;
    if ((wish.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || wish.pd == nullptr || wish.pd->context != &context)
        return EINVAL;
    if (wish.send_cq == nullptr || wish.send_cq->context != &context) return EINVAL;
    if (!has_receives(wish.qp_type)) return 0;
    const bool good_receives = wish.recv_cq != nullptr && wish.recv_cq->context == &context &&
                               (wish.srq == nullptr || wish.srq->context == &context);
    return good_receives ? 0 : EINVAL;
}

ipc::CreateQpRequest to_request(const Qp& qp, const ibv_qp_init_attr_ex& wish) {
    ipc::CreateQpRequest request{};
    request.user_handle = reinterpret_cast<std::uint64_t>(&qp.verbs.qp);
    request.service = static_cast<std::uint32_t>(wish.qp_type);
    request.create_flags = wish.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? wish.create_flags : 0;
    if (wish.qp_type == IBV_QPT_XRC_RECV) {
        request.xrcd = Xrcd::of(wish.xrcd).verbs.handle + 1;
        return request;
    }
    request.pd = wish.pd->handle;
    request.send_cq = wish.send_cq->handle;
    request.signal_all = wish.sq_sig_all != 0;
    request.max_send_wr = wish.cap.max_send_wr;
    request.max_send_sge = wish.cap.max_send_sge;
    request.max_inline = wish.cap.max_inline_data;
    if (!has_receives(wish.qp_type)) return request;
    request.recv_cq = wish.recv_cq->handle;
    request.srq = wish.srq == nullptr ? 0 : wish.srq->handle + 1;
    request.max_recv_wr = wish.srq == nullptr ? wish.cap.max_recv_wr : 0;
    request.max_recv_sge = wish.srq == nullptr ? wish.cap.max_recv_sge : 0;
    return request;
}

/// What the queues really take: posting refuses the next one.
ibv_qp_cap capacities(const Qp& qp) {
    const RingMemory& send = qp.sq.memory();
    const RingMemory& receive = qp.rq.memory();
    return {send.entries, receive.entries, send.max_sge, receive.max_sge, send.max_inline};
}

/// What the program asked for, before the engine is told.
int prepare(Qp& qp, Context& context, const ibv_qp_init_attr_ex& wish) {
    qp.context = &context;
    qp.generation = context.generation();
    qp.service = wish.qp_type;
    if (wish.qp_type == IBV_QPT_XRC_RECV) return 0;
    qp.send_cq = &Cq::of(wish.send_cq);
    if (has_receives(wish.qp_type)) {
        qp.recv_cq = &Cq::of(wish.recv_cq);
        qp.srq = wish.srq == nullptr ? nullptr : &Srq::of(wish.srq);
    }
    qp.pd = wish.pd->handle;
    qp.signal_all = wish.sq_sig_all != 0;
    qp.payload_offset = wish.qp_type == IBV_QPT_UD ? ipc::kDatagramPayloadOffset : ipc::kSendPayloadOffset;
    if ((wish.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
        if (!install_wr_api(qp, wish.send_ops_flags)) return EOPNOTSUPP;
        qp.verbs.comp_mask |= abi::kVerbsQpExtended;
    }
    return 0;
}

/// What the engine made, as the handle shows it.
int adopt(Qp& qp, ibv_context* verbs, const ibv_qp_init_attr_ex& wish, const ipc::QpReply& made) {
    Context& context = *qp.context;
    RingMemory send, receive;
    const bool good_slot =
        wish.qp_type == IBV_QPT_XRC_RECV ? made.slot == kNoSlot : made.slot < ipc::kDoorbellSlots;
    if (!good_slot || !find_ring(context, made.send, send) || !find_ring(context, made.receive, receive))
        return EPROTO;
    qp.sq.attach(send, context.staging());
    qp.rq.attach(receive);
    qp.number = made.qp_number;
    qp.slot = made.slot;
    fill_handle(qp, verbs, wish, made);
    context.add_qp(&qp);
    return 0;
}

int create(Qp& qp, ibv_context* verbs, ibv_qp_init_attr_ex& wish) {
    Context& context = Context::of(verbs);
    if (const int error = prepare(qp, context, wish); error != 0) return error;
    ipc::QpReply made{};
    int error = context.control().call(ipc::Operation::kCreateQp, to_request(qp, wish), made);
    if (error == 0) error = adopt(qp, verbs, wish, made);
    if (error == 0) wish.cap = capacities(qp);
    return error;
}

int multicast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid, ipc::Operation operation) {
    if (qp->qp_type != IBV_QPT_UD) return EINVAL;
    ipc::MulticastRequest request{};
    request.qp = qp->handle;
    request.lid = lid;
    std::memcpy(request.gid, gid->raw, sizeof request.gid);
    return Qp::of(qp).context->control().command(operation, request);
}

}  // namespace

bool Qp::inherited() const {
    return context->inherited(generation);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
    const bool hashes = wants_hash(*attributes);
    int error = hashes ? check_hash_qp(*context, *attributes) : check(*context, *attributes);
    auto qp = std::make_unique<Qp>();
    if (error == 0)
        error = hashes ? create_hash_qp(*qp, context, *attributes) : create(*qp, context, *attributes);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return &qp.release()->handle();
}

ibv_qp* open_qp(ibv_context* verbs, ibv_qp_open_attr* attributes) {
    constexpr std::uint32_t kWanted = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    const std::uint32_t mask = attributes->comp_mask & ~static_cast<std::uint32_t>(IBV_QP_OPEN_ATTR_CONTEXT);
    const bool good = mask == kWanted && attributes->qp_type == IBV_QPT_XRC_RECV &&
                      attributes->xrcd != nullptr && attributes->xrcd->context == verbs;
    if (!good) {
        errno = EINVAL;
        return nullptr;
    }
    ibv_qp_init_attr_ex wish{};
    wish.qp_type = attributes->qp_type;
    wish.xrcd = attributes->xrcd;
    if ((attributes->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0) wish.qp_context = attributes->qp_context;
    auto qp = std::make_unique<Qp>();
    Context& context = Context::of(verbs);
    int error = prepare(*qp, context, wish);
    const ipc::OpenQpRequest request{reinterpret_cast<std::uint64_t>(&qp->verbs.qp),
                                     Xrcd::of(attributes->xrcd).verbs.handle, attributes->qp_num};
    ipc::QpReply made{};
    if (error == 0) error = context.control().call(ipc::Operation::kOpenQp, request, made);
    if (error == 0) error = adopt(*qp, verbs, wish, made);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return &qp.release()->handle();
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
    ibv_qp_init_attr_ex extended{};
    extended.qp_context = attributes->qp_context;
    extended.send_cq = attributes->send_cq;
    extended.recv_cq = attributes->recv_cq;
    extended.srq = attributes->srq;
    extended.cap = attributes->cap;
    extended.qp_type = attributes->qp_type;
    extended.sq_sig_all = attributes->sq_sig_all;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd;
    ibv_qp* qp = create_qp_ex(pd->context, &extended);
    if (qp != nullptr) attributes->cap = extended.cap;
    return qp;
}

int modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
    Qp& qp = Qp::of(handle);
    ipc::ModifyQpRequest request{};
    request.handle = handle->handle;
    request.mask = static_cast<std::uint32_t>(mask);
    request.attributes = to_ipc(*attributes, mask);
    if (const int error = qp.context->control().command(ipc::Operation::kModifyQp, request); error != 0)
        return error;
    if (mask & IBV_QP_PORT) qp.port.store(attributes->port_num, std::memory_order_relaxed);
    if (mask & IBV_QP_STATE) {
        if (attributes->qp_state == IBV_QPS_RESET && !qp.inherited()) restart(qp);
        qp.state.store(attributes->qp_state, std::memory_order_relaxed);
    }
    return 0;
}

int query_qp(ibv_qp* handle, ibv_qp_attr* attributes, int, ibv_qp_init_attr* init) {
    Qp& qp = Qp::of(handle);
    ipc::QueryQpReply reply{};
    const int error =
        qp.context->control().call(ipc::Operation::kQueryQp, ipc::HandleBody{handle->handle, 0}, reply);
    if (error != 0) return error;
    *attributes = from_ipc(reply.attributes);
    attributes->cap = capacities(qp);
    *init = {handle->qp_context,
             handle->send_cq,
             handle->recv_cq,
             handle->srq,
             attributes->cap,
             handle->qp_type,
             static_cast<int>(reply.signal_all)};
    qp.state.store(attributes->qp_state, std::memory_order_relaxed);
    return 0;
}

int destroy_qp(ibv_qp* handle) {
    Qp& qp = Qp::of(handle);
    Context& context = *qp.context;
    ipc::EventsReply events{};
    const int error =
        context.control().call(ipc::Operation::kDestroyQp, ipc::HandleBody{handle->handle, 0}, events);
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<Qp> owner(&qp);
    if (qp.inherited()) return 0;
    forget_completions(qp);
    context.remove_qp(&qp);
    {
        const std::lock_guard lock(qp.sq_lock);
        qp.sq.unstage_all();
    }
    settle_async_events(context, *handle, is_qp_event, error == 0, events.async_events, qp.async_events_read);
    return 0;
}

int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
    return multicast(qp, gid, lid, ipc::Operation::kAttachMulticast);
}

int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
    return multicast(qp, gid, lid, ipc::Operation::kDetachMulticast);
}

}  // namespace uib::provider
