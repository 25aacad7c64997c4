// The ibv_wr_* interface. wr_start takes the send queue's lock; each operation starts a request in the next
// slot, and the setters fill it; wr_complete publishes all of them or, if any was wrong, none. The first
// error is kept for wr_complete.
#include <array>
#include <cerrno>

#include "provider/post_send.h"

namespace uib::provider {
namespace {

using ipc::WorkOpcode;

/// IBV_QP_EX_WITH_* by the operation it stands for.
constexpr std::array<std::pair<std::uint64_t, WorkOpcode>, 11> kOperations{{
    {IBV_QP_EX_WITH_RDMA_WRITE, WorkOpcode::kRdmaWrite},
    {IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, WorkOpcode::kRdmaWriteWithImmediate},
    {IBV_QP_EX_WITH_SEND, WorkOpcode::kSend},
    {IBV_QP_EX_WITH_SEND_WITH_IMM, WorkOpcode::kSendWithImmediate},
    {IBV_QP_EX_WITH_RDMA_READ, WorkOpcode::kRdmaRead},
    {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, WorkOpcode::kCompareSwap},
    {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, WorkOpcode::kFetchAdd},
    {IBV_QP_EX_WITH_LOCAL_INV, WorkOpcode::kLocalInvalidate},
    {IBV_QP_EX_WITH_BIND_MW, WorkOpcode::kBindWindow},
    {IBV_QP_EX_WITH_SEND_WITH_INV, WorkOpcode::kSendWithInvalidate},
    {IBV_QP_EX_WITH_ATOMIC_WRITE, WorkOpcode::kAtomicWrite},
}};

void note(Qp& qp, int error) {
    if (qp.batch.error == 0) qp.batch.error = error;
}

/// The request being written is whole.
void close_request(Qp& qp) {
    OpenBatch& batch = qp.batch;
    if (batch.current == nullptr) return;
    if (batch.needs_address) note(qp, EINVAL);
    ++batch.count;
    batch.current = nullptr;
}

/// Must the program still say to whom the request goes?
bool needs_address(const Qp& qp, WorkOpcode opcode) {
    const bool local = opcode == WorkOpcode::kBindWindow || opcode == WorkOpcode::kLocalInvalidate;
    return qp.service == IBV_QPT_UD || (qp.service == IBV_QPT_XRC_SEND && !local);
}

/// Null after an error.
ipc::SendWqe* begin(ibv_qp_ex* handle, WorkOpcode opcode) {
    Qp& qp = Qp::of(handle);
    close_request(qp);
    OpenBatch& batch = qp.batch;
    if (batch.error == 0)
        note(qp, begin_request(qp, batch.count, opcode, handle->wr_id, handle->wr_flags & ~IBV_SEND_INLINE,
                               batch.current));
    if (batch.error != 0) batch.current = nullptr;
    batch.needs_address = batch.current != nullptr && needs_address(qp, opcode);
    return batch.current;
}

void begin_remote(ibv_qp_ex* handle, WorkOpcode opcode, std::uint32_t rkey, std::uint64_t address,
                  std::uint64_t compare_add = 0, std::uint64_t swap = 0, std::uint32_t immediate = 0) {
    ipc::SendWqe* wqe = begin(handle, opcode);
    if (wqe == nullptr) return;
    wqe->rkey = rkey;
    wqe->remote_address = address;
    wqe->compare_add = compare_add;
    wqe->swap = swap;
    wqe->immediate = immediate;
}

void begin_immediate(ibv_qp_ex* handle, WorkOpcode opcode, std::uint32_t immediate) {
    if (ipc::SendWqe* wqe = begin(handle, opcode); wqe != nullptr) wqe->immediate = immediate;
}

void atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                    std::uint64_t swap) {
    begin_remote(qp, WorkOpcode::kCompareSwap, rkey, address, compare, swap);
}
void atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t add) {
    begin_remote(qp, WorkOpcode::kFetchAdd, rkey, address, add);
}
void rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_remote(qp, WorkOpcode::kRdmaRead, rkey, address);
}
void rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
    begin_remote(qp, WorkOpcode::kRdmaWrite, rkey, address);
}
void rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
    begin_remote(qp, WorkOpcode::kRdmaWriteWithImmediate, rkey, address, 0, 0, immediate);
}
void send(ibv_qp_ex* qp) {
    begin(qp, WorkOpcode::kSend);
}
void send_imm(ibv_qp_ex* qp, __be32 immediate) {
    begin_immediate(qp, WorkOpcode::kSendWithImmediate, immediate);
}
void send_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
    begin_immediate(qp, WorkOpcode::kSendWithInvalidate, rkey);
}
void local_inv(ibv_qp_ex* qp, std::uint32_t rkey) {
    begin_immediate(qp, WorkOpcode::kLocalInvalidate, rkey);
}

