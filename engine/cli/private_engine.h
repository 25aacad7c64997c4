// An engine that lives for one command: its own process in its own directory.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "engine/ipc/unique_fd.h"

namespace uib::cli {

struct PrivateEngineOptions {
    std::filesystem::path engine;  ///< uibd
    std::string config;            ///< empty: the engine's defaults
    std::string log_level;
};

/// Starts an engine and owns it: the destructor stops it and removes its directory. The caller must leave
/// SIGCHLD alone or reap with ended().
class PrivateEngine {
  public:
    explicit PrivateEngine(const PrivateEngineOptions& options);
    ~PrivateEngine();
    PrivateEngine(const PrivateEngine&) = delete;
    PrivateEngine& operator=(const PrivateEngine&) = delete;

    /// Waits until the engine takes connections. Returns the number of a signal that came first on `signals`
    /// (a signalfd), or 0 when it is ready. Throws Failure when the engine ends instead or takes too long.
    int wait_until_ready(int signals);

    /// Whether the engine has ended; reaps it. `status` as waitpid gives it.
    bool ended(int& status);

    std::string socket() const { return directory_ / "engine.sock"; }

  private:
    void start(const PrivateEngineOptions& options);
    void stop();

    std::filesystem::path directory_;
    ipc::UniqueFd ready_;
    pid_t pid_ = -1;
};

/// "exit status 3" or "signal 9 (Killed)".
std::string describe_wait_status(int status);

}  // namespace uib::cli
