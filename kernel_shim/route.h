// Which paths the shim answers from the engine's tree.
//
// /sys/class/infiniband* and /dev/infiniband, where the tree has the path; everything else is the C library's
// with the path as the program gave it. Of what is in /dev/infiniband only the files uverbsN of the tree are
// ours: a link stands for a node of the kernel's, and that is opened under its own path.
//
// Nothing here allocates: hooks may run in signal handlers. Relative paths are not looked at; a descriptor of
// a directory in the tree leads to the tree by itself.
#pragma once

#include <climits>

namespace uib::shim {

struct EnginePaths {
    char socket[PATH_MAX];
    char tree[PATH_MAX];
};

/// Where the engine is, from the environment as it was when the program started.
const EnginePaths& engine_paths();

enum class Answer {
    kOriginal,  ///< the C library, with the program's own path
    kTree,      ///< the C library, with `path`
    kDevice,    ///< a device of the engine; `path` is the file that stands for it in the tree
};

struct Route {
    Answer answer = Answer::kOriginal;
    unsigned device = 0;  ///< kDevice: N of uverbsN
    unsigned tree_length =
        0;  ///< path + tree_length is the program's path, cleaned of empty and "." components
    char path[PATH_MAX + 1];
};

/// False for almost every path, at the cost of a few comparisons.
inline bool may_be_ours(const char* path) {
    if (path == nullptr || path[0] != '/') return false;
    do ++path;
    while (*path == '/' || (*path == '.' && (path[1] == '/')));
    return (path[0] == 's' && path[1] == 'y' && path[2] == 's' && path[3] == '/') ||
           (path[0] == 'd' && path[1] == 'e' && path[2] == 'v' && path[3] == '/');
}

/// Decides on a path that may_be_ours(). Leaves errno alone.
void find_route(const char* path, Route& route);

/// Whether the engine has left a tree at all.
bool tree_exists();

/// Calls `with_path` with the path to use, or `with_device` with the route of a device.
template <typename WithPath, typename WithDevice>
[[gnu::noinline]] auto route_slowly(const char* path, WithPath with_path, WithDevice with_device) {
    Route route;
    find_route(path, route);
    if (route.answer == Answer::kDevice) return with_device(static_cast<const Route&>(route));
    return with_path(route.answer == Answer::kTree ? route.path : path);
}

template <typename WithPath, typename WithDevice>
inline auto route_path(const char* path, WithPath with_path, WithDevice with_device) {
    // Only the slow way has a path buffer on its stack: signal stacks can be small.
    if (!may_be_ours(path)) [[likely]]
        return with_path(path);
    return route_slowly(path, with_path, with_device);
}

}  // namespace uib::shim
