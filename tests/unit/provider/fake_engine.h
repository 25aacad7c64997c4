// An engine that answers the control protocol with well-formed replies and lets the test play the device: it
// reads the requests that were posted and writes completions. One thread; everything in one arena chunk.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/control_cq.h"
#include "engine/ipc/control_memory.h"
#include "engine/ipc/control_qp.h"
#include "engine/ipc/control_rss.h"
#include "engine/ipc/control_srq.h"
#include "engine/ipc/doorbell.h"
#include "engine/ipc/ring.h"
#include "provider/context.h"
#include "provider/descriptors.h"

namespace uib::provider::test {

class FakeEngine {
  public:
    FakeEngine();
    /// Serves the client whose connection was accepted as `server`.
    explicit FakeEngine(UniqueFd server);
    ~FakeEngine();

    /// The socket for the client.
    int client_fd() const { return client_.get(); }
    /// Goes away without a word.
    void die();

    template <typename T>
    T* at(const ipc::Location& where) {
        return reinterpret_cast<T*>(arena_.base() + where.offset);
    }

    // What the last creations of each kind made.
    ipc::CqReply cq{};
    ipc::QpReply qp{};
    ipc::SrqReply srq{};
    ipc::Location staging{};
    ipc::QpAttributes modified{};
    ipc::RegMrRequest registered{};
    ipc::CreateRwqTableRequest rwq_table{};
    ipc::CreateHashQpRequest hash_qp{};
    std::vector<ipc::Operation> operations;
    /// Socket cookies of the connection, and of the one whose context it joined.
    std::uint64_t client_cookie = 0;
    std::uint64_t joined_cookie = 0;
    std::uint32_t destroyed_qp = 0;  ///< handle
    /// Answers for the destroy operations.
    ipc::EventsReply owed{};
    /// A request for which this returns non-zero is refused with that errno.
    std::function<int(ipc::Operation, const std::byte* body)> refuse;
    /// The client's event pipes.
    UniqueFd async_pipe;
    std::vector<UniqueFd> channels;

    ipc::SendWqe* send_wqe(std::uint32_t index) {
        return reinterpret_cast<ipc::SendWqe*>(arena_.base() + qp.send.slots.offset +
                                               std::size_t{index & (qp.send.entries - 1)} * qp.send.stride);
    }
    std::byte* receive_slot(const ipc::QueueLocation& queue, std::uint32_t slot) {
        return arena_.base() + queue.slots.offset + std::size_t{slot} * queue.stride;
    }
    /// Writes the next completion of the CQ made last, of the QP made last unless `fill` says otherwise.
    void complete(const std::function<void(ipc::Cqe&)>& fill);
    void complete_send(std::uint32_t index, std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS);
    void complete_receive(std::uint32_t slot, std::uint64_t wr_id, std::uint16_t flags, std::uint32_t bytes);

  private:
    void serve();
    bool answer(const std::byte* message, std::size_t bytes, std::vector<UniqueFd> fds);
    bool answer_query(const ipc::RequestHeader& header, ipc::Operation operation, const std::byte* body,
                      std::vector<UniqueFd>& fds);
    bool answer_creation(const ipc::RequestHeader& header, ipc::Operation operation, const std::byte* body,
                         std::vector<UniqueFd>& fds);
    template <typename Body>
    void reply(const ipc::RequestHeader& to, const Body& body, std::vector<int> fds = {},
               std::uint32_t chunks = 0);
    void refuse_with(const ipc::RequestHeader& to, int status);
    void hello(const ipc::RequestHeader& to, std::vector<UniqueFd> fds);
    ipc::Location allocate(std::size_t bytes);
    ipc::QueueLocation make_queue(std::uint32_t entries, std::uint32_t max_sge, std::uint32_t stride);
    ipc::CqReply make_cq(std::uint32_t entries);
    ipc::QpReply make_qp(const ipc::CreateQpRequest& request);
    ipc::QpReply make_target(std::uint32_t number);
    ipc::QpReply make_wq(const ipc::CreateWqRequest& request);
    ipc::SrqReply make_srq(const ipc::CreateSrqRequest& request);

    void start();

    UniqueFd client_;
    UniqueFd server_;
    UniqueFd helper_;
    UniqueFd arena_file_;
    UniqueFd page_file_;
    UniqueFd wake_;
    Mapping arena_;
    std::size_t used_ = 0;
    std::uint32_t next_handle_ = 1;
    std::uint32_t next_slot_ = 0;
    std::uint32_t produced_ = 0;
    std::thread thread_;
};

/// A context opened on a fake engine, as libibverbs would have opened it.
struct OpenedContext {
    OpenedContext();
    ~OpenedContext();

    ibv_context* verbs() { return &shell.verbs.context; }
    ibv_pd* make_pd();
    ibv_cq* make_cq(int entries, ibv_comp_channel* channel = nullptr);
    ibv_qp* make_qp(ibv_pd* pd, ibv_cq* cq, ibv_qp_type type = IBV_QPT_RC, std::uint32_t depth = 4,
                    ibv_srq* srq = nullptr, std::uint64_t send_ops = 0);
    void move_to(ibv_qp* qp, ibv_qp_state state);

    FakeEngine engine;
    ibv_device device{};
    ContextShell shell{};
    std::unique_ptr<Context> context;
};

}  // namespace uib::provider::test
