#include "provider/cq.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "provider/context.h"
#include "provider/events.h"
#include "provider/post_recv.h"
#include "provider/qp.h"
#include "provider/srq.h"
#include "provider/waiting.h"

namespace uib::provider {
namespace {

constexpr std::array<ibv_wc_opcode, ipc::kWorkOpcodeCount> kSendOpcodes = {
    IBV_WC_SEND,       IBV_WC_SEND,      IBV_WC_SEND,        IBV_WC_RDMA_WRITE,
    IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,   IBV_WC_FETCH_ADD,
    IBV_WC_BIND_MW,    IBV_WC_LOCAL_INV, IBV_WC_ATOMIC_WRITE};

ibv_wc_opcode opcode_of(const ipc::Cqe& cqe) {
    if (cqe.opcode < kSendOpcodes.size()) return kSendOpcodes[cqe.opcode];
    return cqe.opcode == static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceiveRdmaWithImmediate)
               ? IBV_WC_RECV_RDMA_WITH_IMM
               : IBV_WC_RECV;
}

std::uint32_t wc_flags_of(std::uint16_t flags) {
    std::uint32_t result = 0;
    if (flags & ipc::kCqeGrh) result |= IBV_WC_GRH;
    if (flags & ipc::kCqeImmediate) result |= IBV_WC_WITH_IMM;
    if (flags & ipc::kCqeInvalidate) result |= IBV_WC_WITH_INV;
    return result;
}

/// Takes the receive request of `cqe` off its queue, its payload put where the program wants it. False if
/// that failed.
bool finish_receive(Srq& srq, const ipc::Cqe& cqe) {
    const std::lock_guard lock(srq.lock);
    const RingMemory& ring = srq.queue.memory();
    const bool has_payload = (cqe.flags & ipc::kCqeInline) != 0 && cqe.wqe_index < ring.entries;
    const bool placed =
        !has_payload || place_payload(srq.context->lkeys(), srq.pd, ring, cqe.wqe_index, cqe.byte_len);
    srq.queue.give_back(cqe.wqe_index);
    return placed;
}

bool finish_receive(Qp& qp, const ipc::Cqe& cqe) {
    if (cqe.flags & ipc::kCqeSrq) return qp.srq != nullptr && finish_receive(*qp.srq, cqe);
    const bool has_payload = (cqe.flags & ipc::kCqeInline) != 0;
    const bool placed = !has_payload || place_payload(qp.context->lkeys(), qp.pd, qp.rq.memory(),
                                                      cqe.wqe_index, cqe.byte_len);
    qp.rq.complete_oldest();
    return placed;
}

void copy_fields(const ipc::Cqe& cqe, Completion& completion) {
    completion.wr_id = cqe.wr_id;
    completion.timestamp_ns = cqe.timestamp_ns;
    completion.status = static_cast<ibv_wc_status>(cqe.status);
    completion.opcode = opcode_of(cqe);
    completion.vendor_error = cqe.vendor_error;
    completion.byte_len = cqe.byte_len;
    completion.immediate = cqe.immediate;
    completion.qp_number = cqe.qp_number;
    completion.source_qp = cqe.source_qp;
    completion.wc_flags = wc_flags_of(cqe.flags);
    completion.pkey_index = cqe.pkey_index;
    completion.slid = cqe.slid;
    completion.sl = cqe.sl;
    completion.dlid_path_bits = cqe.dlid_path_bits;
}

Completion flushed(std::uint32_t qp_number, std::uint64_t wr_id, ibv_wc_opcode opcode) {
    Completion completion{};
    completion.wr_id = wr_id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.opcode = opcode;
    completion.qp_number = qp_number;
    return completion;
}

bool flush_send(Qp& qp, Completion& completion) {
    const std::lock_guard lock(qp.sq_lock);
    if (qp.sq.outstanding() == 0) return false;
    const std::uint32_t index = qp.sq.freed();
    const ipc::SendWqe* wqe = qp.sq.wqe(index);
    const ibv_wc_opcode opcode = wqe->opcode < kSendOpcodes.size() ? kSendOpcodes[wqe->opcode] : IBV_WC_SEND;
    completion = flushed(qp.number, wqe->wr_id, opcode);
    qp.sq.complete(index);
    return true;
}

bool flush_receive(Srq& srq, std::uint32_t qp_number, Completion& completion) {
    const std::lock_guard lock(srq.lock);
    const auto slot = srq.queue.take_posted();
    if (!slot) return false;
    completion = flushed(qp_number, srq.queue.wqe(*slot)->wr_id, IBV_WC_RECV);
    return true;
}

bool flush_receive(Qp& qp, Completion& completion) {
    if (qp.srq != nullptr) return flush_receive(*qp.srq, qp.number, completion);
    const std::lock_guard lock(qp.rq_lock);
    if (qp.rq.outstanding() == 0) return false;
    completion = flushed(qp.number, qp.rq.wqe(qp.rq.freed())->wr_id, IBV_WC_RECV);
    qp.rq.complete_oldest();
    return true;
}

bool has_outstanding(Srq& srq) {
    const std::lock_guard lock(srq.lock);
    return srq.queue.outstanding() != 0;
}

/// Does the QP have anything outstanding that a dead engine's `cq` will flush?
bool owes_completions(Qp& qp, const Cq& cq) {
    if (qp.send_cq == &cq) {
        const std::lock_guard lock(qp.sq_lock);
        if (qp.sq.outstanding() != 0) return true;
    }
    if (qp.recv_cq != &cq) return false;
    if (qp.srq != nullptr) return has_outstanding(*qp.srq);
    const std::lock_guard lock(qp.rq_lock);
    return qp.rq.outstanding() != 0;
}

/// The same for the CQ's XRC SRQs.
bool owes_completions(Cq& cq) {
    const std::lock_guard lock(cq.lock);
    return std::any_of(cq.xrc_srqs.begin(), cq.xrc_srqs.end(),
                       [](Srq* srq) { return has_outstanding(*srq); });
}

}  // namespace

