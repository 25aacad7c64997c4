#include "net/encap/port_4791.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "engine/ipc/unique_fd.h"
#include "net/encap/roce_frame.h"

namespace uib::net {
namespace {

struct Holder {
    ipc::UniqueFd v4;
    ipc::UniqueFd v6;
};

void refuse_everything(int socket) {
    std::array<sock_filter, 1> program = {{BPF_STMT(BPF_RET | BPF_K, 0)}};
    const sock_fprog filter{program.size(), program.data()};
    ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

template <typename Address>
ipc::UniqueFd bind_port(int family, const Address& address) {
    ipc::UniqueFd socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return socket;  // a host without this family does not answer in it
    refuse_everything(socket.get());
    const int on = 1;
    if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == EADDRINUSE)
        throw std::runtime_error(
            "UDP port 4791 is taken in this network namespace (by rdma_rxe or another engine); RoCE needs "
            "it");
    return socket;
}

}  // namespace

std::shared_ptr<const void> hold_roce_port() {
    static std::weak_ptr<const void> held;
    if (auto holder = held.lock()) return holder;
    auto holder = std::make_shared<Holder>();
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(kRoceUdpPort);
    holder->v4 = bind_port(AF_INET, v4);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(kRoceUdpPort);
    holder->v6 = bind_port(AF_INET6, v6);
    held = holder;
    return holder;
}

}  // namespace uib::net
