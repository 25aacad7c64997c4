// A context: the namespace of handles that ibv_open_device gives a process, and the control operations on its
// objects.
//
// Objects are owned by the context and remember the client (session) that made them; their queues live in
// that client's memory. A second client may join (ibv_import_device). When a client leaves, its objects go,
// users first; what somebody else's objects still use (a PD, a region's PD) stays until those go. Every
// operation checks all it is told and answers with 0 or a positive errno, having changed nothing in the
// latter case. Used with the lane's baton held.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/ipc/control_cq.h"
#include "engine/ipc/control_flow.h"
#include "engine/ipc/control_memory.h"
#include "engine/ipc/control_qp.h"
#include "engine/ipc/control_rss.h"
#include "engine/ipc/control_srq.h"
#include "engine/memory/mapped_space.h"
#include "engine/verbs/adapter.h"
#include "engine/verbs/completion_queue.h"
#include "engine/verbs/handle_table.h"
#include "engine/verbs/qp.h"

namespace uib::verbs {

/// Device memory (ibv_alloc_dm): a memfd that the engine maps and the client may map.
struct DeviceMemory {
    Client* owner = nullptr;
    std::uint64_t length = 0;
    std::uint32_t uses = 0;
    ipc::UniqueFd fd;
    std::shared_ptr<memory::AddressSpace> space;
};

struct RegionObject {
    Client* owner = nullptr;
    Pd* pd = nullptr;
    DeviceMemory* device_memory = nullptr;
    memory::Region* region = nullptr;
    ipc::RegMrRequest definition{};
};

struct WindowObject {
    Client* owner = nullptr;
    Pd* pd = nullptr;
    memory::Window* window = nullptr;
};

/// A client's handle of a QP. The QP goes with its last handle: an XRC target QP may have several, in several
/// contexts (ibv_open_qp).
class QpHandle {
  public:
    /// `xrcd`: what a target QP was made or opened through, else nullptr.
    QpHandle(std::shared_ptr<Qp> qp, Client& client, std::uint64_t user_handle, XrcdObject* xrcd);
    ~QpHandle();
    QpHandle(const QpHandle&) = delete;
    QpHandle& operator=(const QpHandle&) = delete;

    [[nodiscard]] Qp& qp() const { return *qp_; }
    [[nodiscard]] QpHolder& holder() { return holder_; }
    /// Before the end: takes back the events that were not written yet. How many the client owes an
    /// acknowledgement for.
    std::uint32_t withdraw_events();

  private:
    std::shared_ptr<Qp> qp_;
    QpHolder holder_;
    XrcdObject* xrcd_;
};

/// A flow rule: in its port's table while it lives.
struct FlowObject {
    FlowObject(const FlowRule& wanted, FlowTable& port);
    ~FlowObject();
    FlowObject(const FlowObject&) = delete;
    FlowObject& operator=(const FlowObject&) = delete;

    const FlowRule rule;
    FlowTable& table;
};

struct ObjectCounts {
    std::uint32_t pd = 0, mr = 0, mw = 0, cq = 0, qp = 0, srq = 0, channel = 0, dm = 0, xrcd = 0;
    std::uint32_t wq = 0, rwq_table = 0;
    ObjectCounts& operator+=(const ObjectCounts& other);
};

class Context {
  public:
    Context(Adapter& adapter, Device& device, std::uint32_t id)
        : adapter_(adapter), device_(device), id_(id) {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] Device& device() { return device_; }

    // -- protection domains, memory (context_memory.cc) --
    int alloc_pd(Client& client, std::uint32_t& handle);
    int dealloc_pd(std::uint32_t handle);
    int import_pd(std::uint32_t handle) { return pds_.get(handle) != nullptr ? 0 : ENOENT; }
    /// `file` is the descriptor that came with the request (shared and dma-buf regions), or -1.
    int reg_mr(Client& client, const ipc::RegMrRequest& request, int file, ipc::RegMrReply& reply);
    int rereg_mr(const ipc::ReregMrRequest& request, int file, ipc::RegMrReply& reply);
    int dereg_mr(std::uint32_t handle);
    int import_mr(std::uint32_t pd, std::uint32_t handle, ipc::ImportMrReply& reply);
    int alloc_mw(Client& client, const ipc::AllocMwRequest& request, ipc::AllocMwReply& reply);
    int dealloc_mw(std::uint32_t handle);
    int alloc_dm(Client& client, const ipc::AllocDmRequest& request, ipc::AllocDmReply& reply);
    int free_dm(std::uint32_t handle);
    [[nodiscard]] DeviceMemory* dm(std::uint32_t handle) const { return dms_.get(handle); }
    transport::Status bind_window(Qp& qp, const transport::SendRequest& request);

