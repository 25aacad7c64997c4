// Private memory of a client process. One per process, shared by its regions; addresses are the client's
// virtual ones.
//
// Two ways: process_vm_readv/writev under a pidfd, or the provider's copy helper (helper_channel.h). A pid
// must not be used once its process is gone, for another may have it: the pidfd is looked at when the last
// look is over 1 ms old (pids are not used again that fast), and the session marks the space dead as soon as
// it learns of the end.
//
// Used by one lane's thread; mark_dead(), dead() and failed() by any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/memory/address_space.h"
#include "engine/memory/helper_channel.h"
#include "engine/memory/owned_fd.h"

namespace uib::memory {

class ProcessSpace final : public AddressSpace {
  public:
    /// Reaches the memory of `pid` itself. `pidfd` must have been opened while the process was known to live.
    ProcessSpace(pid_t pid, OwnedFd pidfd);
    /// Leaves the copying to the provider's helper.
    explicit ProcessSpace(std::unique_ptr<HelperChannel> helper);

    /// Whether the engine may reach the process itself (HelloRequest): reads the word at `probe_address`,
    /// which must be `probe_value`, and writes its complement to the word behind it.
    static bool can_reach(pid_t pid, std::uint64_t probe_address, std::uint64_t probe_value);

    std::byte* direct(std::uint64_t /*address*/, std::uint64_t /*length*/) override { return nullptr; }
    bool read(std::span<const RemoteRange> from, std::byte* to) override;
    bool write(std::span<const RemoteRange> to, std::span<const ConstBytes> from) override;

    /// The process is gone or its session ends: no access from now on.
    void mark_dead() { dead_.store(true); }
    [[nodiscard]] bool dead() const { return dead_.load(); }
    /// The copy helper did not do its duty: the session must be closed.
    [[nodiscard]] bool failed() const { return helper_ && helper_->failed(); }
    [[nodiscard]] ipc::MemoryMode mode() const {
        return helper_ ? ipc::MemoryMode::kHelper : ipc::MemoryMode::kRemote;
    }
    [[nodiscard]] HelperChannel* helper() { return helper_.get(); }

  private:
    bool alive();
    bool judge(ssize_t moved, std::uint64_t expected);
    bool read_remote(std::span<const RemoteRange> from, std::byte* to);
    bool write_remote(std::span<const RemoteRange> to, std::span<const ConstBytes> from);

    pid_t pid_ = 0;
    OwnedFd pidfd_;
    std::uint64_t looked_at_ns_ = 0;
    std::atomic<bool> dead_{false};
    std::unique_ptr<HelperChannel> helper_;
};

}  // namespace uib::memory
