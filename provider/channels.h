// Completion channels. libibverbs makes a channel by a write() on cmd_fd and destroys it by close(), both
// behind the provider's back; the preloaded shim forwards the write to us. A channel is a pipe: the program
// gets the read end, the engine the write end, and a duplicate of that stays here for purges and for wake-ups
// after the engine's death. A closed channel is noticed by the engine (no reader is left) and here when its
// descriptor number comes again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "provider/control_channel.h"
#include "provider/descriptors.h"

namespace uib::provider {

class Channels {
  public:
    explicit Channels(ControlChannel& control) : control_(control) {}
    ~Channels();

    /// Meets the shim, if the program runs under it. `async_fd_of` gives descriptors to an imported context.
    void register_with_shim(int cmd_fd, int (*async_fd_of)(void*), void* cookie);
    void unregister_from_shim();

    struct Channel {
        int read_fd;
        std::uint32_t handle;
        UniqueFd write_end;
    };
    /// The engine's handle of the channel with this read end.
    std::optional<std::uint32_t> handle_of(int read_fd);
    /// Its write end, ours as long as the channel lives; -1 if unknown.
    int write_fd_of(int read_fd);

    /// What the shim forwards: as write() on cmd_fd.
    int on_write(const void* buffer, std::size_t length);
    /// As ioctl() on cmd_fd.
    int on_ioctl(unsigned long request, void* argument);

    // Fork (fork.h): the parent's channels are unknown in the child.
    void before_fork() { mutex_.lock(); }
    void after_fork_in_parent() { mutex_.unlock(); }
    void after_fork_in_child() {
        channels_.clear();
        mutex_.unlock();
    }

    /// A new channel: its read end, the caller's. -1 with errno set on failure.
    int create();

  private:
    ControlChannel& control_;
    int cmd_fd_ = -1;
    int (*async_fd_of_)(void*) = nullptr;
    void* cookie_ = nullptr;
    std::mutex mutex_;
    std::vector<Channel> channels_;
};

}  // namespace uib::provider
