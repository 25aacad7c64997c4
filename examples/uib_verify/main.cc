// uib_verify: byte-for-byte verification of every RDMA operation over any libibverbs provider.
//
// Two sides, the initiator and the target, each with a device, memory that is filled with a known pattern,
// and QPs of each service. The initiator draws batches of cases from a seed (plan.h), tells the target over a
// stream socket, posts them all at once, and both sides then compare: checksums over what was moved, taken
// from memory on both sides and exchanged; every byte of the slots outside the message against the pattern;
// byte counts, immediate data, keys and opcodes of completions; atomics' old and new values. Then the memory
// is put back, and the next batch follows.
//
// The sides are two processes (the target forked before any verbs call) or, with --threads, two threads, or
// with --listen and --connect two programs on hosts of their own.
// Whatever fails throws kit::Error in one side; it is printed, the other side notices the closed socket, and
// the exit status is 1.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "examples/uib_verify/side.h"

namespace {

using uib::kit::SideChannel;
using uib::verify::Options;

template <typename F>
bool guarded(const char* side, const Options& options, F&& run) {
    try {
        run();
        return true;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "uib_verify: %s (seed %llu): %s\n", side,
                     static_cast<unsigned long long>(options.seed), error.what());
        return false;
    }
}

bool run_threads(const Options& options, SideChannel initiator, SideChannel target) {
    bool target_ok = false;
    std::thread other([&options, &target_ok, end = std::move(target)]() mutable {
        SideChannel mine = std::move(end);
        target_ok = guarded("target", options, [&] { run_target(options, mine); });
    });
    bool ok = false;
    {
        SideChannel mine = std::move(initiator);
        ok = guarded("initiator", options, [&] { run_initiator(options, mine); });
    }
    other.join();
    return ok && target_ok;
}

bool run_processes(const Options& options, SideChannel initiator, SideChannel target) {
    const pid_t child = ::fork();
    if (child < 0) uib::kit::fail("fork", errno);
    if (child == 0) {
        { const SideChannel not_mine = std::move(initiator); }
        const bool ok = guarded("target", options, [&] { run_target(options, target); });
        std::fflush(nullptr);
        ::_exit(ok ? 0 : 1);
    }
    { const SideChannel not_mine = std::move(target); }
    bool ok = false;
    {
        SideChannel mine = std::move(initiator);
        ok = guarded("initiator", options, [&] { run_initiator(options, mine); });
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool run_side(const Options& options, int limit) {
    if (!options.listen.empty()) {
        SideChannel mine = SideChannel::accept_one(options.listen, limit);
        return guarded("target", options, [&] { run_target(options, mine); });
    }
    SideChannel mine = SideChannel::connect_to(options.connect, limit);
    return guarded("initiator", options, [&] { run_initiator(options, mine); });
}

}  // namespace

int main(int argc, char** argv) {
    Options options = uib::verify::parse_options(argc, argv);
    if (options.large) {
        options.max_bytes = std::uint64_t{1} << 31;
        options.in_flight = 1;
    }
    bool ok = false;
    guarded("start", options, [&] {
        const int limit = static_cast<int>(uib::verify::limit_for(options.max_bytes)) + 20;
        if (!options.listen.empty() || !options.connect.empty()) {
            ok = run_side(options, limit);
            return;
        }
        auto [initiator, target] = SideChannel::make_pair(limit);
        ok = options.threads ? run_threads(options, std::move(initiator), std::move(target))
                             : run_processes(options, std::move(initiator), std::move(target));
    });
    return ok ? 0 : 1;
}
