#include "net/port/dpdk/stale_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "engine/ipc/unique_fd.h"

namespace uib::net::dpdk {

bool remove_stale_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::error_code error;
    if (path.size() >= sizeof address.sun_path || !std::filesystem::is_socket(path, error)) return false;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {  // memif's kind, vhost's kind
        const ipc::UniqueFd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const auto* to = reinterpret_cast<const sockaddr*>(&address);
        if (::connect(probe.get(), to, sizeof address) == 0 || errno == EAGAIN) return true;
        if (errno == ECONNREFUSED) {
            std::filesystem::remove(path, error);
            return false;
        }
    }
    return false;
}

std::string socket_trouble(const std::string& path, bool server) {
    constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
    if (path.size() > kLongest)
        return "the path of a socket has at most " + std::to_string(kLongest) + " bytes";
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    std::error_code error;
    if (!directory.empty() && !std::filesystem::is_directory(directory, error))
        return "there is no directory " + directory.string();
    if (std::filesystem::exists(path, error) && !std::filesystem::is_socket(path, error))
        return "there is something else than a socket";
    if (!server) {
        const bool closed = std::filesystem::exists(path, error) && ::access(path.c_str(), W_OK) != 0;
        return closed ? "this user may not use the socket" : std::string();
    }
    if (::access(directory.empty() ? "." : directory.c_str(), W_OK) != 0)
        return "this user may not make a socket in " + directory.string();
    return remove_stale_socket(path) ? "somebody serves this socket already" : std::string();
}

}  // namespace uib::net::dpdk
