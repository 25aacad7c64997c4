#include "net/netlink/host_network.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/ipc/unique_fd.h"
#include "net/wire/gid.h"
#include "net/wire/mac_of_gid.h"

namespace uib::net {

namespace {

constexpr std::size_t kBuffer = 16384;
constexpr std::uint16_t kDiscardPort = 9;

std::size_t address_bytes(const Gid& gid) {
    return is_ipv4(gid) ? sizeof(in_addr) : sizeof(in6_addr);
}
const std::uint8_t* address_data(const Gid& gid) {
    return is_ipv4(gid) ? gid.data() + kIpv4InGid : gid.data();
}
unsigned char family_of(const Gid& gid) {
    return is_ipv4(gid) ? AF_INET : AF_INET6;
}

/// Link-local first, then IPv4, then the rest; else as the kernel gave them.
int rank(const HostAddress& address) {
    if (is_ipv4(address.gid)) return 1;
    return is_link_local(address.gid) ? 0 : 2;
}

}  // namespace

HostNetwork::Socket HostNetwork::open_socket(unsigned groups) {
    Socket socket(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC));
    if (!socket || mnl_socket_bind(socket.get(), groups, MNL_SOCKET_AUTOPID) < 0)
        throw std::runtime_error(std::string("netlink: ") + std::strerror(errno));
    return socket;
}

HostNetwork::HostNetwork(const std::string& interface)
    : interface_(interface), index_(static_cast<int>(::if_nametoindex(interface.c_str()))) {
    if (index_ == 0)
        throw std::runtime_error("there is no interface '" + interface + "' in this network namespace");
    // Subscribed before the first look, so that nothing is missed between them.
    news_ = open_socket(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_NEIGH |
                        RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE);
    queries_ = open_socket(0);
    read_addresses();
}

int HostNetwork::descriptor() const {
    return mnl_socket_get_fd(news_.get());
}

bool HostNetwork::exchange(nlmsghdr* request, mnl_cb_t callback, void* data) {
    request->nlmsg_seq = ++sequence_;
    if (mnl_socket_sendto(queries_.get(), request, request->nlmsg_len) < 0) return false;
    std::array<char, kBuffer> buffer;
    const unsigned port = mnl_socket_get_portid(queries_.get());
    for (;;) {
        const ssize_t bytes = mnl_socket_recvfrom(queries_.get(), buffer.data(), buffer.size());
        if (bytes < 0) return false;
        const int status =
            mnl_cb_run(buffer.data(), static_cast<std::size_t>(bytes), sequence_, port, callback, data);
        if (status < 0) return false;
        // Answers of several parts end with NLMSG_DONE, single ones with themselves.
        const auto* head = reinterpret_cast<const nlmsghdr*>(buffer.data());
        if (status == MNL_CB_STOP || (head->nlmsg_flags & NLM_F_MULTI) == 0) return true;
    }
}

void HostNetwork::read_addresses() {
    struct Found {
        int index;
        std::vector<HostAddress> list;
    } found{index_, {}};
    std::array<char, kBuffer> buffer;
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = RTM_GETADDR;
    request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    mnl_nlmsg_put_extra_header(request, sizeof(ifaddrmsg));
    exchange(
        request,
        [](const nlmsghdr* message, void* data) {
            auto& out = *static_cast<Found*>(data);
            if (const auto address = read_address(message, out.index)) out.list.push_back(*address);
            return static_cast<int>(MNL_CB_OK);
        },
        &found);
    std::stable_sort(found.list.begin(), found.list.end(),
                     [](const HostAddress& a, const HostAddress& b) { return rank(a) < rank(b); });
    addresses_ = std::move(found.list);
}

bool HostNetwork::follow_interface() {
    const int before = std::exchange(index_, static_cast<int>(::if_nametoindex(interface_.c_str())));
    return index_ != before;
}

