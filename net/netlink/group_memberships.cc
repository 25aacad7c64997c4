#include "net/netlink/group_memberships.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "net/wire/gid.h"

namespace uib::net {

bool GroupMemberships::join(const Gid& group) {
    ipc::UniqueFd socket = joined(group);
    const bool good = static_cast<bool>(socket);
    groups_[group] = std::move(socket);
    return good;
}

std::size_t GroupMemberships::join_again() {
    std::size_t refused = 0;
    for (auto& [group, socket] : groups_) {
        socket = joined(group);
        if (!socket) ++refused;
    }
    return refused;
}

ipc::UniqueFd GroupMemberships::joined(const Gid& group) const {
    const bool ipv4 = is_ipv4(group);
    const unsigned index = ::if_nametoindex(interface_.c_str());
    ipc::UniqueFd socket(::socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || index == 0) return {};
    int status = 0;
    if (ipv4) {
        ip_mreqn request{};
        std::memcpy(&request.imr_multiaddr, group.data() + kIpv4InGid, sizeof request.imr_multiaddr);
        request.imr_ifindex = static_cast<int>(index);
        status = ::setsockopt(socket.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
    } else {
        ipv6_mreq request{};
        std::memcpy(&request.ipv6mr_multiaddr, group.data(), sizeof request.ipv6mr_multiaddr);
        request.ipv6mr_interface = index;
        status = ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request);
    }
    return status == 0 ? std::move(socket) : ipc::UniqueFd();
}

}  // namespace uib::net
