// The engine's side of a provider's copy helper: for clients whose memory the kernel lets the engine reach
// neither by mapping nor by process_vm_* (ipc/control.h, "copy helper").
//
// The channel owns its end of the helper socket and the staging memory (a sealed memfd that client and engine
// map). A copy is cut into requests that fit the staging memory and kHelperMaxPieces; each request waits for
// its answer, for at most the deadline. A helper that is late, silent or breaks the protocol is given up for
// good: failed() is true from then on, and the session is to be closed.
//
// Used by one thread at a time; failed() by any.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>

#include "engine/ipc/control.h"
#include "engine/memory/address_space.h"
#include "engine/memory/owned_fd.h"

namespace uib::memory {

class HelperChannel {
  public:
    static constexpr std::size_t kDefaultStaging = std::size_t{1} << 20;
    static constexpr std::chrono::milliseconds kDefaultDeadline{500};

    /// Takes the engine's end of the helper socket pair. Nullptr (and errno) when the staging memory cannot
    /// be made.
    static std::unique_ptr<HelperChannel> make(OwnedFd socket, std::size_t staging_bytes = kDefaultStaging,
                                               std::chrono::milliseconds deadline = kDefaultDeadline);
    ~HelperChannel();
    HelperChannel(const HelperChannel&) = delete;
    HelperChannel& operator=(const HelperChannel&) = delete;

    /// The memfd to hand to the client in the hello's reply.
    [[nodiscard]] int staging_fd() const { return staging_.get(); }

    bool read(std::span<const RemoteRange> from, std::byte* to);
    bool write(std::span<const RemoteRange> to, std::span<const ConstBytes> from);

    [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_relaxed); }

  private:
    HelperChannel(OwnedFd socket, OwnedFd staging, std::byte* base, std::size_t size,
                  std::chrono::milliseconds deadline);
    struct Message;
    /// Sends the request and waits. False: the client could not (or, with failed(), did not) copy.
    bool exchange(Message& message, std::uint16_t count, bool to_client);
    bool wait_readable();
    bool give_up();

    OwnedFd socket_;
    OwnedFd staging_;
    std::byte* base_;
    std::size_t size_;
    std::chrono::milliseconds deadline_;
    std::uint32_t tag_ = 0;
    std::atomic<bool> failed_{false};
};

}  // namespace uib::memory
