// An opened device: the session with the engine and everything that hangs on it.
//
//   ContextShell  what libibverbs allocates and frees; its tail points to the Context
//   Context       control channel, arena, doorbells, tables of queues and keys, monitor thread, completion
//                 channels
//
// Verbs objects (Pd, Mr, Cq, Qp, Srq, Ah) begin with libibverbs' own structure, so that the handle the
// program holds is the object. They belong to the program between create and destroy; the context's tables
// only refer to them.
//
// Life: alive, then perhaps dead (the engine is gone); what a dead context does is in monitor.h and cq.h. In
// a fork's child it is foreign until the first control call, then alive again, with a session of its own
// (fork.h).
//
// Locks, outermost first: a CQ's, then `objects_mutex`, then a QP's or SRQ's. The control channel's mutex is
// taken under none of them but a CQ's that is being resized and a QP's whose first long payload asks for the
// staging pool. The pool's own lock is innermost.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/control_device.h"
#include "engine/ipc/doorbell.h"
#include "provider/channels.h"
#include "provider/control_channel.h"
#include "provider/events.h"
#include "provider/lkey_table.h"
#include "provider/monitor.h"
#include "provider/staging.h"

namespace uib::provider {

struct Cq;
struct Qp;
class Context;

struct ContextShell {
    verbs_context verbs;  // first: libibverbs' view
    Context* context;
};

/// What the data path needs to know of a port; refreshed by each query of the port.
struct PortFacts {
    std::atomic<std::uint32_t> mtu_bytes{4096};
    std::atomic<std::uint32_t> gid_count{0};
    std::atomic<std::uint32_t> link_layer{0};
};

class Context {
  public:
    explicit Context(ibv_context* verbs);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    static Context& of(ibv_context* verbs);

    /// Says hello on the socket that libibverbs opened. 0 or errno.
    int start();
    /// Opens a session of its own and joins the context whose socket `cmd_fd` duplicates. 0 or errno.
    int start_imported(int cmd_fd);
    /// Before the program's handle goes away: no callback and no thread of ours is left behind it.
    void stop();

    ControlChannel& control() { return control_; }
    Channels& channels() { return channels_; }
    LkeyTable& lkeys() { return lkeys_; }
    StagingPool& staging() { return *staging_; }
    const ipc::DeviceLimits& limits() const { return limits_; }
    bool alive() const { return control_.alive(); }
    bool dead() const { return control_.liveness() == Liveness::kDead; }

    /// Result of a control call for an operation that destroys: nothing is left to destroy in a dead engine.
    int forgive_death(int error) const { return error == EIO && dead() ? 0 : error; }

    /// Counts the forks between the process that opened the context and this one. An object of another
    /// generation is an ancestor's: its queues are not this process's to touch.
    std::uint32_t generation() const { return generation_; }
    bool inherited(std::uint32_t generation) const { return generation != generation_; }

    // The handlers of fork (fork.cc).
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

    void ring(std::uint32_t slot);

    int query_port(std::uint32_t port, ipc::PortAttributes& attributes);
    PortFacts& port(std::uint32_t number) { return ports_[number]; }
    bool has_port(std::uint32_t number) const { return number >= 1 && number <= limits_.ports; }

    void add_qp(Qp* qp);
    void remove_qp(Qp* qp);
    void add_cq(Cq* cq);
    void remove_cq(Cq* cq);
    /// Null if no QP of this context has the doorbell slot.
    Qp* find_qp(std::uint32_t slot) const;
    /// Calls f(qp) for each QP until it returns true.
    template <typename F>
    bool any_qp(F&& f) {
        const std::lock_guard lock(objects_mutex_);
        for (Qp* qp : qps_)
            if (f(*qp)) return true;
        return false;
    }

    int async_read_fd() const;
    int async_write_fd() const { return async_.write_end.get(); }
    /// A new descriptor for the asynchronous events, for an imported context.
    int duplicate_async_fd() const;

    /// The engine is gone: tells everybody who may be waiting. Called by the monitor thread.
    void on_engine_death();

  private:
    /// What a session brings with it, besides what the reply to its hello puts into the context.
    struct SessionEnds {
        EventPipe async;
        UniqueFd helper;
        UniqueFd staging;
    };
    int shake_hands(std::uint32_t flags);
    int say_hello(std::uint32_t flags, SessionEnds& ends);
    int join(int cmd_fd);
    int watch(SessionEnds ends);
    int take_hello_reply(const ipc::HelloReply& reply, std::vector<UniqueFd> fds);
    int learn_device();
    int open_session_after_fork();
    int enter_session_after_fork(int inherited_fd);
    void take_async_pipe_after_fork(EventPipe pipe);

    static constexpr std::uint32_t kQpsPerPage = 512;
    using QpPage = std::array<std::atomic<Qp*>, kQpsPerPage>;

    ibv_context* verbs_;
    UniqueFd own_socket_;  ///< of an imported context, and of a fork's child
    ControlChannel control_;
    EventPipe async_;
    UniqueFd wake_;
    Mapping engine_page_;
    ipc::DoorbellMap* doorbells_ = nullptr;
    ipc::DeviceLimits limits_{};
    std::unique_ptr<PortFacts[]> ports_;
    LkeyTable lkeys_;
    std::unique_ptr<StagingPool> staging_;
    Channels channels_;
    Monitor monitor_;
    std::mutex objects_mutex_;
    std::vector<Qp*> qps_;
    std::vector<Cq*> cqs_;
    std::array<std::atomic<QpPage*>, ipc::kDoorbellSlots / kQpsPerPage> qp_pages_{};
    std::vector<std::unique_ptr<QpPage>> qp_page_owners_;
    std::array<std::uint64_t, 2> probe_{};
    std::uint32_t generation_ = 0;
};

/// What the driver's table of operations calls (driver.cc).
verbs_context* open_context(ibv_device* device, int cmd_fd, void* private_data);
verbs_context* import_context(ibv_device* device, int cmd_fd);
void free_context(ibv_context* context);

}  // namespace uib::provider
