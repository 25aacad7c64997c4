#include "engine/memory/guarded_copy.h"

#include <pthread.h>
#include <ucontext.h>

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>

#include "engine/memory/fault_range.h"

namespace uib::memory {
namespace {

struct Access {
    const char* first = nullptr;
    const char* second = nullptr;
    std::size_t length = 0;
    Access* outer = nullptr;  ///< the access that a signal handler's own access interrupts
    sigjmp_buf environment;

    [[nodiscard]] bool covers(const void* address) const {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return at - reinterpret_cast<std::uintptr_t>(first) < length ||
               at - reinterpret_cast<std::uintptr_t>(second) < length;
    }
};

constinit thread_local Access* current_access = nullptr;

struct sigaction previous_bus;
struct sigaction previous_segv;

void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction& previous = signal == SIGBUS ? previous_bus : previous_segv;
    if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    } else {
        // Back to the default: the instruction faults again and ends the process with the true reason. A
        // signal that another process sent does not come again by itself.
        struct sigaction standard = {};
        standard.sa_handler = SIG_DFL;
        sigaction(signal, &standard, nullptr);
        if (info->si_code <= 0) raise(signal);
    }
}

void on_fault(int signal, siginfo_t* info, void* context) {
    if (info->si_code > 0) {
        Access* access = current_access;
        if (access != nullptr && access->covers(info->si_addr)) {
            // The mask as it was at the fault; a wrapper around handlers (a sanitizer's) may have changed it.
            pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
            siglongjmp(access->environment, 1);
        }
        if (signal == SIGBUS && FaultRange::mend(info->si_addr)) return;
    }
    pass_on(signal, info, context);
}

/// Runs `operation` under guard. The mask is not saved: the handlers run with SA_NODEFER and an empty mask,
/// so there is nothing to restore, and no system call is made.
template <typename Operation>
[[gnu::noinline]] bool guarded(Access& access, Operation operation) {
    access.outer = current_access;
    if (sigsetjmp(access.environment, 0) != 0) {
        current_access = access.outer;
        return false;
    }
    current_access = &access;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    operation();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    current_access = access.outer;
    return true;
}

// Plain instructions even under the thread sanitizer, whose own atomics hold a lock that the jump out of a
// fault would leave taken.
[[gnu::noinline, gnu::no_sanitize_thread]] void compare_swap(std::uint64_t* at, std::uint64_t* before,
                                                             std::uint64_t swap) {
    __atomic_compare_exchange_n(at, before, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
[[gnu::noinline, gnu::no_sanitize_thread]] void fetch_add(std::uint64_t* at, std::uint64_t* before,
                                                          std::uint64_t add) {
    *before = __atomic_fetch_add(at, add, __ATOMIC_SEQ_CST);
}
[[gnu::noinline, gnu::no_sanitize_thread]] void store(std::uint64_t* at, std::uint64_t value) {
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

}  // namespace

void install_fault_guard() {
    static const bool installed = [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &previous_bus);
        sigaction(SIGSEGV, &action, &previous_segv);
        return true;
    }();
    (void)installed;
}

bool guarded_copy(void* to, const void* from, std::size_t n) {
    if (n == 0) return true;
    Access access;
    access.first = static_cast<const char*>(to);
    access.second = static_cast<const char*>(from);
    access.length = n;
    return guarded(access, [=] { std::memcpy(to, from, n); });
}

std::optional<std::uint64_t> guarded_compare_swap(std::uint64_t* at, std::uint64_t compare,
                                                  std::uint64_t swap) {
    Access access;
    access.first = access.second = reinterpret_cast<const char*>(at);
    access.length = sizeof(*at);
    std::uint64_t before = compare;
    std::uint64_t* const result = &before;
    if (!guarded(access, [=] { compare_swap(at, result, swap); })) {
        return std::nullopt;
    }
    return before;
}

std::optional<std::uint64_t> guarded_fetch_add(std::uint64_t* at, std::uint64_t add) {
    Access access;
    access.first = access.second = reinterpret_cast<const char*>(at);
    access.length = sizeof(*at);
    std::uint64_t before = 0;
    std::uint64_t* const result = &before;
    if (!guarded(access, [=] { fetch_add(at, result, add); })) {
        return std::nullopt;
    }
    return before;
}

bool guarded_store(std::uint64_t* at, std::uint64_t value) {
    Access access;
    access.first = access.second = reinterpret_cast<const char*>(at);
    access.length = sizeof(*at);
    return guarded(access, [=] { store(at, value); });
}

}  // namespace uib::memory