bool HostNetwork::poll() {
    std::array<char, kBuffer> buffer;
    bool changed = false;
    for (;;) {
        const ssize_t bytes = ::recv(descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (bytes < 0 && errno == ENOBUFS) {
            follow_interface();
            changed = true;
            continue;
        }
        if (bytes <= 0) break;
        int left = static_cast<int>(bytes);
        for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data());
             mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
            // Whatever has changed: what was learnt about ways is learnt again when it is wanted.
            known_.clear();
            if (message->nlmsg_type == RTM_NEWADDR || message->nlmsg_type == RTM_DELADDR) changed = true;
            if (message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_DELLINK)
                changed = follow_interface() || changed;
        }
    }
    if (!changed) return false;
    known_.clear();
    const std::vector<HostAddress> before = addresses_;
    read_addresses();
    return addresses_ != before;
}

HostNetwork::Route HostNetwork::find_route(const Gid& to) {
    struct Found {
        int index;
        HostRoute route;
    } found{index_, {}};
    std::array<char, kBuffer> buffer;
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = RTM_GETROUTE;
    request->nlmsg_flags = NLM_F_REQUEST;
    auto* head = static_cast<rtmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(rtmsg)));
    head->rtm_family = family_of(to);
    head->rtm_dst_len = static_cast<unsigned char>(address_bytes(to) * 8);
    mnl_attr_put(request, RTA_DST, address_bytes(to), address_data(to));
    // Naming the interface makes the kernel take everything for a neighbour, which only a link-local address
    // is.
    if (is_link_local(to)) mnl_attr_put_u32(request, RTA_OIF, static_cast<std::uint32_t>(index_));
    exchange(
        request,
        [](const nlmsghdr* message, void* data) {
            auto& out = *static_cast<Found*>(data);
            out.route = read_route(message, out.index);
            return static_cast<int>(MNL_CB_OK);
        },
        &found);
    return {found.route.through_here, found.route.gateway.value_or(to)};
}

bool HostNetwork::find_neighbour(const Gid& address, MacAddress& mac) {
    std::optional<HostNeighbour> found;
    std::array<char, kBuffer> buffer;
    nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
    request->nlmsg_type = RTM_GETNEIGH;
    request->nlmsg_flags = NLM_F_REQUEST;
    auto* head = static_cast<ndmsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ndmsg)));
    head->ndm_family = family_of(address);
    head->ndm_ifindex = index_;
    mnl_attr_put(request, NDA_DST, address_bytes(address), address_data(address));
    exchange(
        request,
        [](const nlmsghdr* message, void* data) {
            *static_cast<std::optional<HostNeighbour>*>(data) = read_neighbour(message);
            return static_cast<int>(MNL_CB_OK);
        },
        &found);
    if (!found) return false;
    mac = found->mac;
    // Used, and confirmed meanwhile: the neighbour may have got another address.
    if (found->stale) solicit(address, index_);
    return true;
}

// An empty datagram makes the kernel look for the neighbour as for any other traffic.
void HostNetwork::solicit(const Gid& address, int index) {
    const ipc::UniqueFd socket(::socket(family_of(address), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return;
    if (is_ipv4(address)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(kDiscardPort);
        std::memcpy(&to.sin_addr, address_data(address), sizeof to.sin_addr);
        ::sendto(socket.get(), nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    } else {
        sockaddr_in6 to{};
        to.sin6_family = AF_INET6;
        to.sin6_port = htons(kDiscardPort);
        to.sin6_scope_id = static_cast<std::uint32_t>(index);
        std::memcpy(&to.sin6_addr, address_data(address), sizeof to.sin6_addr);
        ::sendto(socket.get(), nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
}

HostNetwork::Resolution HostNetwork::resolve(const Gid& to, MacAddress& mac) {
    if (const auto group = multicast_mac(to)) {
        mac = *group;
        return Resolution::kReady;
    }
    if (const auto known = known_.find(to); known != known_.end()) {
        mac = known->second;
        return Resolution::kReady;
    }
    const Route route = find_route(to);
    if (!route.through_here) return Resolution::kUnreachable;
    if (!find_neighbour(route.next_hop, mac)) {
        solicit(route.next_hop, index_);
        return Resolution::kPending;
    }
    known_.emplace(to, mac);
    return Resolution::kReady;
}

}  // namespace uib::net
