// Where the engine's control socket is, for the provider, the shim, the command and the engine alike.
#pragma once

#include <cstdlib>
#include <string>

namespace uib::ipc {

/// $UIB_SOCKET, else $XDG_RUNTIME_DIR/uib/engine.sock, else /run/uib/engine.sock.
inline std::string socket_path() {
    if (const char* path = std::getenv("UIB_SOCKET"); path != nullptr && *path != '\0') return path;
    if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir != nullptr && *dir != '\0')
        return std::string(dir) + "/uib/engine.sock";
    return "/run/uib/engine.sock";
}

/// Directory with the engine's picture of /sys and /dev (kernel_shim reads it):
/// TREE/sys/class/infiniband/NAME/..., TREE/sys/class/infiniband_verbs/uverbsN/...,
/// TREE/dev/infiniband/uverbsN (an empty file whose device number is in the matching sysfs `dev` file).
inline std::string tree_path(const std::string& socket) {
    return socket + ".tree";
}

}  // namespace uib::ipc