void to_wc(const Completion& completion, ibv_wc& wc) {
    wc.wr_id = completion.wr_id;
    wc.status = completion.status;
    wc.opcode = completion.opcode;
    wc.vendor_err = completion.vendor_error;
    wc.byte_len = completion.byte_len;
    wc.imm_data = completion.immediate;
    wc.qp_num = completion.qp_number;
    wc.src_qp = completion.source_qp;
    wc.wc_flags = completion.wc_flags;
    wc.pkey_index = completion.pkey_index;
    wc.slid = completion.slid;
    wc.sl = completion.sl;
    wc.dlid_path_bits = completion.dlid_path_bits;
}

bool Cq::inherited() const {
    return context->inherited(generation);
}

bool Cq::take(Completion& completion) {
    while (const ipc::Cqe* cqe = ring.front()) {
        const bool known = translate(*cqe, completion);
        ring.pop();
        if (known) return true;
    }
    return context->dead() && flush(completion);
}

Srq* Cq::find_xrc_srq(std::uint32_t number) const {
    const auto found = std::find_if(xrc_srqs.begin(), xrc_srqs.end(),
                                    [&](const Srq* srq) { return srq->verbs.number == number; });
    return found == xrc_srqs.end() ? nullptr : *found;
}

bool Cq::translate(const ipc::Cqe& cqe, Completion& completion) {
    copy_fields(cqe, completion);
    bool placed = true;
    if ((cqe.flags & ipc::kCqeXrcSrq) != 0) {
        Srq* srq = find_xrc_srq(cqe.qp_slot);
        if (srq == nullptr) return false;
        placed = finish_receive(*srq, cqe);
    } else {
        Qp* qp = context->find_qp(cqe.qp_slot);
        if (qp == nullptr || qp->number != cqe.qp_number) return false;
        if ((cqe.flags & ipc::kCqeReceive) == 0)
            qp->sq.complete(cqe.wqe_index);
        else
            placed = finish_receive(*qp, cqe);
    }
    if (!placed && completion.status == IBV_WC_SUCCESS) completion.status = IBV_WC_LOC_PROT_ERR;
    return true;
}

bool Cq::flush(Completion& completion) {
    // Which target QP would have taken an XRC SRQ's receive is open.
    for (Srq* srq : xrc_srqs)
        if (flush_receive(*srq, 0, completion)) return true;
    return context->any_qp([&](Qp& qp) {
        if (qp.send_cq == this && flush_send(qp, completion)) return true;
        return qp.recv_cq == this && flush_receive(qp, completion);
    });
}

void Cq::forget(const Qp& qp) {
    ring.for_each_pending([&](ipc::Cqe& cqe) {
        if (cqe.qp_slot != qp.slot || cqe.qp_number != qp.number) return;
        cqe.flags |= ipc::kCqeVoid;
        if ((cqe.flags & ipc::kCqeSrq) == 0 || qp.srq == nullptr) return;
        const std::lock_guard srq_lock(qp.srq->lock);
        qp.srq->queue.give_back(cqe.wqe_index);
    });
}

void Cq::forget(const Srq& srq) {
    std::erase(xrc_srqs, &srq);
    ring.for_each_pending([&](ipc::Cqe& cqe) {
        if ((cqe.flags & ipc::kCqeXrcSrq) != 0 && cqe.qp_slot == srq.verbs.number) cqe.flags |= ipc::kCqeVoid;
    });
}

void Cq::write_own_event() {
    if (channel == nullptr) return;
    const int fd = context->channels().write_fd_of(channel->fd);
    const auto event = reinterpret_cast<std::uint64_t>(&handle());
    if (fd >= 0) write_event(fd, &event, sizeof event);
}

int poll_cq(ibv_cq* handle, int count, ibv_wc* wc) {
    Cq& cq = Cq::of(handle);
    if (cq.inherited()) return -1;
    int found = 0;
    {
        const std::lock_guard lock(cq.lock);
        if (cq.ring.overrun()) return -1;
        Completion completion;
        while (found < count && cq.take(completion)) to_wc(completion, wc[found++]);
        cq.ring.release();
        if (found != 0) cq.empty_polls.store(0, std::memory_order_relaxed);
    }
    if (found == 0 && count > 0) after_empty_poll(cq.empty_polls);
    return found;
}

int req_notify_cq(ibv_cq* handle, int solicited_only) {
    Cq& cq = Cq::of(handle);
    if (cq.inherited()) return EIO;
    if (cq.context->alive()) {
        const std::lock_guard lock(cq.lock);
        cq.ring.arm(solicited_only ? ipc::kArmSolicited : ipc::kArmAll);
        return 0;
    }
    // Nobody else writes events any more: whoever still has work outstanding gets one.
    const bool work_left = cq.context->any_qp([&](Qp& qp) { return owes_completions(qp, cq); });
    if (work_left || owes_completions(cq)) cq.write_own_event();
    return 0;
}

}  // namespace uib::provider
