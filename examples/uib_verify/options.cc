#include "examples/uib_verify/options.h"

#include <getopt.h>

#include <cstdio>
#include <cstdlib>

#include "examples/kit/verbs.h"

namespace uib::verify {

namespace {

constexpr const char* kUsage =
    R"(uib_verify: moves bytes by every RDMA operation between two sides and compares every one of them.

  --device NAME       device of the initiator (default: the first)
  --peer-device NAME  device of the target (default: the initiator's)
  --seed N            where all choices come from (default 1)
  --rounds N          batches of cases (default 100)
  --in-flight N       cases of a batch, at once (default 8, at most 32)
  --qps N             QPs of each service (default 8)
  --max-bytes N       largest message (default 1 MiB)
  --mtu N             path MTU, 256 to 4096 (default: the port's)
  --memory KIND       private, shared or huge (default private)
  --events            sleep on completion events
  --threads           two threads of one process instead of two processes
  --listen PORT       be the target of an initiator elsewhere; all other options the same on both sides
  --connect HOST:PORT be the initiator of a target elsewhere
  --large             also messages of up to 2^31 bytes (needs 4.1 GiB of memory)
  --only TEXT         only operations whose name contains TEXT
  --verbose           print each case
)";

[[noreturn]] void usage(int status) {
    std::fputs(kUsage, status == 0 ? stdout : stderr);
    std::exit(status);
}

std::uint64_t number(const char* text, std::uint64_t least, std::uint64_t most) {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 0);
    if (end == text || *end != '\0' || value < least || value > most) {
        std::fprintf(stderr, "uib_verify: %s is not a number from %llu to %llu\n", text,
                     static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
        std::exit(2);
    }
    return value;
}

}  // namespace

Options parse_options(int argc, char** argv) {
    enum Letter : int { kDevice = 256, kPeer, kSeed, kRounds, kInFlight, kQps, kMax, kMtu, kMemory };
    enum Switch : int { kEvents = 512, kThreads, kLarge, kOnly, kVerbose, kHelp, kListen, kConnect };
    static const option kLong[] = {
        {"device", 1, nullptr, kDevice},      {"peer-device", 1, nullptr, kPeer},
        {"seed", 1, nullptr, kSeed},          {"rounds", 1, nullptr, kRounds},
        {"in-flight", 1, nullptr, kInFlight}, {"qps", 1, nullptr, kQps},
        {"max-bytes", 1, nullptr, kMax},      {"mtu", 1, nullptr, kMtu},
        {"memory", 1, nullptr, kMemory},      {"events", 0, nullptr, kEvents},
        {"threads", 0, nullptr, kThreads},    {"large", 0, nullptr, kLarge},
        {"only", 1, nullptr, kOnly},          {"verbose", 0, nullptr, kVerbose},
        {"help", 0, nullptr, kHelp},          {"listen", 1, nullptr, kListen},
        {"connect", 1, nullptr, kConnect},    {nullptr, 0, nullptr, 0},
    };
    Options options;
    for (int letter = 0; (letter = ::getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        switch (letter) {
            case kDevice:
                options.device = optarg;
                break;
            case kPeer:
                options.peer_device = optarg;
                break;
            case kSeed:
                options.seed = number(optarg, 0, UINT64_MAX);
                break;
            case kRounds:
                options.rounds = static_cast<std::uint32_t>(number(optarg, 0, UINT32_MAX));
                break;
            case kInFlight:
                options.in_flight = static_cast<std::uint32_t>(number(optarg, 1, 32));
                break;
            case kQps:
                options.queue_pairs = static_cast<std::uint32_t>(number(optarg, 1, 4096));
                break;
            case kMax:
                options.max_bytes = number(optarg, 0, std::uint64_t{1} << 31);
                break;
            case kMtu:
                options.path_mtu = static_cast<int>(number(optarg, 256, 4096));
                break;
            case kMemory:
                options.memory = kit::memory_kind(optarg);
                break;
            case kEvents:
                options.events = true;
                break;
            case kThreads:
                options.threads = true;
                break;
            case kListen:
                options.listen = optarg;
                break;
            case kConnect:
                options.connect = optarg;
                break;
            case kLarge:
                options.large = true;
                break;
            case kOnly:
                options.only = optarg;
                break;
            case kVerbose:
                options.verbose = true;
                break;
            case kHelp:
                usage(0);
            default:
                usage(2);
        }
    }
    const bool apart = !options.listen.empty() || !options.connect.empty();
    if (optind != argc || (apart && options.threads) || (!options.listen.empty() && !options.connect.empty()))
        usage(2);
    if (options.peer_device.empty()) options.peer_device = options.device;
    return options;
}

}  // namespace uib::verify
