// Completion queues: what the program gets from a poll, and the events that tell it to poll.
//
// A poll takes the oldest entry of the ring, finds the QP by its doorbell slot, frees the work request's slot
// and, for a short received payload, copies it from the receive slot to where the program wants it. When the
// engine is dead and the ring empty, polls make flush completions for everything that the CQ's QPs have
// outstanding, then find nothing.
//
// The CQ's lock is held from start_poll to end_poll in the extended interface, over one call in the plain
// one.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/ipc/ring.h"
#include "provider/abi_34.h"
#include "provider/completion_ring.h"
#include "provider/spin_lock.h"

namespace uib::provider {

class Context;
struct Qp;
struct Srq;

/// A completion in libibverbs' terms.
struct Completion {
    std::uint64_t wr_id;
    std::uint64_t timestamp_ns;
    ibv_wc_status status;
    ibv_wc_opcode opcode;
    std::uint32_t vendor_error;
    std::uint32_t byte_len;
    std::uint32_t immediate;  ///< or the invalidated R_Key
    std::uint32_t qp_number;
    std::uint32_t source_qp;
    std::uint32_t wc_flags;
    std::uint16_t pkey_index;
    std::uint16_t slid;
    std::uint8_t sl;
    std::uint8_t dlid_path_bits;
};

/// Fills `wc` for the plain interface.
void to_wc(const Completion& completion, ibv_wc& wc);

struct Cq {
    abi::VerbsCq verbs;  // first: the program's handle
    Context* context = nullptr;
    std::uint32_t generation = 0;  ///< Context::generation of its maker
    SpinLock lock;
    CompletionRing ring;
    ibv_comp_channel* channel = nullptr;
    std::vector<Srq*> xrc_srqs;  ///< XRC SRQs whose receives complete here; under the lock
    Completion current{};        ///< of the extended interface
    std::atomic<unsigned> empty_polls{0};
    /// Events that libibverbs has handed to the program.
    std::atomic<std::uint32_t> completion_events_read{0};
    std::atomic<std::uint32_t> async_events_read{0};

    static Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
    static Cq& of(ibv_cq_ex* cq) { return *reinterpret_cast<Cq*>(cq); }
    ibv_cq& handle() { return verbs.cq; }
    /// Made by an ancestor of this process: its ring is not this one's.
    bool inherited() const;

    // With the lock held:
    /// The next completion; false if there is none.
    bool take(Completion& completion);
    /// Removes the completions of a QP that was destroyed or reset.
    void forget(const Qp& qp);
    /// Removes an XRC SRQ that was destroyed, and its completions.
    void forget(const Srq& srq);

    /// Writes a completion event that the engine can no longer write.
    void write_own_event();

  private:
    bool translate(const ipc::Cqe& cqe, Completion& completion);
    Srq* find_xrc_srq(std::uint32_t number) const;
    bool flush(Completion& completion);
};

int poll_cq(ibv_cq* cq, int count, ibv_wc* wc);
int req_notify_cq(ibv_cq* cq, int solicited_only);

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
int resize_cq(ibv_cq* cq, int cqe);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes);
int destroy_cq(ibv_cq* cq);
void cq_event(ibv_cq* cq);

/// Sets the extended interface's functions for the fields that `wc_flags` (IBV_WC_EX_*) asks for.
void install_extended_poll(ibv_cq_ex& cq, std::uint64_t wc_flags);

}  // namespace uib::provider
