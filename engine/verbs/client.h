// One session's side of the shared memory: its arena, its doorbells, its asynchronous-event pipe and the way
// to its private memory. The daemon makes one per connection; queues that the session creates live in it.
// Used with the lane's baton held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/ipc/control.h"
#include "engine/ipc/doorbell.h"
#include "engine/memory/mapped_space.h"
#include "engine/memory/process_space.h"
#include "engine/verbs/arena.h"
#include "engine/verbs/event_pipe.h"

namespace uib::verbs {

class Device;
class Qp;

class Client {
  public:
    Client(std::uint32_t id, int pid, memory::MappedSpace::Credentials credentials, ipc::UniqueFd async_pipe);
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;
    ~Client();

    /// Makes the arena's first chunk with the doorbell map. ENOMEM, EMFILE.
    int start();

    [[nodiscard]] std::uint32_t id() const { return id_; }
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] memory::MappedSpace::Credentials credentials() const { return credentials_; }
    [[nodiscard]] Arena& arena() { return arena_; }
    [[nodiscard]] ipc::DoorbellMap& doorbells() { return *doorbells_; }
    [[nodiscard]] ipc::Location doorbell_location() const { return doorbell_block_.location; }

    /// The session's staging pool (ipc::AllocStagingRequest). 0 or errno.
    int alloc_staging(const ipc::AllocStagingRequest& request, ipc::AllocStagingReply& reply);
    /// The pool's bytes from `offset` (in units of ipc::kStagingUnit) on; nullopt if they are not all in it.
    [[nodiscard]] std::optional<std::span<const std::byte>> staged(std::uint32_t offset,
                                                                   std::uint32_t length) const {
        const std::uint64_t start = std::uint64_t{offset} * ipc::kStagingUnit;
        if (start > staging_block_.size || length > staging_block_.size - start) return std::nullopt;
        return std::span<const std::byte>(staging_block_.memory + start, length);
    }

    [[nodiscard]] const std::shared_ptr<memory::ProcessSpace>& space() const { return space_; }
    void set_space(std::shared_ptr<memory::ProcessSpace> space) { space_ = std::move(space); }

    /// Doorbell slots name QPs. Nullopt when all are taken.
    std::optional<std::uint32_t> take_slot(Qp& qp);
    void free_slot(std::uint32_t slot);
    [[nodiscard]] Qp* qp_of_slot(std::uint32_t slot) const {
        return slot < slots_.size() ? slots_[slot] : nullptr;
    }

    /// The device that it has opened; nullptr before.
    void set_device(const Device& device) { device_ = &device; }
    [[nodiscard]] const Device* device() const { return device_; }

    /// Raw packets may be sent and received: a right of the process, told by the daemon.
    void allow_raw_packets() { raw_packets_ = true; }
    [[nodiscard]] bool may_use_raw_packets() const { return raw_packets_; }

    /// Writes an asynchronous event; counts it where `counter` is given.
    void raise(std::uint32_t type, std::uint64_t element, std::uint32_t* counter);
    [[nodiscard]] EventPipe& async_pipe() { return async_pipe_; }

    /// The client broke the protocol: the daemon closes its session at the next chance.
    void condemn(const char* why);
    [[nodiscard]] const char* condemned() const { return condemned_; }

    /// A pipe of this client has a backlog that the daemon must retry.
    void note_backlog() {
        backlog_ = true;
        call_attention();
    }
    [[nodiscard]] bool take_backlog_note() { return std::exchange(backlog_, false); }

    /// Where to tell that the daemon should look after this client (Adapter::add_client).
    void set_attention(bool* flag) { attention_ = flag; }

  private:
    void call_attention() {
        if (attention_ != nullptr) *attention_ = true;
    }

    std::uint32_t id_;
    int pid_;
    memory::MappedSpace::Credentials credentials_;
    Arena arena_;
    ArenaBlock doorbell_block_;
    ArenaBlock staging_block_;
    ipc::DoorbellMap* doorbells_ = nullptr;
    EventPipe async_pipe_;
    std::shared_ptr<memory::ProcessSpace> space_;
    std::vector<Qp*> slots_;
    std::vector<std::uint32_t> free_slots_;
    const char* condemned_ = nullptr;
    bool backlog_ = false;
    bool raw_packets_ = false;
    const Device* device_ = nullptr;
    bool* attention_ = nullptr;
};

}  // namespace uib::verbs
