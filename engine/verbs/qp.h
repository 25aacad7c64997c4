// A queue pair as the client knows it: rings, attributes, state transitions; the transport machine does the
// rest.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/ipc/control_qp.h"
#include "engine/transport/queue_pair.h"
#include "engine/verbs/completion_queue.h"
#include "engine/verbs/device.h"
#include "engine/verbs/pd.h"
#include "engine/verbs/rx_hash.h"
#include "engine/verbs/work_queues.h"

namespace uib::verbs {

class Adapter;
class Context;

/// What a QP is made of; everything checked and alive. An XRC target QP has a domain and no client, PD or
/// queues; an XRC initiator has nothing to receive with. A work queue is a QP that cannot send; a QP that
/// spreads frames over work queues has a hash and no queues.
struct QpInit {
    Client* client = nullptr;  ///< whose memory the rings are in
    Context* context = nullptr;
    Device* device = nullptr;
    Pd* pd = nullptr;
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* recv_cq = nullptr;
    SharedReceiveQueue* srq = nullptr;
    std::shared_ptr<XrcDomain> xrc_domain;
    transport::Service service = transport::Service::kRc;
    bool signal_all = false;
    RingShape send;
    RingShape receive;              ///< entries 0: none
    std::uint32_t max_send_wr = 0;  ///< as asked, for queries
    std::uint32_t max_recv_wr = 0;
    bool work_queue = false;
    RxHash hash;  ///< without a table: none
};

/// Somebody who holds the QP and hears of its events: one for an ordinary QP, one for each process that made
/// or opened an XRC target QP.
struct QpHolder {
    Client* client = nullptr;
    std::uint64_t user_handle = 0;
    std::uint32_t async_events = 0;  ///< written to the client's asynchronous pipe
};

class Qp {
  public:
    Qp(Adapter& adapter, const QpInit& init);
    ~Qp();
    Qp(const Qp&) = delete;
    Qp& operator=(const Qp&) = delete;

    /// Makes rings, number, doorbell slot and machine. ENOMEM; EOPNOTSUPP if there is no such machine.
    int start();

    void add_holder(QpHolder& holder) { holders_.push_back(&holder); }
    void remove_holder(QpHolder& holder) { std::erase(holders_, &holder); }
    /// Tells all holders.
    void raise(transport::QpEvent event);

    // -- attributes (qp_attributes.cc) --
    /// ibv_modify_qp: checks the transition and the values, then applies them. EINVAL and others as mlx5
    /// gives.
    int modify(const ipc::QpAttributes& attributes, std::uint32_t mask);
    [[nodiscard]] ipc::QueryQpReply query();
    [[nodiscard]] ipc::QpReply description() const;

    [[nodiscard]] const QpInit& init() const { return init_; }
    [[nodiscard]] Device& device() const { return *init_.device; }
    [[nodiscard]] transport::QueuePair& machine() const { return *machine_; }
    /// Nullptr: it sends no requests.
    [[nodiscard]] SendRing* send_ring() const { return send_ring_.get(); }
    [[nodiscard]] std::uint32_t number() const { return number_; }
    /// Doorbell slot; a target QP has none.
    [[nodiscard]] std::uint32_t slot() const { return slot_; }

    /// The machine moved by itself (error): the client's next query sees it.
    void note_state();

    std::uint32_t multicast_groups = 0;
    std::uint32_t flow_rules = 0;
    std::uint32_t rwq_entries = 0;  ///< of indirection tables that lead to this work queue
    // The lane's records.
    bool active = false;                           ///< on the lane's list
    std::uint32_t idle_turns = 0;                  ///< turns on the list without work
    transport::Time timer_at = transport::kNever;  ///< earliest entry of the lane's timer heap
    transport::QpState known_state = transport::QpState::kReset;

  private:
    static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

    int make_rings();
    bool take_slot();
    void start_over();
    [[nodiscard]] transport::QpConfig config() const;
    [[nodiscard]] transport::Path resolve(const ipc::PathAttributes& path) const;
    [[nodiscard]] std::uint16_t pkey_at(std::uint16_t index) const;
    [[nodiscard]] transport::QpParameters parameters() const;
    void take_attributes(const ipc::QpAttributes& from, std::uint32_t mask);
    void forget_attributes();
    void follow_migrations();
    [[nodiscard]] bool may_migrate(const ipc::QpAttributes& attributes, std::uint32_t mask) const;

    Adapter& adapter_;
    QpInit init_;
    std::unique_ptr<SendRing> send_ring_;
    std::unique_ptr<ReceiveRing> receive_ring_;
    std::unique_ptr<transport::QueuePair> machine_;
    std::vector<QpHolder*> holders_;
    ipc::QpAttributes attributes_{};
    bool alternate_loaded_ = false;
    std::uint32_t migrations_ = 0;  ///< of the machine's, as far as attributes_ show them
    std::uint32_t number_ = 0;
    std::uint32_t slot_ = kNoSlot;
};

}  // namespace uib::verbs
