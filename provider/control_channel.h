// The provider's side of the control socket: one request and its reply at a time (engine/ipc/control.h), and
// the arena whose chunks come with the replies.
//
// Any thread may call; a mutex is held over request and reply. Every failure comes back as a positive errno:
// the engine's refusals as the engine gave them, EIO when the engine is gone or answered nonsense. The
// arena's mappings stay where they are until the channel dies, so resolved pointers need no lock.
//
// In a fork's child the socket is the parent's and is not touched. The first call there has the context open
// a session of its own (fork.h), whose chunks are numbered anew.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/ipc/control.h"
#include "provider/descriptors.h"

namespace uib::provider {

/// What a context can still do.
enum class Liveness : std::uint32_t {
    kAlive,
    kDead,     ///< the engine is gone: flushes, no hang
    kForeign,  ///< this process is a fork's child and has no session of its own yet
};

class ControlChannel {
  public:
    /// Does not own `fd`.
    void use(int fd) { fd_ = fd; }
    int fd() const { return fd_; }

    /// Request and reply are the bodies of the operation; a reply body of another size than `reply` is an
    /// error.
    template <typename Request, typename Reply>
    int call(ipc::Operation operation, const Request& request, Reply& reply, std::span<const int> fds = {},
             std::vector<UniqueFd>* reply_fds = nullptr) {
        static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply>);
        return exchange(operation, std::as_bytes(std::span(&request, 1)),
                        std::as_writable_bytes(std::span(&reply, 1)), fds, reply_fds);
    }

    /// A request whose reply has no body, or one that does not matter.
    template <typename Request>
    int command(ipc::Operation operation, const Request& request) {
        static_assert(std::is_trivially_copyable_v<Request>);
        return exchange(operation, std::as_bytes(std::span(&request, 1)), {}, {}, nullptr);
    }

    /// A request without a body.
    template <typename Reply>
    int query(ipc::Operation operation, Reply& reply, std::span<const int> fds = {}) {
        return exchange(operation, {}, std::as_writable_bytes(std::span(&reply, 1)), fds, nullptr);
    }

    /// The `bytes` bytes at `where` in the arena; null if they do not lie in it, which only a broken engine
    /// can cause.
    std::byte* resolve(const ipc::Location& where, std::size_t bytes);

    template <typename T>
    T* resolve_array(const ipc::Location& where, std::size_t count = 1) {
        return reinterpret_cast<T*>(resolve(where, count * sizeof(T)));
    }

    Liveness liveness() const { return liveness_.load(std::memory_order_acquire); }
    bool alive() const { return liveness() == Liveness::kAlive; }

    /// The engine is gone. Does not change a foreign channel.
    void declare_dead();

    // Fork (fork.h). No call is under way while the process forks.
    void before_fork();
    void after_fork_in_parent();
    /// `open_session` is called by the first call here; other calls wait for it. It makes calls itself,
    /// between start_over() and end_foreign(), and returns 0 or an errno, with which the call fails; the next
    /// one then tries again.
    void after_fork_in_child(std::function<int()> open_session);
    /// A connection without history, on `fd` (not owned).
    void start_over(int fd);
    void end_foreign(Liveness liveness) { liveness_.store(liveness, std::memory_order_release); }

  private:
    int exchange(ipc::Operation operation, std::span<const std::byte> request, std::span<std::byte> reply,
                 std::span<const int> fds, std::vector<UniqueFd>* reply_fds);
    bool send(ipc::Operation operation, std::span<const std::byte> request, std::span<const int> fds);
    int receive(ipc::Operation operation, std::span<std::byte> reply, std::vector<UniqueFd>* reply_fds);
    bool adopt_chunks(std::vector<UniqueFd>& fds, std::uint32_t count);
    int break_down();
    int admit();

    int fd_ = -1;
    std::uint32_t tag_ = 0;
    std::mutex mutex_;
    std::mutex chunks_mutex_;
    std::vector<Mapping> chunks_;
    std::vector<Mapping> inherited_chunks_;  ///< of the parent's session: its queues, which objects here name
    std::atomic<Liveness> liveness_{Liveness::kAlive};
    std::mutex opening_mutex_;
    std::atomic<std::thread::id> opener_{};  ///< the thread that runs `open_session_`
    std::function<int()> open_session_;
};

/// Connects to the engine's socket; empty with errno set if nobody answers.
UniqueFd connect_to_engine();

}  // namespace uib::provider
