#include "net/port/host_port.h"

#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>

namespace uib::net {

void fail(const FramePortOptions& options, const std::string& why) {
    throw std::runtime_error("port " + options.name + " (driver " + options.driver + ", " +
                             options.interface + "): " + why);
}

HostInterface enabled_interface(const FramePortOptions& options) {
    HostInterface host;
    try {
        host = HostInterface(options.interface);
    } catch (const std::runtime_error& error) {
        fail(options, error.what());
    }
    if (!host.enabled()) fail(options, "the interface is down; ip link set " + options.interface + " up");
    return host;
}

std::uint32_t first_mtu(const FramePortOptions& options, const HostInterface& host) {
    const std::uint32_t offered = host.mtu();
    if (options.mtu > offered)
        fail(options, "mtu " + std::to_string(options.mtu) + " is more than the interface has (" +
                          std::to_string(offered) + "); raise it with: ip link set " + options.interface +
                          " mtu " + std::to_string(options.mtu));
    return options.mtu == 0 ? offered : options.mtu;
}

ipc::UniqueFd packet_socket(const FramePortOptions& options) {
    ipc::UniqueFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) fail(options, "needs CAP_NET_RAW (or a user namespace with a network namespace of its own)");
    return socket;
}

std::optional<std::uint32_t> mtu_now(const FramePortOptions& options, const HostInterface& host) {
    if (host.current_index() == 0 || !host.enabled()) return std::nullopt;
    const std::uint32_t offered = host.mtu();
    return options.mtu == 0 ? offered : std::min(offered, options.mtu);
}

}  // namespace uib::net
