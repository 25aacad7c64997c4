// A capture under way: what the lane gathers, written to the command's file or pipe.
//
// Owned by the engine and used by the control thread alone. tick() takes the lane's buffer away under the
// baton and writes without it. Regular files take everything; of anything else only what is free is written,
// so that a slow reader cannot hold the control thread up. While something waits to be written the lane's
// buffer is left where it is; when that is full, the lane counts packets as dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/daemon/baton.h"
#include "engine/ipc/unique_fd.h"
#include "engine/verbs/adapter.h"

namespace uib::daemon {

class CaptureRun {
  public:
    /// The adapter's capture has been started. `ended` is closed when everything is written.
    CaptureRun(verbs::Adapter& adapter, Baton& baton, std::uint32_t session, ipc::UniqueFd file,
               ipc::UniqueFd ended);
    /// Ends the recording and writes what can be written at once.
    ~CaptureRun();
    CaptureRun(const CaptureRun&) = delete;
    CaptureRun& operator=(const CaptureRun&) = delete;

    [[nodiscard]] std::uint32_t session() const { return session_; }
    /// tick() has something to do before long.
    [[nodiscard]] bool busy() const { return static_cast<bool>(ended_); }
    void tick();
    /// No more packets are recorded from now on.
    void stop();

    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
    /// errno of the write that ended it, or 0.
    [[nodiscard]] int error() const { return error_; }

  private:
    static constexpr std::size_t kFileBytes = std::size_t{8} << 20;  ///< written in one tick
    static constexpr std::size_t kPipeBytes = 4096;  ///< fit when a pipe is writable (PIPE_BUF)

    void take(bool last);
    [[nodiscard]] bool write_some(std::size_t limit);
    void fail(int error);

    verbs::Adapter& adapter_;
    Baton& baton_;
    std::uint32_t session_;
    ipc::UniqueFd file_;
    ipc::UniqueFd ended_;
    bool regular_ = false;
    bool recording_ = true;
    std::vector<std::byte> pending_;
    std::size_t written_ = 0;  ///< of pending_
    std::uint64_t packets_ = 0;
    std::uint64_t dropped_ = 0;
    int error_ = 0;
};

}  // namespace uib::daemon
