#include "net/port/dpdk/stale_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "engine/ipc/unique_fd.h"

namespace uib::net::dpdk {

void remove_stale_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::error_code error;
    if (path.size() >= sizeof address.sun_path || !std::filesystem::is_socket(path, error)) return;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {  // memif's kind, vhost's kind
        const ipc::UniqueFd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const auto* to = reinterpret_cast<const sockaddr*>(&address);
        if (::connect(probe.get(), to, sizeof address) == 0 || errno == EAGAIN) return;
        if (errno == ECONNREFUSED) {
            std::filesystem::remove(path, error);
            return;
        }
    }
}

}  // namespace uib::net::dpdk
