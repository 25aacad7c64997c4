// A queue pair as the client knows it: rings, attributes, state transitions; the transport machine does the
// rest.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/ipc/control.h"
#include "engine/transport/queue_pair.h"
#include "engine/verbs/completion_queue.h"
#include "engine/verbs/device.h"
#include "engine/verbs/pd.h"
#include "engine/verbs/work_queues.h"

namespace uib::verbs {

class Adapter;
class Context;

/// What a QP is made of; everything checked and alive.
struct QpInit {
    Client* client = nullptr;
    Context* context = nullptr;
    Device* device = nullptr;
    Pd* pd = nullptr;
    CompletionQueue* send_cq = nullptr;
    CompletionQueue* recv_cq = nullptr;
    SharedReceiveQueue* srq = nullptr;
    std::uint64_t user_handle = 0;
    transport::Service service = transport::Service::kRc;
    bool signal_all = false;
    RingShape send;
    RingShape receive;              ///< entries 0: none
    std::uint32_t max_send_wr = 0;  ///< as asked, for queries
    std::uint32_t max_recv_wr = 0;
};

class Qp {
  public:
    Qp(Adapter& adapter, const QpInit& init);
    ~Qp();
    Qp(const Qp&) = delete;
    Qp& operator=(const Qp&) = delete;

    /// Makes rings, number, doorbell slot and machine. ENOMEM.
    int start();

    /// ibv_modify_qp: checks the transition and the values, then applies them. EINVAL and others as mlx5
    /// gives.
    int modify(const ipc::QpAttributes& attributes, std::uint32_t mask);
    [[nodiscard]] ipc::QueryQpReply query() const;
    [[nodiscard]] ipc::QpReply description() const;

    [[nodiscard]] const QpInit& init() const { return init_; }
    [[nodiscard]] Client& client() const { return *init_.client; }
    [[nodiscard]] Device& device() const { return *init_.device; }
    [[nodiscard]] transport::QueuePair& machine() const { return *machine_; }
    [[nodiscard]] SendRing& send_ring() const { return *send_ring_; }
    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] std::uint32_t slot() const { return slot_; }

    /// The machine moved by itself (error): the client's next query sees it.
    void note_state();

    std::uint32_t async_events = 0;
    std::uint32_t multicast_groups = 0;
    // The lane's records.
    bool active = false;                           ///< on the lane's list
    std::uint32_t idle_turns = 0;                  ///< turns on the list without work
    transport::Time timer_at = transport::kNever;  ///< earliest entry of the lane's timer heap
    transport::QpState known_state = transport::QpState::kReset;

  private:
    [[nodiscard]] transport::QpParameters parameters() const;
    void take_attributes(const ipc::QpAttributes& from, std::uint32_t mask);

    Adapter& adapter_;
    QpInit init_;
    std::unique_ptr<SendRing> send_ring_;
    std::unique_ptr<ReceiveRing> receive_ring_;
    std::unique_ptr<transport::QueuePair> machine_;
    ipc::QpAttributes attributes_{};
    std::uint32_t number_ = 0;
    std::uint32_t slot_ = 0;
};

}  // namespace uib::verbs
