#include "provider/wq.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "engine/ipc/control_rss.h"
#include "provider/async_events.h"
#include "provider/context.h"
#include "provider/cq.h"
#include "provider/post_recv.h"

namespace uib::provider {
namespace {

constexpr std::uint32_t kHashMask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;

int post_wq_recv(ibv_wq* wq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    return post_recv(&Wq::of(wq).receives.handle(), wr, bad);
}

int create(Wq& wq, ibv_context* verbs, ibv_wq_init_attr& wish) {
    Context& context = Context::of(verbs);
    Qp& receives = wq.receives;
    const ipc::CreateWqRequest request{reinterpret_cast<std::uint64_t>(&wq.verbs), wish.pd->handle,
                                       wish.cq->handle, wish.max_wr, wish.max_sge};
    ipc::QpReply made{};
    if (const int error = context.control().call(ipc::Operation::kCreateWq, request, made); error != 0)
        return error;
    RingMemory ring;
    if (made.slot >= ipc::kDoorbellSlots || !find_ring(context, made.receive, ring)) return EPROTO;
    receives.context = &context;
    receives.generation = context.generation();
    receives.recv_cq = &Cq::of(wish.cq);
    receives.service = IBV_QPT_RAW_PACKET;
    receives.pd = wish.pd->handle;
    receives.number = made.qp_number;
    receives.slot = made.slot;
    receives.rq.attach(ring);
    wq.verbs.context = verbs;
    wq.verbs.pd = wish.pd;
    wq.verbs.cq = wish.cq;
    wq.verbs.wq_num = made.qp_number;
    wq.verbs.handle = made.handle;
    wq.verbs.state = IBV_WQS_RESET;
    wq.verbs.wq_type = IBV_WQT_RQ;
    wq.verbs.post_recv = post_wq_recv;
    wish.max_wr = ring.entries;
    wish.max_sge = ring.max_sge;
    context.add_qp(&receives);
    return 0;
}

/// What posting knows of the state.
ibv_qp_state posting_state(ibv_wq_state state) {
    if (state == IBV_WQS_RESET) return IBV_QPS_RESET;
    return state == IBV_WQS_ERR ? IBV_QPS_ERR : IBV_QPS_RTR;
}

}  // namespace

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attributes) {
    int error = 0;
    const bool flags = (attributes->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0 && attributes->create_flags != 0;
    const bool unknown = (attributes->comp_mask & ~std::uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) != 0;
    if (attributes->wq_type != IBV_WQT_RQ || unknown || flags)
        error = EOPNOTSUPP;
    else if (attributes->pd == nullptr || attributes->cq == nullptr || attributes->cq->context != context)
        error = EINVAL;
    auto wq = std::make_unique<Wq>();
    if (error == 0) error = create(*wq, context, *attributes);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return &wq.release()->verbs;
}

int modify_wq(ibv_wq* handle, ibv_wq_attr* attributes) {
    constexpr std::uint32_t kKnown = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
    if ((attributes->attr_mask & ~kKnown) != 0) return EOPNOTSUPP;
    if ((attributes->attr_mask & IBV_WQ_ATTR_CURR_STATE) != 0 && attributes->curr_wq_state != handle->state)
        return EINVAL;
    if ((attributes->attr_mask & IBV_WQ_ATTR_STATE) == 0) return 0;
    Qp& receives = Wq::of(handle).receives;
    const ipc::ModifyWqRequest request{handle->handle, static_cast<std::uint32_t>(attributes->wq_state)};
    if (const int error = receives.context->control().command(ipc::Operation::kModifyWq, request); error != 0)
        return error;
    handle->state = attributes->wq_state;
    if (handle->state == IBV_WQS_RESET && !receives.inherited()) restart(receives);
    receives.state.store(posting_state(handle->state), std::memory_order_relaxed);
    return 0;
}

int destroy_wq(ibv_wq* handle) {
    Wq& wq = Wq::of(handle);
    Context& context = *wq.receives.context;
    ipc::EventsReply events{};
    const int error =
        context.control().call(ipc::Operation::kDestroyWq, ipc::HandleBody{handle->handle, 0}, events);
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<Wq> owner(&wq);
    if (wq.receives.inherited()) return 0;
    forget_completions(wq.receives);
    context.remove_qp(&wq.receives);
    settle_async_events(context, *handle, is_wq_event, error == 0, events.async_events,
                        wq.receives.async_events_read);
    return 0;
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* verbs, ibv_rwq_ind_table_init_attr* attributes) {
    ipc::CreateRwqTableRequest request{};
    ipc::HandleBody made{};
    int error = 0;
    if (attributes->comp_mask != 0)
        error = EOPNOTSUPP;
    else if (attributes->log_ind_tbl_size >= 32 ||
             (1U << attributes->log_ind_tbl_size) > Context::of(verbs).limits().max_rwq_table_entries)
        error = EINVAL;
    else
        request.entries = 1U << attributes->log_ind_tbl_size;
    for (std::uint32_t i = 0; i < std::min(request.entries, ipc::kMaxRwqTableEntries); ++i)
        request.wqs[i] = attributes->ind_tbl[i]->handle;
    auto table = std::make_unique<ibv_rwq_ind_table>();
    if (error == 0) error = Context::of(verbs).control().call(ipc::Operation::kCreateRwqTable, request, made);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    table->context = verbs;
    table->ind_tbl_handle = static_cast<int>(made.handle);
    table->ind_tbl_num = table->ind_tbl_handle;
    return table.release();
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* handle) {
    Context& context = Context::of(handle->context);
    const ipc::HandleBody request{static_cast<std::uint32_t>(handle->ind_tbl_handle), 0};
    const int error = context.control().command(ipc::Operation::kDestroyRwqTable, request);
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<ibv_rwq_ind_table> owner(handle);
    return 0;
}

// Queue pairs that spread frames.

bool wants_hash(const ibv_qp_init_attr_ex& wish) {
    return (wish.comp_mask & kHashMask) != 0;
}

int check_hash_qp(const ibv_context& context, const ibv_qp_init_attr_ex& wish) {
    constexpr std::uint32_t kKnown = kHashMask | IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    const ibv_rx_hash_conf& hash = wish.rx_hash_conf;
    if (wish.qp_type != IBV_QPT_RAW_PACKET || (wish.comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
    if ((wish.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && wish.create_flags != 0) return EOPNOTSUPP;
    if ((wish.comp_mask & kHashMask) != kHashMask || (wish.comp_mask & IBV_QP_INIT_ATTR_PD) == 0)
        return EINVAL;
    if (wish.pd == nullptr || wish.pd->context != &context || wish.rwq_ind_tbl == nullptr ||
        wish.rwq_ind_tbl->context != &context)
        return EINVAL;
    // All queues are those of the table.
    if (wish.send_cq != nullptr || wish.recv_cq != nullptr || wish.srq != nullptr ||
        wish.cap.max_send_wr != 0 || wish.cap.max_recv_wr != 0)
        return EINVAL;
    if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ) return EOPNOTSUPP;
    if (hash.rx_hash_fields_mask > ipc::kAllHashFields) return EOPNOTSUPP;
    return hash.rx_hash_key != nullptr && hash.rx_hash_key_len == ipc::kHashKeyBytes ? 0 : EINVAL;
}

int create_hash_qp(Qp& qp, ibv_context* verbs, const ibv_qp_init_attr_ex& wish) {
    Context& context = Context::of(verbs);
    qp.context = &context;
    qp.generation = context.generation();
    qp.service = IBV_QPT_RAW_PACKET;
    qp.pd = wish.pd->handle;
    ipc::CreateHashQpRequest request{};
    request.user_handle = reinterpret_cast<std::uint64_t>(&qp.verbs.qp);
    request.pd = wish.pd->handle;
    request.table = static_cast<std::uint32_t>(wish.rwq_ind_tbl->ind_tbl_handle);
    request.fields = static_cast<std::uint32_t>(wish.rx_hash_conf.rx_hash_fields_mask);
    std::memcpy(request.key, wish.rx_hash_conf.rx_hash_key, sizeof request.key);
    ipc::QpReply made{};
    const int error = context.control().call(ipc::Operation::kCreateHashQp, request, made);
    if (error != 0) return error;
    qp.number = made.qp_number;
    qp.slot = made.slot;
    fill_handle(qp, verbs, wish, made);
    context.add_qp(&qp);
    return 0;
}

}  // namespace uib::provider
