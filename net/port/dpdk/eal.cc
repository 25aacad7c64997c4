#include "net/port/dpdk/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

namespace uib::net::dpdk {

namespace {

enum class State { kStopped, kVirtual, kPci };
State running = State::kStopped;

/// Address space for buffers; pages cost memory only when a port touches them.
constexpr const char* kMegabytes = "768";

/// Not std::timed_mutex: the thread sanitizer of GCC 12 does not know how that is locked.
struct Turn {
    std::mutex lock;
    std::condition_variable is_free;
    bool taken = false;
};

Turn& devices() {
    static Turn& turn = *new Turn;  // a thread that looks for a server may outlive main()
    return turn;
}

/// EAL leaves an empty directory behind, and the first user of the shared parent locks out all others
/// (dpdk.md, section 5): it gets a parent of its own, which goes at once.
class RuntimeDirectory {
  public:
    RuntimeDirectory() {
        std::string pattern = std::filesystem::temp_directory_path() / "uib-eal-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) return;
        path_ = pattern;
        if (const char* before = ::getenv("XDG_RUNTIME_DIR"); before != nullptr) before_ = before;
        ::setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
    }
    ~RuntimeDirectory() {
        if (path_.empty()) return;
        if (before_.empty()) {
            ::unsetenv("XDG_RUNTIME_DIR");
        } else {
            ::setenv("XDG_RUNTIME_DIR", before_.c_str(), 1);
        }
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    RuntimeDirectory(const RuntimeDirectory&) = delete;
    RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

  private:
    std::string path_;
    std::string before_;
};

}  // namespace

std::string start_eal(bool pci) {
    if (running == State::kPci || (running == State::kVirtual && !pci)) return {};
    if (running == State::kVirtual)
        return "EAL runs already without PCI devices; put the PCI port first in the configuration";
    const std::string prefix = "uib" + std::to_string(::getpid());
    // The lanes' affinity is the operator's: the main lcore may be any CPU that this process may use.
    const long cpus = std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L);
    std::vector<std::string> words = {"uibd",
                                      "--no-huge",
                                      "--no-shconf",
                                      "--no-telemetry",
                                      "-m",
                                      kMegabytes,
                                      "--file-prefix",
                                      prefix,
                                      "--lcores",
                                      "0@(0-" + std::to_string(cpus - 1) + ")",
                                      "--log-level",
                                      "*:error"};
    if (!pci) words.emplace_back("--no-pci");
    std::vector<char*> arguments;
    arguments.reserve(words.size());
    for (std::string& word : words) arguments.push_back(word.data());
    const RuntimeDirectory directory;
    if (::rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0)
        return std::string("DPDK's EAL does not start: ") + ::rte_strerror(rte_errno);
    running = pci ? State::kPci : State::kVirtual;
    std::error_code ignored;
    std::filesystem::remove("/var/run/dpdk/" + prefix, ignored);
    return {};
}

DevicesTurn::DevicesTurn(std::chrono::milliseconds patience) {
    Turn& turn = devices();
    std::unique_lock lock(turn.lock);
    held_ = turn.is_free.wait_for(lock, patience, [&] { return !turn.taken; });
    if (held_) turn.taken = true;
}

DevicesTurn::~DevicesTurn() {
    if (!held_) return;
    Turn& turn = devices();
    const std::lock_guard lock(turn.lock);
    turn.taken = false;
    turn.is_free.notify_one();
}

void register_thread() {
    if (::rte_lcore_id() == LCORE_ID_ANY) ::rte_thread_register();
}

}  // namespace uib::net::dpdk
