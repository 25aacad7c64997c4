#include "engine/cli/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "engine/cli/engine_client.h"
#include "engine/cli/environment.h"
#include "engine/cli/fault_rule.h"
#include "engine/ipc/control_taps.h"
#include "engine/ipc/socket_path.h"
#include "engine/ipc/unique_fd.h"

namespace uib::cli {
namespace {

constexpr int kFlushPatienceMs = 5000;

ipc::UniqueFd open_output(const std::string& path) {
    if (path == "-") {
        if (::isatty(STDOUT_FILENO) != 0)
            throw Failure(
                "a capture is not for a terminal; give a file, or pipe it: uib capture -w - | tshark -r -");
        return ipc::UniqueFd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
    }
    constexpr mode_t kMode = 0644;
    ipc::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
    if (!file) throw Failure("cannot write " + path + ": " + std::strerror(errno));
    return file;
}

ipc::UniqueFd block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    ipc::UniqueFd signals(signalfd(-1, &set, SFD_CLOEXEC));
    if (!signals) throw Failure(std::string("signalfd: ") + std::strerror(errno));
    return signals;
}

/// Until the capture has ended or a signal comes; with a time limit, -1 for none. Throws when the engine
/// goes.
void wait_for_end(const EngineClient& engine, int ended, int signals, int patience_ms) {
    std::array<pollfd, 3> waits{{{ended, POLLIN, 0}, {signals, POLLIN, 0}, {engine.descriptor(), POLLIN, 0}}};
    while (::poll(waits.data(), waits.size(), patience_ms) < 0 && errno == EINTR) {
    }
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0) {
        signalfd_siginfo taken{};
        [[maybe_unused]] const auto size = ::read(signals, &taken, sizeof taken);
        return;
    }
    if (waits[2].revents != 0) throw Failure("the engine has ended, and the capture with it");
}

Failure explained(const Refusal& refusal, const std::string& device) {
    switch (refusal.error) {
        case EPERM:
            return Failure("only root and the user who runs the engine may capture packets");
        case EBUSY:
            return Failure("another capture is running; the engine makes one at a time");
        case ENODEV:
            return Failure("no device '" + device + "'; `uib status` lists them");
        default:
            return refusal;
    }
}

}  // namespace

int CaptureCommand::run() {
    ipc::StartCaptureRequest request{};
    if (device_.size() >= sizeof request.device) throw Failure("no device '" + device_ + "'");
    device_.copy(request.device, sizeof request.device - 1);
    if (!qp_.empty()) {
        constexpr std::uint64_t kMaxQp = 0xFFFFFF;
        request.has_qp = 1;
        request.qp = static_cast<std::uint32_t>(parse_number(qp_, kMaxQp, "queue pair number"));
    }
    request.snap_bytes = snap_bytes_;
    request.packets = count_;

    const ipc::UniqueFd signals = block_signals();
    EngineClient engine(ipc::socket_path());
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Failure(std::string("pipe: ") + std::strerror(errno));
    const ipc::UniqueFd ended(ends[0]);
    {
        const ipc::UniqueFd engines_end(ends[1]);
        const ipc::UniqueFd output = open_output(file_);
        try {
            engine.start_capture(request, output.get(), engines_end.get());
        } catch (const Refusal& refusal) {
            throw explained(refusal, device_);
        }
    }
    // The engine alone holds the output now, so that a reader of a pipe sees its end.
    if (file_ == "-") ::close(STDOUT_FILENO);
    std::fprintf(stderr, "capturing to %s\n", file_ == "-" ? "standard output" : file_.c_str());
    wait_for_end(engine, ended.get(), signals.get(), -1);
    engine.stop_capture();
    wait_for_end(engine, ended.get(), signals.get(), kFlushPatienceMs);
    const ipc::StopCaptureReply result = engine.stop_capture();
    std::fprintf(stderr, "%llu packets captured, %llu dropped\n",
                 static_cast<unsigned long long>(result.packets),
                 static_cast<unsigned long long>(result.dropped));
    if (result.error == 0 || (file_ == "-" && result.error == EPIPE)) return 0;
    throw Failure("writing " + file_ + ": " + std::strerror(static_cast<int>(result.error)));
}

}  // namespace uib::cli
