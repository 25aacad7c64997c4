// uibd: the adapter as a daemon. Options, logging and signals; the rest is engine.h.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>

#include "engine/daemon/config.h"
#include "engine/daemon/engine.h"
#include "engine/ipc/socket_path.h"
#include "engine/memory/guarded_copy.h"

namespace {

using namespace uib;

/// Each client and each completion channel costs descriptors; what the hard limit allows is used.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::warn("the descriptor limit stays as it is");
}

ipc::UniqueFd block_signals() {
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    return ipc::UniqueFd(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
}

void tell_ready(int fd) {
    if (fd < 0) return;
    const ipc::UniqueFd ready(fd);
    if (::write(ready.get(), "1", 1) != 1) spdlog::warn("nobody waits on --ready-fd");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("uibd: an InfiniBand channel adapter in user space");
    app.set_version_flag("--version", std::string("uibd ") + UIB_VERSION);
    std::string config_path, socket, log_level;
    int ready_fd = -1;
    app.add_option("--config", config_path, "TOML file: socket, log level, devices");
    app.add_option("--socket", socket,
                   "control socket (default: $UIB_SOCKET, or in $XDG_RUNTIME_DIR/uib or /run/uib)");
    app.add_option("--ready-fd", ready_fd, "write one byte there when clients can connect");
    app.add_option("--log-level", log_level, "trace, debug, info, warning, error or off")
        ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "off"}));
    CLI11_PARSE(app, argc, argv);

    spdlog::set_default_logger(spdlog::stderr_logger_mt("uibd"));
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e uibd[%P] %l: %v");
    try {
        daemon::Config config = config_path.empty() ? daemon::Config{} : daemon::load_config(config_path);
        if (!socket.empty()) config.socket = socket;
        if (config.socket.empty()) config.socket = ipc::socket_path();
        if (!log_level.empty()) config.log_level = log_level;
        spdlog::set_level(spdlog::level::from_str(config.log_level));
        raise_descriptor_limit();
        memory::install_fault_guard();
        const ipc::UniqueFd signals = block_signals();
        daemon::Engine engine(config);
        spdlog::info("version {} serves {} device(s) at {}", UIB_VERSION, config.devices.size(),
                     config.socket);
        tell_ready(ready_fd);
        engine.run(signals.get());
        spdlog::info("stopping");
        return EXIT_SUCCESS;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return EXIT_FAILURE;
    }
}
