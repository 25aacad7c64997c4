// How many CPUs this process may use: the smaller of its affinity mask and its cgroup's quota. Provider and
// engine choose their way of waiting by it: three parties that spin on two CPUs take milliseconds a round
// trip (plugging-in.md, section 9).
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace uib::ipc {

/// CPUs of the cgroup v2 quota of `cpu_max` ("max 100000" or "150000 100000"), rounded up; 0 if there is no
/// limit.
inline unsigned cpus_of_quota(const char* cpu_max) {
    long long quota = 0, period = 0;
    if (std::sscanf(cpu_max, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
    return static_cast<unsigned>((quota + period - 1) / period);
}

/// At least 1.
inline unsigned usable_cpus() {
    unsigned cpus = 1;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = std::max(1, CPU_COUNT(&set));
    // The process's own cgroup directory; in a container the namespace's root is /sys/fs/cgroup itself.
    char directory[512] = "";
    if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
        char line[512];
        while (std::fgets(line, sizeof line, file) != nullptr) {
            line[std::strcspn(line, "\n")] = '\0';
            if (std::strncmp(line, "0::", 3) == 0) std::snprintf(directory, sizeof directory, "%s", line + 3);
        }
        std::fclose(file);
    }
    while (true) {
        char path[600];
        std::snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", directory);
        if (std::FILE* file = std::fopen(path, "re")) {
            char text[64] = "";
            const bool read = std::fgets(text, sizeof text, file) != nullptr;
            std::fclose(file);
            if (const unsigned quota = read ? cpus_of_quota(text) : 0; quota != 0)
                cpus = std::min(cpus, quota);
        }
        char* slash = std::strrchr(directory, '/');
        if (slash == nullptr) break;
        *slash = '\0';
    }
    return std::max(1U, cpus);
}

/// Empty polls after which a waiting loop should give its CPU away; 0 means never (there is a CPU for
/// everybody).
inline unsigned polls_before_yield(unsigned cpus) {
    return cpus <= 3 ? 1 : 0;
}

}  // namespace uib::ipc
