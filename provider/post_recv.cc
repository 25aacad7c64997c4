#include "provider/post_recv.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "provider/context.h"
#include "provider/qp.h"
#include "provider/srq.h"

namespace uib::provider {
namespace {

ipc::ScatterGatherEntry* entries_of(ipc::ReceiveWqe& wqe) {
    return reinterpret_cast<ipc::ScatterGatherEntry*>(reinterpret_cast<std::byte*>(&wqe) +
                                                      ipc::kReceiveSgeOffset);
}

/// Copies to pages that may be missing, which is an error and must not be a fault.
bool copy_on_demand(std::uint64_t address, const std::byte* payload, std::uint32_t bytes) {
    const iovec from{const_cast<std::byte*>(payload), bytes};
    const iovec to{reinterpret_cast<void*>(address), bytes};
    const ssize_t copied = ::process_vm_writev(::getpid(), &from, 1, &to, 1, 0);
    if (copied < 0 && (errno == EPERM || errno == ENOSYS)) {  // a sandbox forbids the call
        std::memcpy(to.iov_base, payload, bytes);
        return true;
    }
    return copied == static_cast<ssize_t>(bytes);
}

bool place_part(const LkeyTable::Entry& region, std::uint64_t work_address, const std::byte* payload,
                std::uint32_t bytes) {
    const RegionPlace place = region.place.load(std::memory_order_relaxed);
    if (place == RegionPlace::kNowhere) return true;
    const std::uint64_t address = region.locate(work_address, bytes);
    if (place == RegionPlace::kElsewhere || address == 0) return false;
    if (place == RegionPlace::kOnDemand) return copy_on_demand(address, payload, bytes);
    std::memcpy(reinterpret_cast<void*>(address), payload, bytes);
    return true;
}

int post_one(Qp& qp, const ibv_recv_wr& wr, std::uint32_t ahead) {
    if (!qp.context->alive()) return EIO;
    if (!qp.rq.has_room(ahead)) return ENOMEM;
    return fill_receive(*qp.rq.wqe(qp.rq.producer() + ahead), wr, qp.rq.memory().max_sge);
}

int post_one(Srq& srq, const ibv_recv_wr& wr) {
    if (!srq.context->alive()) return EIO;
    const auto slot = srq.queue.take_slot();
    if (!slot) return ENOMEM;
    if (const int error = fill_receive(*srq.queue.wqe(*slot), wr, srq.queue.memory().max_sge); error != 0) {
        srq.queue.give_back(*slot);
        return error;
    }
    srq.queue.post(*slot);
    return 0;
}

}  // namespace

int fill_receive(ipc::ReceiveWqe& wqe, const ibv_recv_wr& wr, std::uint32_t max_sge) {
    if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > max_sge) return EINVAL;
    wqe.wr_id = wr.wr_id;
    wqe.sge_count = static_cast<std::uint32_t>(wr.num_sge);
    wqe.reserved = 0;
    ipc::ScatterGatherEntry* entry = entries_of(wqe);
    for (int i = 0; i < wr.num_sge; ++i)
        entry[i] = {wr.sg_list[i].addr, wr.sg_list[i].length, wr.sg_list[i].lkey};
    return 0;
}

bool place_payload(const LkeyTable& lkeys, std::uint32_t pd, const RingMemory& ring, std::uint32_t slot,
                   std::uint32_t bytes) {
    auto& wqe = *reinterpret_cast<ipc::ReceiveWqe*>(ring.slot(slot));
    const std::byte* payload = ring.slot(slot) + ipc::receive_inline_offset(ring.max_sge);
    const ipc::ScatterGatherEntry* entry = entries_of(wqe);
    const std::uint32_t count = std::min(wqe.sge_count, ring.max_sge);
    for (std::uint32_t i = 0; i < count && bytes > 0; ++i) {
        const std::uint32_t part = std::min(bytes, entry[i].length);
        if (part == 0) continue;
        const LkeyTable::Entry* region = lkeys.find(entry[i].lkey, pd);
        if (region == nullptr || !region->writable.load(std::memory_order_relaxed)) return false;
        if (!place_part(*region, entry[i].address, payload, part)) return false;
        payload += part;
        bytes -= part;
    }
    return bytes == 0;
}

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    Qp& qp = Qp::of(handle);
    if (qp.inherited()) {
        *bad = wr;
        return EIO;
    }
    int error = 0;
    bool bell = false;
    {
        const std::lock_guard lock(qp.rq_lock);
        std::uint32_t ready = 0;
        if (qp.state.load(std::memory_order_relaxed) == IBV_QPS_RESET || qp.rq.memory().entries == 0) {
            error = EINVAL;
        }
        for (; error == 0 && wr != nullptr; wr = wr->next) {
            error = post_one(qp, *wr, ready);
            if (error != 0) break;
            ++ready;
        }
        if (error != 0) *bad = wr;
        if (ready != 0) bell = qp.rq.publish(ready);
    }
    if (bell) qp.context->ring(qp.slot);
    return error;
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) {
    Srq& srq = Srq::of(handle);
    if (srq.inherited()) {
        *bad = wr;
        return EIO;
    }
    const std::lock_guard lock(srq.lock);
    int error = 0;
    for (; wr != nullptr; wr = wr->next) {
        error = post_one(srq, *wr);
        if (error != 0) break;
    }
    if (error != 0) *bad = wr;
    // An SRQ has no bell: the engine looks at it whenever a packet needs a receive.
    (void)srq.queue.publish();
    return error;
}

}  // namespace uib::provider
