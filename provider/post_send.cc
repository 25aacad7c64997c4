#include "provider/post_send.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "provider/ah.h"
#include "provider/context.h"
#include "provider/waiting.h"

namespace uib::provider {
namespace {

using ipc::WorkOpcode;

constexpr std::uint8_t kOnRc = 1, kOnUc = 2, kOnUd = 4, kOnXrc = 8, kOnRaw = 16;
constexpr std::uint8_t kReliable = kOnRc | kOnXrc, kConnected = kReliable | kOnUc;

/// Services by WorkOpcode. Invalidation on the wire is RC's and XRC's alone (IBA table 38).
constexpr std::array<std::uint8_t, ipc::kWorkOpcodeCount> kServices = {kConnected | kOnUd | kOnRaw,
                                                                       kConnected | kOnUd,
                                                                       kReliable,
                                                                       kConnected,
                                                                       kConnected,
                                                                       kReliable,
                                                                       kReliable,
                                                                       kReliable,
                                                                       kConnected,
                                                                       kConnected,
                                                                       kReliable};

constexpr std::uint64_t kAtomicWriteBytes = 8;

constexpr bool carries_payload(WorkOpcode opcode) {
    return opcode <= WorkOpcode::kRdmaWriteWithImmediate || opcode == WorkOpcode::kAtomicWrite;
}

std::byte* payload_of(const Qp& qp, ipc::SendWqe& wqe) {
    return reinterpret_cast<std::byte*>(&wqe) + qp.payload_offset;
}

int check_length(const Qp& qp, const ipc::SendWqe& wqe, std::uint64_t total) {
    if (total > kMaxMessageBytes) return EINVAL;
    if (static_cast<WorkOpcode>(wqe.opcode) == WorkOpcode::kAtomicWrite && total != kAtomicWriteBytes)
        return EINVAL;
    if (qp.service != IBV_QPT_UD) return 0;
    return total <= qp.context->port(qp.port.load(std::memory_order_relaxed))
                        .mtu_bytes.load(std::memory_order_relaxed)
               ? 0
               : EINVAL;
}

/// Where this process has the bytes of `entry`; null if it may not reach them, or if the engine does so as
/// well as we (only asked for `private_only`).
const void* locate(const Qp& qp, const ibv_sge& entry, bool private_only) {
    const LkeyTable::Entry* region = qp.context->lkeys().find(entry.lkey, qp.pd);
    if (region == nullptr || region->place.load(std::memory_order_relaxed) != RegionPlace::kHere)
        return nullptr;
    if (private_only && region->mapped.load(std::memory_order_relaxed)) return nullptr;
    return reinterpret_cast<const void*>(region->locate(entry.addr, entry.length));
}

/// Copies the list's bytes to `to` if this process may reach all of them; false if not.
bool copy_in(const Qp& qp, std::byte* to, std::span<const ibv_sge> list) {
    for (const ibv_sge& entry : list) {
        if (entry.length == 0) continue;
        const void* from = locate(qp, entry, false);
        if (from == nullptr) return false;
        std::memcpy(to, from, entry.length);
        to += entry.length;
    }
    return true;
}

/// Puts the list's `total` bytes behind the header; false, and nothing is changed, if that cannot be.
bool put_inline(const Qp& qp, ipc::SendWqe& wqe, std::span<const ibv_sge> list, std::uint64_t total) {
    if (total > ipc::kAutoInlineBytes || total > qp.sq.memory().max_inline || total > qp.payload_room())
        return false;
    if (!copy_in(qp, payload_of(qp, wqe), list)) return false;
    wqe.flags |= ipc::kWorkInline;
    wqe.inline_length = static_cast<std::uint32_t>(total);
    return true;
}

/// Puts the list's `total` bytes into the staging pool; false, and nothing is changed, if that cannot be or
/// would gain nothing.
bool put_staged(Qp& qp, ipc::SendWqe& wqe, std::span<const ibv_sge> list, std::uint64_t total) {
    const bool idle = qp.sq.outstanding() == 0 && yield_after_polls() != 0;
    if (total > (idle ? StagingPool::kMaxIdlePayload : StagingPool::kMaxPayload)) return false;
    for (const ibv_sge& entry : list)
        if (entry.length != 0 && locate(qp, entry, true) == nullptr) return false;
    std::byte* to = qp.sq.stage(wqe, static_cast<std::uint32_t>(total));
    if (to == nullptr) return false;
    if (copy_in(qp, to, list)) return true;
    qp.sq.unstage(wqe);  // a region went while we looked
    return false;
}

bool to_work_opcode(ibv_wr_opcode opcode, WorkOpcode& result) {
    switch (opcode) {
        case IBV_WR_SEND:
            result = WorkOpcode::kSend;
            return true;
        case IBV_WR_SEND_WITH_IMM:
            result = WorkOpcode::kSendWithImmediate;
            return true;
        case IBV_WR_SEND_WITH_INV:
            result = WorkOpcode::kSendWithInvalidate;
            return true;
        case IBV_WR_RDMA_WRITE:
            result = WorkOpcode::kRdmaWrite;
            return true;
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            result = WorkOpcode::kRdmaWriteWithImmediate;
            return true;
        case IBV_WR_RDMA_READ:
            result = WorkOpcode::kRdmaRead;
            return true;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            result = WorkOpcode::kCompareSwap;
            return true;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            result = WorkOpcode::kFetchAdd;
            return true;
        case IBV_WR_BIND_MW:
            result = WorkOpcode::kBindWindow;
            return true;
        case IBV_WR_LOCAL_INV:
            result = WorkOpcode::kLocalInvalidate;
            return true;
        case IBV_WR_ATOMIC_WRITE:
            result = WorkOpcode::kAtomicWrite;
            return true;
        default:
            return false;
    }
}

int set_operation(const Qp& qp, ipc::SendWqe& wqe, const ibv_send_wr& wr) {
    if (qp.service == IBV_QPT_XRC_SEND) wqe.remote_qpn = wr.qp_type.xrc.remote_srqn;
    switch (static_cast<WorkOpcode>(wqe.opcode)) {
        case WorkOpcode::kRdmaWrite:
        case WorkOpcode::kRdmaWriteWithImmediate:
        case WorkOpcode::kRdmaRead:
        case WorkOpcode::kAtomicWrite:
            wqe.remote_address = wr.wr.rdma.remote_addr;
            wqe.rkey = wr.wr.rdma.rkey;
            wqe.immediate = wr.imm_data;
            return 0;
        case WorkOpcode::kCompareSwap:
        case WorkOpcode::kFetchAdd:
            wqe.remote_address = wr.wr.atomic.remote_addr;
            wqe.rkey = wr.wr.atomic.rkey;
            wqe.compare_add = wr.wr.atomic.compare_add;
            wqe.swap = wr.wr.atomic.swap;
            return 0;
        case WorkOpcode::kBindWindow:
            if (wr.bind_mw.mw == nullptr || wr.bind_mw.mw->type != IBV_MW_TYPE_2) return EINVAL;
            return set_window(wqe, *wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
        default:
            wqe.immediate = wr.imm_data;  // or the key to invalidate: they share the field
            if (qp.service != IBV_QPT_UD) return 0;
            return set_destination(qp, wqe, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    }
}

int set_payload(Qp& qp, ipc::SendWqe& wqe, const ibv_send_wr& wr) {
    const auto opcode = static_cast<WorkOpcode>(wqe.opcode);
    if (opcode == WorkOpcode::kBindWindow || opcode == WorkOpcode::kLocalInvalidate) return 0;
    if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.sq.memory().max_sge) return EINVAL;
    const std::span<const ibv_sge> list(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
    if ((wr.send_flags & IBV_SEND_INLINE) == 0) return set_scatter_list(qp, wqe, list);
    std::array<ibv_data_buf, 256> buffers;
    if (list.size() > buffers.size()) return EINVAL;
    for (std::size_t i = 0; i < list.size(); ++i)
        buffers[i] = {reinterpret_cast<void*>(list[i].addr), list[i].length};
    return set_inline_data(qp, wqe, std::span(buffers).first(list.size()));
}

int write_request(Qp& qp, const ibv_send_wr& wr, std::uint32_t ahead) {
    WorkOpcode opcode{};
    if (!to_work_opcode(wr.opcode, opcode)) return EINVAL;
    ipc::SendWqe* wqe = nullptr;
    int error = begin_request(qp, ahead, opcode, wr.wr_id, wr.send_flags, wqe);
    if (error == 0) error = set_operation(qp, *wqe, wr);
    if (error == 0) error = set_payload(qp, *wqe, wr);
    return error;
}

}  // namespace

bool service_has(ibv_qp_type service, WorkOpcode opcode) {
    std::uint8_t mask = 0;
    if (service == IBV_QPT_RC) mask = kOnRc;
    if (service == IBV_QPT_UC) mask = kOnUc;
    if (service == IBV_QPT_UD) mask = kOnUd;
    if (service == IBV_QPT_XRC_SEND) mask = kOnXrc;
    if (service == IBV_QPT_RAW_PACKET) mask = kOnRaw;
    return (kServices[static_cast<std::size_t>(opcode)] & mask) != 0;
}

int check_may_post(const Qp& qp) {
    if (!qp.context->alive() || qp.inherited()) return EIO;
    const std::uint32_t state = qp.state.load(std::memory_order_relaxed);
    return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR
               ? 0
               : EINVAL;
}

int begin_request(Qp& qp, std::uint32_t ahead, WorkOpcode opcode, std::uint64_t wr_id, unsigned flags,
                  ipc::SendWqe*& wqe) {
    if (!service_has(qp.service, opcode) || (flags & IBV_SEND_IP_CSUM) != 0) return EINVAL;
    if (!qp.sq.has_room(ahead)) return ENOMEM;
    wqe = qp.sq.wqe(qp.sq.producer() + ahead);
    *wqe = {};
    wqe->opcode = static_cast<std::uint8_t>(opcode);
    if (flags & IBV_SEND_FENCE) wqe->flags |= ipc::kWorkFence;
    if ((flags & IBV_SEND_SIGNALED) != 0 || qp.signal_all) wqe->flags |= ipc::kWorkSignaled;
    if (flags & IBV_SEND_SOLICITED) wqe->flags |= ipc::kWorkSolicited;
    wqe->wr_id = wr_id;
    return 0;
}

int set_destination(const Qp& qp, ipc::SendWqe& wqe, ibv_ah* handle, std::uint32_t qpn, std::uint32_t qkey) {
    if (handle == nullptr) return EINVAL;
    const Ah& ah = Ah::of(handle);
    if (ah.pd != qp.pd || ah.vector.port != qp.port.load(std::memory_order_relaxed)) return EINVAL;
    std::memcpy(reinterpret_cast<std::byte*>(&wqe) + ipc::kDatagramAddressOffset, &ah.vector,
                sizeof ah.vector);
    wqe.remote_qpn = qpn;
    wqe.remote_qkey = qkey;
    return 0;
}

int set_scatter_list(Qp& qp, ipc::SendWqe& wqe, std::span<const ibv_sge> list) {
    if (list.size() > qp.sq.memory().max_sge) return EINVAL;
    std::uint64_t total = 0;
    for (const ibv_sge& entry : list) total += entry.length;
    if (const int error = check_length(qp, wqe, total); error != 0) return error;
    // A fenced request may send what an earlier READ or atomic is still to bring: its bytes are not final
    // yet.
    const bool settled = (wqe.flags & ipc::kWorkFence) == 0;
    if (settled && total != 0 && carries_payload(static_cast<WorkOpcode>(wqe.opcode)) &&
        (put_inline(qp, wqe, list, total) || put_staged(qp, wqe, list, total)))
        return 0;
    auto* to = reinterpret_cast<ipc::ScatterGatherEntry*>(payload_of(qp, wqe));
    for (const ibv_sge& entry : list) *to++ = {entry.addr, entry.length, entry.lkey};
    wqe.sge_count = static_cast<std::uint8_t>(list.size());
    return 0;
}

int set_inline_data(const Qp& qp, ipc::SendWqe& wqe, std::span<const ibv_data_buf> buffers) {
    if (!carries_payload(static_cast<WorkOpcode>(wqe.opcode))) return EINVAL;
    std::uint64_t total = 0;
    for (const ibv_data_buf& buffer : buffers) {
        if (buffer.length > qp.sq.memory().max_inline) return EINVAL;
        total += buffer.length;
    }
    if (total > qp.sq.memory().max_inline || total > qp.payload_room()) return EINVAL;
    if (const int error = check_length(qp, wqe, total); error != 0) return error;
    std::byte* to = payload_of(qp, wqe);
    for (const ibv_data_buf& buffer : buffers) {
        if (buffer.length == 0) continue;
        std::memcpy(to, buffer.addr, buffer.length);
        to += buffer.length;
    }
    wqe.flags |= ipc::kWorkInline;
    wqe.inline_length = static_cast<std::uint32_t>(total);
    return 0;
}

int set_window(ipc::SendWqe& wqe, const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
    if (info.mr == nullptr && info.length != 0) return EINVAL;
    wqe.bind_window_type = static_cast<std::uint8_t>(mw.type);
    wqe.window_handle = mw.handle;
    wqe.rkey = rkey;
    wqe.remote_address = info.addr;
    wqe.compare_add = info.length;
    const std::uint64_t lkey = info.mr == nullptr ? 0 : info.mr->lkey;
    // Programs name local write as well, as for regions; to a window it means nothing.
    const std::uint64_t access = info.mw_access_flags & ~unsigned{IBV_ACCESS_LOCAL_WRITE};
    wqe.swap = lkey | access << 32;
    return 0;
}

void publish_and_unlock(Qp& qp, std::uint32_t count) {
    const bool was_idle = qp.sq.outstanding() == 0;
    const bool bell = count != 0 && qp.sq.publish(count);
    const unsigned posts = qp.posts = was_idle ? 1 : qp.posts + 1;
    qp.sq_lock.unlock();
    if (count == 0) return;
    if (bell) qp.context->ring(qp.slot);
    after_post(was_idle, posts);
}

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) {
    Qp& qp = Qp::of(handle);
    qp.sq_lock.lock();
    int error = check_may_post(qp);
    std::uint32_t ready = 0;
    for (; error == 0 && wr != nullptr; wr = wr->next) {
        error = write_request(qp, *wr, ready);
        if (error != 0) break;
        ++ready;
    }
    if (error != 0) *bad = wr;
    publish_and_unlock(qp, ready);
    return error;
}

int bind_mw(ibv_qp* handle, ibv_mw* mw, ibv_mw_bind* bind) {
    Qp& qp = Qp::of(handle);
    qp.sq_lock.lock();
    ipc::SendWqe* wqe = nullptr;
    int error = check_may_post(qp);
    if (error == 0)
        error = begin_request(qp, 0, WorkOpcode::kBindWindow, bind->wr_id,
                              bind->send_flags & ~IBV_SEND_INLINE, wqe);
    // A type 1 window's key changes with each bind, and the program must learn it now: we choose the variant.
    const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
    if (error == 0) error = set_window(*wqe, *mw, rkey, bind->bind_info);
    publish_and_unlock(qp, error == 0 ? 1 : 0);
    if (error == 0) mw->rkey = rkey;
    return error;
}

}  // namespace uib::provider
