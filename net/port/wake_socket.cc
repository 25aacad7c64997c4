#include "net/port/wake_socket.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>

namespace uib::net {

namespace {

constexpr std::uint16_t kRoceV1 = 0x8915;
constexpr std::uint16_t kRoceUdpPort = 4791;
constexpr std::uint32_t kTakeOne = 1;         // bytes kept of a frame that wakes
constexpr std::uint32_t kTakeAll = 0xFFFFFF;  // of one that a driver receives

constexpr sock_filter load_half(std::uint32_t offset) {
    return BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offset);
}
constexpr sock_filter load_byte(std::uint32_t offset) {
    return BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offset);
}
constexpr sock_filter equal(std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, if_true, if_false);
}
constexpr sock_filter take(std::uint32_t bytes) {
    return BPF_STMT(BPF_RET | BPF_K, bytes);
}

/// The kernel has taken the VLAN tag out of the frame, so offsets are those of untagged frames.
constexpr auto roce_filter(std::uint32_t bytes) {
    return std::array{
        load_half(12),
        equal(kRoceV1, 12, 0),
        equal(ETH_P_IPV6, 6, 0),
        equal(ETH_P_IP, 0, 9),
        load_byte(23),
        equal(IPPROTO_UDP, 0, 7),
        sock_filter BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),  // length of the IPv4 header
        sock_filter BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),   // destination port behind it
        sock_filter BPF_JUMP(BPF_JMP | BPF_JA, 3, 0, 0),
        load_byte(20),  // IPv6: next header; a match goes on to the port
        equal(IPPROTO_UDP, 0, 2),
        load_half(56),
        equal(kRoceUdpPort, 1, 0),
        take(0),
        take(bytes),
    };
}

void attach(int socket, std::span<const sock_filter> program) {
    // The kernel only reads the program.
    const sock_fprog filter{static_cast<unsigned short>(program.size()),
                            const_cast<sock_filter*>(program.data())};
    ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

void attach_matching(int socket, std::uint16_t ether_type, std::uint32_t bytes) {
    if (ether_type == 0) {
        attach(socket, roce_filter(bytes));
        return;
    }
    const std::array native = {load_half(12), equal(ether_type, 0, 1), take(bytes), take(0)};
    attach(socket, native);
}

void attach_nothing(int socket) {
    static constexpr std::array kNothing = {take(0)};
    attach(socket, kNothing);
}

}  // namespace

WakeSocket::WakeSocket(int interface_index, std::uint16_t ether_type)
    : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), ether_type_(ether_type) {
    if (!socket_) throw std::system_error(errno, std::generic_category(), "a packet socket");
    attach_nothing(socket_.get());
    bind(interface_index);
    const int ignore = 1;
    ::setsockopt(socket_.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &ignore, sizeof ignore);
}

void WakeSocket::bind(int interface_index) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = interface_index;
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::system_error(errno, std::generic_category(), "a packet socket on the interface");
}

void WakeSocket::watch(bool asleep) {
    if (!socket_ || asleep == asleep_) return;
    asleep_ = asleep;
    if (asleep) {
        attach_matching(socket_.get(), ether_type_, kTakeOne);
    } else {
        attach_nothing(socket_.get());
        drain();
    }
}

void WakeSocket::drain() const {
    std::array<std::byte, 1> byte;
    while (::recv(socket_.get(), byte.data(), byte.size(), MSG_DONTWAIT) >= 0) {
    }
}

std::vector<int> sockets_of(int domain) {
    std::vector<int> found;
    std::error_code none;  // without /proc nothing is found
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
        const int descriptor = std::atoi(entry.path().filename().c_str());
        int family = 0;
        socklen_t length = sizeof family;
        if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == domain)
            found.push_back(descriptor);
    }
    return found;
}

void take_only(int packet_socket, std::uint16_t ether_type) {
    attach_matching(packet_socket, ether_type, kTakeAll);
}

}  // namespace uib::net
