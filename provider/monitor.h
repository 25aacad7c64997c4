// One thread per context that does what nobody calls for: it notices that the engine has gone, and it serves
// the copy helper, by which the engine reaches this process's memory where the kernel does not let it
// (engine/ipc/control.h).
//
// The thread blocks all signals, never reads the control socket (only the hang-up interests it) and takes no
// lock but those of Context::on_engine_death.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>

#include "engine/ipc/control.h"
#include "provider/descriptors.h"

namespace uib::provider {

/// Serves one request of the copy helper: `pieces` of it copied between this process's memory and the file
/// `staging`. The kernel does the copy, so that a bad address is EFAULT and no fault.
ipc::HelperReply copy_pieces(const ipc::HelperRequest& request, const ipc::HelperPiece* pieces, int staging);

class Monitor {
  public:
    ~Monitor() { stop(); }

    /// The helper socket and the staging file may be empty. 0 or errno.
    int start(int control_fd, UniqueFd helper, UniqueFd staging, std::function<void()> on_death);
    void stop();
    /// In a fork's child, where the thread does not exist.
    void forget() { running_ = false; }

  private:
    static void* enter(void* self);
    void run();
    bool serve_helper();

    int control_fd_ = -1;
    UniqueFd helper_;
    UniqueFd staging_;
    UniqueFd stop_;
    std::function<void()> on_death_;
    pthread_t thread_{};
    bool running_ = false;
};

}  // namespace uib::provider