void bind_window(ibv_qp_ex* handle, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
    ipc::SendWqe* wqe = begin(handle, WorkOpcode::kBindWindow);
    if (wqe == nullptr) return;
    note(Qp::of(handle), mw->type == IBV_MW_TYPE_2 ? set_window(*wqe, *mw, rkey, *info) : EINVAL);
}

void set_ud_addr(ibv_qp_ex* handle, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
    Qp& qp = Qp::of(handle);
    if (qp.batch.current == nullptr) return note(qp, EINVAL);
    note(qp, set_destination(qp, *qp.batch.current, ah, qpn, qkey));
    qp.batch.needs_address = false;
}

void set_xrc_srqn(ibv_qp_ex* handle, std::uint32_t number) {
    Qp& qp = Qp::of(handle);
    if (qp.batch.current == nullptr) return note(qp, EINVAL);
    qp.batch.current->remote_qpn = number;
    qp.batch.needs_address = false;
}

void set_sge_list(ibv_qp_ex* handle, std::size_t count, const ibv_sge* list) {
    Qp& qp = Qp::of(handle);
    if (qp.batch.current == nullptr) return note(qp, EINVAL);
    note(qp, set_scatter_list(qp, *qp.batch.current, std::span(list, count)));
}

void set_sge(ibv_qp_ex* handle, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
    const ibv_sge entry{address, length, lkey};
    set_sge_list(handle, 1, &entry);
}

void set_inline_list(ibv_qp_ex* handle, std::size_t count, const ibv_data_buf* buffers) {
    Qp& qp = Qp::of(handle);
    if (qp.batch.current == nullptr) return note(qp, EINVAL);
    note(qp, set_inline_data(qp, *qp.batch.current, std::span(buffers, count)));
}

void set_inline(ibv_qp_ex* handle, void* address, std::size_t length) {
    const ibv_data_buf buffer{address, length};
    set_inline_list(handle, 1, &buffer);
}

void atomic_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, const void* value) {
    constexpr std::size_t kBytes = 8;
    begin_remote(qp, WorkOpcode::kAtomicWrite, rkey, address);
    set_inline(qp, const_cast<void*>(value), kBytes);
}

void start(ibv_qp_ex* handle) {
    Qp& qp = Qp::of(handle);
    qp.sq_lock.lock();
    qp.batch = {};
    qp.batch.error = check_may_post(qp);
}

int complete(ibv_qp_ex* handle) {
    Qp& qp = Qp::of(handle);
    close_request(qp);
    const int error = qp.batch.error;
    if (error != 0) qp.sq.give_up(qp.batch.count);
    publish_and_unlock(qp, error == 0 ? qp.batch.count : 0);
    return error;
}

void abort(ibv_qp_ex* handle) {
    Qp& qp = Qp::of(handle);
    close_request(qp);
    qp.sq.give_up(qp.batch.count);
    qp.sq_lock.unlock();
}

}  // namespace

bool install_wr_api(Qp& qp, std::uint64_t send_ops) {
    std::uint64_t left = send_ops;
    for (const auto& [flag, opcode] : kOperations) {
        if ((send_ops & flag) != 0 && !service_has(qp.service, opcode)) return false;
        left &= ~flag;
    }
    if (left != 0) return false;
    ibv_qp_ex& ex = qp.verbs.qp_ex;
    if (send_ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) ex.wr_atomic_cmp_swp = atomic_cmp_swp;
    if (send_ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) ex.wr_atomic_fetch_add = atomic_fetch_add;
    if (send_ops & IBV_QP_EX_WITH_ATOMIC_WRITE) ex.wr_atomic_write = atomic_write;
    if (send_ops & IBV_QP_EX_WITH_BIND_MW) ex.wr_bind_mw = bind_window;
    if (send_ops & IBV_QP_EX_WITH_LOCAL_INV) ex.wr_local_inv = local_inv;
    if (send_ops & IBV_QP_EX_WITH_RDMA_READ) ex.wr_rdma_read = rdma_read;
    if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE) ex.wr_rdma_write = rdma_write;
    if (send_ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) ex.wr_rdma_write_imm = rdma_write_imm;
    if (send_ops & IBV_QP_EX_WITH_SEND) ex.wr_send = send;
    if (send_ops & IBV_QP_EX_WITH_SEND_WITH_IMM) ex.wr_send_imm = send_imm;
    if (send_ops & IBV_QP_EX_WITH_SEND_WITH_INV) ex.wr_send_inv = send_inv;
    if (qp.service == IBV_QPT_UD) ex.wr_set_ud_addr = set_ud_addr;
    if (qp.service == IBV_QPT_XRC_SEND) ex.wr_set_xrc_srqn = set_xrc_srqn;
    ex.wr_set_sge = set_sge;
    ex.wr_set_sge_list = set_sge_list;
    ex.wr_set_inline_data = set_inline;
    ex.wr_set_inline_data_list = set_inline_list;
    ex.wr_start = start;
    ex.wr_complete = complete;
    ex.wr_abort = abort;
    return true;
}

}  // namespace uib::provider