    // -- queues (context_queues.cc) --
    int create_channel(Client& client, ipc::UniqueFd write_end, std::uint32_t& handle);
    int destroy_channel(std::uint32_t handle);
    int create_cq(Client& client, const ipc::CreateCqRequest& request, ipc::CqReply& reply);
    int resize_cq(const ipc::ResizeCqRequest& request, ipc::CqReply& reply);
    int modify_cq(const ipc::ModifyCqRequest& request);
    int destroy_cq(std::uint32_t handle, ipc::EventsReply& reply);
    int create_srq(Client& client, const ipc::CreateSrqRequest& request, ipc::SrqReply& reply);
    int modify_srq(const ipc::ModifySrqRequest& request);
    int query_srq(std::uint32_t handle, ipc::QuerySrqReply& reply);
    int destroy_srq(std::uint32_t handle, ipc::EventsReply& reply);

    // -- queue pairs (context_qps.cc) --
    int create_qp(Client& client, const ipc::CreateQpRequest& request, ipc::QpReply& reply);
    int open_qp(Client& client, const ipc::OpenQpRequest& request, ipc::QpReply& reply);
    int modify_qp(const ipc::ModifyQpRequest& request);
    int query_qp(std::uint32_t handle, ipc::QueryQpReply& reply);
    int destroy_qp(std::uint32_t handle, ipc::EventsReply& reply);
    int attach_multicast(const ipc::MulticastRequest& request);
    int detach_multicast(const ipc::MulticastRequest& request);

    // -- XRC domains (context_xrc.cc) --
    int open_xrcd(Client& client, const ipc::OpenXrcdRequest& request, ipc::UniqueFd file,
                  std::uint32_t& handle);
    int close_xrcd(std::uint32_t handle);

    // -- flow rules (context_flows.cc) --
    int create_flow(Client& client, const ipc::CreateFlowRequest& request, std::uint32_t& handle);
    int destroy_flow(std::uint32_t handle);

    // -- receive side scaling (context_wqs.cc) --
    int create_wq(Client& client, const ipc::CreateWqRequest& request, ipc::QpReply& reply);
    int modify_wq(const ipc::ModifyWqRequest& request);
    int destroy_wq(std::uint32_t handle, ipc::EventsReply& reply);
    int create_rwq_table(Client& client, const ipc::CreateRwqTableRequest& request, std::uint32_t& handle);
    int destroy_rwq_table(std::uint32_t handle);
    int create_hash_qp(Client& client, const ipc::CreateHashQpRequest& request, ipc::QpReply& reply);

    // -- life (context.cc) --
    /// The client is gone: its objects go. Repeats until no more can go, so order does not matter.
    void remove_client(Client& client);
    [[nodiscard]] ObjectCounts counts();
    /// Channels whose reader has closed and that no CQ uses are dropped; backlogs of `client` are retried.
    void tend_channels(Client& client);

  private:
    int make_region(Client& client, const ipc::RegMrRequest& request, int file, memory::RegionInit& init);
    int make_space(Client& client, const ipc::RegMrRequest& request, int file, memory::RegionInit& init);
    int check_qp_request(const Client& client, const ipc::CreateQpRequest& request, QpInit& init);
    int check_queues(const Client& client, const ipc::CreateQpRequest& request, QpInit& init);
    int create_target(Client& client, const ipc::CreateQpRequest& request, ipc::QpReply& reply);
    int bind_xrc_srq(const Client& client, const ipc::CreateSrqRequest& request, SharedReceiveQueue& srq);
    /// Nullptr if there is none or it is another client's.
    [[nodiscard]] XrcdObject* xrcd_of(const Client& client, std::uint32_t handle) const;
    [[nodiscard]] Qp* qp_of(std::uint32_t handle) const;
    int change_rights(const RegionObject& object, ipc::RegMrRequest& wanted);
    [[nodiscard]] int check_raw_packets(const Client& client) const;
    bool drop_queues_of(Client& client);
    bool drop_memory_of(Client& client);

    Adapter& adapter_;
    Device& device_;
    std::uint32_t id_;
    HandleTable<Pd> pds_;
    HandleTable<RegionObject> regions_;
    HandleTable<WindowObject> windows_;
    HandleTable<DeviceMemory> dms_;
    HandleTable<Channel> channels_;
    HandleTable<CompletionQueue> cqs_;
    HandleTable<XrcdObject> xrcds_;
    HandleTable<SharedReceiveQueue> srqs_;
    HandleTable<QpHandle> wqs_;
    HandleTable<RwqTable> rwq_tables_;  ///< after what they lead to: go before it
    HandleTable<QpHandle> qps_;
    HandleTable<FlowObject> flows_;  ///< after the QPs: goes before them
};

}  // namespace uib::verbs
