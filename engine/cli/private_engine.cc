#include "engine/cli/private_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/cli/environment.h"

namespace uib::cli {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
namespace {

constexpr auto kStartPatience = 30s;
constexpr auto kStopPatience = 5s;

[[noreturn]] void fail(const std::string& what) {
    throw Failure(what + ": " + std::strerror(errno));
}

/// A new directory for nobody else, on a file system made for sockets where there is one.
fs::path make_directory() {
    std::vector<std::string> bases;
    for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"})
        if (const char* value = std::getenv(name); value != nullptr && *value == '/') bases.push_back(value);
    bases.push_back("/tmp");
    for (const std::string& base : bases) {
        std::string pattern = base + "/uib-XXXXXX";
        // A Unix socket's path has 107 bytes, and the engine's socket is still to come.
        if (pattern.size() < 90 && mkdtemp(pattern.data()) != nullptr) return pattern;
    }
    fail("cannot make a directory for the engine in " + bases.back());
}

/// What the engine's process does before it is the engine.
void become_engine(const std::vector<std::string>& arguments, int ready_fd, pid_t parent) {
    setpgid(0, 0);  // the terminal's Ctrl-C is for the command; the engine is stopped after it
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    fcntl(ready_fd, F_SETFD, 0);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    if (null > STDERR_FILENO) close(null);
    dup2(STDERR_FILENO, STDOUT_FILENO);  // the command's output is the command's alone
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    const std::string line = "uib: cannot start " + arguments[0] + ": " + std::strerror(errno) + "\n";
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
    _exit(127);
}

}  // namespace

std::string describe_wait_status(int status) {
    if (WIFSIGNALED(status))
        return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    return "exit status " + std::to_string(WEXITSTATUS(status));
}

PrivateEngine::PrivateEngine(const PrivateEngineOptions& options) : directory_(make_directory()) {
    try {
        start(options);
    } catch (...) {
        std::error_code ignored;
        fs::remove_all(directory_, ignored);
        throw;
    }
}

PrivateEngine::~PrivateEngine() {
    stop();
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
}

void PrivateEngine::start(const PrivateEngineOptions& options) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
    ready_ = ipc::UniqueFd(ends[0]);
    const ipc::UniqueFd write_end(ends[1]);
    std::vector<std::string> arguments = {
        options.engine, "--socket",       socket(), "--ready-fd", std::to_string(write_end.get()),
        "--log-level",  options.log_level};
    if (!options.config.empty()) arguments.insert(arguments.end(), {"--config", options.config});

    const pid_t parent = getpid();
    const char* preload = std::getenv("LD_PRELOAD");
    const std::string engine_preload = preload_without_shim(preload == nullptr ? "" : preload);
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ > 0) return;
    if (engine_preload.empty()) {
        unsetenv("LD_PRELOAD");
    } else {
        setenv("LD_PRELOAD", engine_preload.c_str(), 1);
    }
    become_engine(arguments, write_end.get(), parent);
}

int PrivateEngine::wait_until_ready(int signals) {
    const auto deadline = Clock::now() + kStartPatience;
    while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left <= 0ms) throw Failure("the engine was not ready after 30 seconds");
        std::array<pollfd, 2> waits{{{ready_.get(), POLLIN, 0}, {signals, POLLIN, 0}}};
        if (poll(waits.data(), waits.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
            fail("poll");
        if (waits[1].revents != 0) {
            signalfd_siginfo info{};
            if (read(signals, &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD)
                return static_cast<int>(info.ssi_signo);
        }
        if (waits[0].revents == 0) continue;
        char byte = 0;
        if (read(ready_.get(), &byte, 1) == 1) return 0;
        int status = 0;
        if (waitpid(pid_, &status, 0) == pid_) pid_ = -1;
        throw Failure("the engine ended before it was ready: " + describe_wait_status(status));
    }
}

bool PrivateEngine::ended(int& status) {
    if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
}

void PrivateEngine::stop() {
    if (pid_ < 0) return;
    kill(pid_, SIGTERM);
    const auto deadline = Clock::now() + kStopPatience;
    int status = 0;
    while (Clock::now() < deadline) {
        if (ended(status)) return;
        std::this_thread::sleep_for(2ms);
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    pid_ = -1;
}

}  // namespace uib::cli
