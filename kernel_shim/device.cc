#include "kernel_shim/device.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernel_shim/fd_table.h"
#include "kernel_shim/real.h"
#include "kernel_shim/route.h"

namespace uib::shim {
namespace {

// The kernel's numbers, for a device whose tree has just gone.
constexpr unsigned kUverbsMajor = 231;
constexpr unsigned kUverbsFirstMinor = 192;
constexpr char kNamePrefix[] = "uib-client-uverbs";

/// Writes one line to stderr, the first time in this process.
void tell_once(const char* text) {
    static constinit std::atomic<bool> told{false};
    if (!told.exchange(true)) [[maybe_unused]]
        const ssize_t ignored = real.write(STDERR_FILENO, text, std::strlen(text));
}

/// Binds the socket to an abstract name nobody has: "\0uib-client-uverbsN-PID-COUNTER-RANDOM".
int bind_to_device_name(int fd, unsigned device) {
    static constinit std::atomic<unsigned> counter{0};
    for (int tries = 0; tries < 8; ++tries) {
        std::uint64_t random = 0;
        // Without it the name is still unique among processes that see each other's numbers.
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = 0;
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s%u-%d-%u-%016llx",
                                         kNamePrefix, device, static_cast<int>(getpid()),
                                         counter.fetch_add(1), static_cast<unsigned long long>(random));
        const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
        if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) == 0) return 0;
        if (errno != EADDRINUSE) return -1;
    }
    return -1;
}

int connect_to_engine(int fd) {
    const char* path = engine_paths().socket;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof name.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    std::memcpy(name.sun_path, path, std::strlen(path) + 1);
    int result;
    do result = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name);
    while (result != 0 && errno == EINTR);
    return result;
}

void tell_why_not(int error) {
    if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR) {
        tell_that_no_engine_answers();
        return;
    }
    char text[PATH_MAX + 128];
    std::snprintf(text, sizeof text, "uib: cannot connect to the engine at %s: %s\n", engine_paths().socket,
                  strerrordesc_np(error));
    tell_once(text);
}

}  // namespace

void tell_that_no_engine_answers() {
    char text[PATH_MAX + 128];
    std::snprintf(text, sizeof text,
                  "uib: no engine answers at %s (start one with `uibd`, or use `uib run -- COMMAND`)\n",
                  engine_paths().socket);
    tell_once(text);
}

int open_device(unsigned device, int open_flags) {
    const int saved = errno;
    const int type = SOCK_SEQPACKET | ((open_flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0);
    const int fd = real.socket(AF_UNIX, type, 0);
    if (fd < 0) return -1;
    if (bind_to_device_name(fd, device) != 0 || connect_to_engine(fd) != 0) {
        const int error = errno;
        real.close(fd);
        tell_why_not(error);
        errno = error == EACCES || error == EPERM ? error : ENODEV;
        return -1;
    }
    if ((open_flags & O_NONBLOCK) != 0) real.fcntl(fd, F_SETFL, O_NONBLOCK);
    enter_fd(fd, device);
    errno = saved;
    return fd;
}

int recognise(int fd) {
    const KeepErrno keep;
    sockaddr_un name{};
    socklen_t size = sizeof name - 1;
    unsigned device = 0;
    const bool ours = getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
                      name.sun_family == AF_UNIX && name.sun_path[0] == '\0' &&
                      std::strncmp(name.sun_path + 1, kNamePrefix, sizeof kNamePrefix - 1) == 0 &&
                      std::sscanf(name.sun_path + sizeof kNamePrefix, "%u-", &device) == 1 && device < 0xffff;
    const FdWord known = find_fd(fd);
    if (!ours) {
        if (known != 0) forget_fd(fd);
        return -1;
    }
    if (known == 0 || device_of(known) != device) enter_fd(fd, device);
    return static_cast<int>(device);
}

dev_t device_id(unsigned device) {
    const KeepErrno keep;
    char path[PATH_MAX + 64];
    std::snprintf(path, sizeof path, "%s/sys/class/infiniband_verbs/uverbs%u/dev", engine_paths().tree,
                  device);
    unsigned major_number = kUverbsMajor, minor_number = kUverbsFirstMinor + device;
    const int fd = real.open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char text[32] = "";
        const ssize_t count = real.read(fd, text, sizeof text - 1);
        real.close(fd);
        unsigned a = 0, b = 0;
        if (count > 0 && std::sscanf(text, "%u:%u", &a, &b) == 2) {
            major_number = a;
            minor_number = b;
        }
    }
    return makedev(major_number, minor_number);
}

}  // namespace uib::shim
