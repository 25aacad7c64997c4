#include "kernel_shim/route.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "engine/ipc/socket_path.h"
#include "kernel_shim/real.h"

namespace uib::shim {
namespace {

constexpr char kDeviceDirectory[] = "/dev/infiniband";
constexpr char kClassPrefix[] = "/sys/class/infiniband";
constexpr char kDevicePrefix[] = "/dev/infiniband/uverbs";

template <unsigned N>
bool starts_with(const char* text, const char (&prefix)[N]) {
    return std::strncmp(text, prefix, N - 1) == 0;
}

/// Appends the absolute path without empty and "." components. False when it does not fit.
bool append_clean(char* to, std::size_t room, const char* path) {
    std::size_t used = 0;
    while (*path != '\0') {
        while (*path == '/') ++path;
        const std::size_t length = std::strcspn(path, "/");
        if (length == 1 && *path == '.') {
            ++path;
            continue;
        }
        if (used + length + 2 > room) return false;
        // An empty last component is a trailing slash, which asks for a directory: kept.
        to[used++] = '/';
        std::memcpy(to + used, path, length);
        used += length;
        path += length;
    }
    to[used] = '\0';
    return true;
}

/// N of "/dev/infiniband/uverbsN", or -1.
int device_number(const char* path) {
    if (!starts_with(path, kDevicePrefix)) return -1;
    const char* digits = path + sizeof kDevicePrefix - 1;
    const std::size_t count = std::strspn(digits, "0123456789");
    if (count == 0 || count > 4 || digits[count] != '\0') return -1;
    return std::atoi(digits);
}

void copy(char (&to)[PATH_MAX], const std::string& from) {
    if (from.size() < PATH_MAX) std::memcpy(to, from.c_str(), from.size() + 1);
}

}  // namespace

const EnginePaths& engine_paths() {
    static const EnginePaths paths = [] {
        EnginePaths made{};
        const std::string socket = ipc::socket_path();
        copy(made.socket, socket);
        copy(made.tree, ipc::tree_path(socket));
        return made;
    }();
    return paths;
}

bool tree_exists() {
    const KeepErrno keep;
    return real.access(engine_paths().tree, F_OK) == 0;
}

void find_route(const char* path, Route& route) {
    const KeepErrno keep;
    route.answer = Answer::kOriginal;
    const char* tree = engine_paths().tree;
    const std::size_t tree_length = std::strlen(tree);
    if (tree_length == 0) return;
    std::memcpy(route.path, tree, tree_length);
    route.tree_length = static_cast<unsigned>(tree_length);
    char* const clean = route.path + tree_length;
    if (!append_clean(clean, sizeof route.path - tree_length, path)) return;

    if (starts_with(clean, kClassPrefix)) {
        if (real.access(route.path, F_OK) == 0) route.answer = Answer::kTree;
        return;
    }
    if (!starts_with(clean, kDeviceDirectory)) return;
    const char* below = clean + sizeof kDeviceDirectory - 1;
    if (below[0] == '\0' || std::strcmp(below, "/") == 0) {
        if (real.access(route.path, F_OK) == 0) route.answer = Answer::kTree;
        return;
    }
    const int number = device_number(clean);
    struct stat status;
    if (number >= 0 && real.fstatat(AT_FDCWD, route.path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode)) {
        route.answer = Answer::kDevice;
        route.device = static_cast<unsigned>(number);
    }
}

}  // namespace uib::shim
