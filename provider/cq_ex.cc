// The extended polling interface: ibv_start_poll, ibv_next_poll, ibv_end_poll and the readers of one
// completion's fields.
#include <cerrno>
#include <ctime>

#include "provider/context.h"
#include "provider/cq.h"
#include "provider/waiting.h"

namespace uib::provider {
namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

int advance(Cq& cq) {
    if (!cq.take(cq.current)) return ENOENT;
    cq.verbs.cq_ex.wr_id = cq.current.wr_id;
    cq.verbs.cq_ex.status = cq.current.status;
    return 0;
}

/// Leaves the lock held only if it returns 0, as the interface wants.
int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attributes) {
    Cq& cq = Cq::of(handle);
    if (attributes->comp_mask != 0) return EINVAL;
    if (cq.inherited()) return EIO;
    cq.lock.lock();
    const int error = cq.ring.overrun() ? EIO : advance(cq);
    if (error == 0) {
        cq.empty_polls.store(0, std::memory_order_relaxed);
        return 0;
    }
    cq.ring.release();
    cq.lock.unlock();
    if (error == ENOENT) after_empty_poll(cq.empty_polls);
    return error;
}

int next_poll(ibv_cq_ex* handle) {
    return advance(Cq::of(handle));
}

void end_poll(ibv_cq_ex* handle) {
    Cq& cq = Cq::of(handle);
    cq.ring.release();
    cq.lock.unlock();
}

const Completion& current(ibv_cq_ex* cq) {
    return Cq::of(cq).current;
}

std::uint64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * kNanosecondsPerSecond +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t wallclock_ns(ibv_cq_ex* cq) {
    return current(cq).timestamp_ns + (clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}

}  // namespace

void install_extended_poll(ibv_cq_ex& cq, std::uint64_t wc_flags) {
    cq.start_poll = start_poll;
    cq.next_poll = next_poll;
    cq.end_poll = end_poll;
    cq.read_opcode = [](ibv_cq_ex* self) { return current(self).opcode; };
    cq.read_vendor_err = [](ibv_cq_ex* self) { return current(self).vendor_error; };
    cq.read_wc_flags = [](ibv_cq_ex* self) -> unsigned { return current(self).wc_flags; };
    if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
        cq.read_byte_len = [](ibv_cq_ex* self) { return current(self).byte_len; };
    if (wc_flags & IBV_WC_EX_WITH_IMM)
        cq.read_imm_data = [](ibv_cq_ex* self) -> __be32 { return current(self).immediate; };
    if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
        cq.read_qp_num = [](ibv_cq_ex* self) { return current(self).qp_number; };
    if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
        cq.read_src_qp = [](ibv_cq_ex* self) { return current(self).source_qp; };
    if (wc_flags & IBV_WC_EX_WITH_SLID)
        cq.read_slid = [](ibv_cq_ex* self) -> std::uint32_t { return current(self).slid; };
    if (wc_flags & IBV_WC_EX_WITH_SL) cq.read_sl = [](ibv_cq_ex* self) { return current(self).sl; };
    if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
        cq.read_dlid_path_bits = [](ibv_cq_ex* self) { return current(self).dlid_path_bits; };
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        cq.read_completion_ts = [](ibv_cq_ex* self) { return current(self).timestamp_ns; };
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
        cq.read_completion_wallclock_ns = wallclock_ns;
    // An InfiniBand packet has neither a VLAN tag nor a flow tag.
    if (wc_flags & IBV_WC_EX_WITH_CVLAN) cq.read_cvlan = [](ibv_cq_ex*) -> std::uint16_t { return 0; };
    if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG) cq.read_flow_tag = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
}

}  // namespace uib::provider
