// The process that stays behind for a private engine blocks the signals that it passes on and takes them from
// a signalfd. Command and uib share their process group, so a Ctrl-C at the terminal reaches the command by
// itself: such signals (sent by the kernel) are not passed on a second time.
#include "engine/cli/run.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/cli/engine_client.h"
#include "engine/cli/environment.h"
#include "engine/cli/layout.h"
#include "engine/cli/private_engine.h"
#include "engine/ipc/socket_path.h"

namespace uib::cli {
namespace {

/// Replaces this process by the command; returns the status of the failure.
int become_command(const std::vector<std::string>& command, const Variables& environment) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> pointers;
    for (const std::string& argument : command) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
    const int error = errno;
    std::fprintf(stderr, "uib: cannot run %s: %s\n", pointers[0], std::strerror(error));
    return error == ENOENT ? kCommandNotFound : kCannotExecute;
}

/// Blocks signals for its life and offers them as a descriptor.
class Signals {
  public:
    Signals() {
        sigset_t set;
        sigemptyset(&set);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, number);
        sigprocmask(SIG_BLOCK, &set, &before_);
        // An inherited SIG_IGN would reap the children before we can see how they ended.
        struct sigaction standard {};
        standard.sa_handler = SIG_DFL;
        sigaction(SIGCHLD, &standard, &child_before_);
        fd_ = ipc::UniqueFd(signalfd(-1, &set, SFD_CLOEXEC));
        if (fd_.get() < 0) throw Failure(std::string("signalfd: ") + std::strerror(errno));
    }
    /// As the process was started.
    void restore() const {
        sigaction(SIGCHLD, &child_before_, nullptr);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    int fd() const { return fd_.get(); }

  private:
    sigset_t before_{};
    struct sigaction child_before_ {};
    ipc::UniqueFd fd_;
};

int exit_status_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Passes signals on until the command has ended; returns its wait status.
int supervise(pid_t command, PrivateEngine& engine, const Signals& signals) {
    while (true) {
        int status = 0;
        if (waitpid(command, &status, WNOHANG) == command) return status;
        int engine_status = 0;
        if (engine.ended(engine_status))
            std::fprintf(stderr, "uib: the engine ended while the command runs: %s\n",
                         describe_wait_status(engine_status).c_str());
        signalfd_siginfo info{};
        if (read(signals.fd(), &info, sizeof info) != sizeof info) continue;
        const bool from_terminal = info.ssi_code == SI_KERNEL;
        if (info.ssi_signo != SIGCHLD && !from_terminal) kill(command, static_cast<int>(info.ssi_signo));
    }
}

int run_with_private_engine(const RunOptions& options, const Layout& layout) {
    if (!layout.engine) throw Failure("cannot find uibd beside this command; is uib installed completely?");
    program_environment(layout, "");  // a missing piece is told before anything is started
    const Signals signals;
    PrivateEngine engine({*layout.engine, options.config, options.log_level});
    const Variables environment = program_environment(layout, engine.socket());
    if (const int signal_number = engine.wait_until_ready(signals.fd()); signal_number != 0)
        return 128 + signal_number;
    const pid_t command = fork();
    if (command < 0) throw Failure(std::string("fork: ") + std::strerror(errno));
    if (command == 0) {
        signals.restore();
        _exit(become_command(options.command, environment));
    }
    return exit_status_of(supervise(command, engine, signals));
}

}  // namespace

int run_command(const RunOptions& options) {
    const Layout layout = find_layout(own_path());
    const std::string socket = ipc::socket_path();
    if (options.engine == EngineChoice::kNever && !options.config.empty())
        throw Failure("--config is for an engine of its own; it does not go with --engine never");
    if (options.engine == EngineChoice::kPrivate || !options.config.empty())
        return run_with_private_engine(options, layout);
    if (options.engine == EngineChoice::kAuto) {
        const char* given = std::getenv("UIB_SOCKET");
        if (given != nullptr && *given != '\0') {
            EngineClient{socket};  // throws the reason why that engine does not answer
        } else if (!engine_answers(socket)) {
            return run_with_private_engine(options, layout);
        }
    }
    return become_command(options.command, program_environment(layout, socket));
}

}  // namespace uib::cli
