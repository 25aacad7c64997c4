// The control socket's address: taken by one engine at a time, taken over from a dead one.
//
// A lock file beside the socket (held by flock while the engine lives, whatever way it ends) tells a living
// owner from a stale socket file.
#pragma once

#include <stdexcept>
#include <string>

#include "engine/ipc/unique_fd.h"

namespace uib::daemon {

/// Another engine serves the socket.
class EngineRunning : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Listener {
  public:
    /// Makes missing directories, takes the lock, removes a stale socket, listens. Throws EngineRunning or
    /// std::system_error.
    explicit Listener(const std::string& path);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    void take_lock(const std::string& lock_path);

    std::string path_;
    ipc::UniqueFd lock_;
    ipc::UniqueFd socket_;
};

}  // namespace uib::daemon
