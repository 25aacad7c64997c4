// What the host's stack still gets of the UDP port when the program is at the interface.
#include "net/encap/ingress_drop.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "net/encap/roce_frame.h"
#include "net/wire/gid.h"
#include "tests/unit/port/private_network.h"

namespace uib::net {
namespace {

using uib::testing::shell;
constexpr std::uint16_t kOtherPort = 4792;
constexpr std::uint32_t kOwn = 0x0A090001;
constexpr std::uint32_t kPeer = 0x0A090002;

class IngressDropTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = uib::testing::enter_private_network(1500); !why.empty())
            GTEST_SKIP() << why;
        ASSERT_TRUE(shell(
            "ip link set lo up && ip link set va address 02:00:00:00:00:01 && ip addr add 10.9.0.1/24 dev va"
            " && ip addr add 10.9.0.9/24 dev va && ip addr add fd09::1/64 dev va nodad"));
        index_ = static_cast<int>(::if_nametoindex("va"));
        wire_ = ipc::UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
        ASSERT_TRUE(wire_);
        roce_ = listen(kRoceUdpPort);
        other_ = listen(kOtherPort);
    }

    static ipc::UniqueFd listen(std::uint16_t port) {
        ipc::UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(port);
        EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        return socket;
    }

    static void put(std::vector<std::uint8_t>& frame, std::initializer_list<std::uint8_t> bytes) {
        frame.insert(frame.end(), bytes);
    }
    static void put_udp(std::vector<std::uint8_t>& frame, std::uint16_t port) {
        put(frame, {0x12, 0x34, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port), 0, 12,
                    0, 0, 1, 2, 3, 4});
    }
    static std::vector<std::uint8_t> ethernet(std::uint16_t type) {
        return {2,
                0,
                0,
                0,
                0,
                1,
                2,
                0,
                0,
                0,
                0,
                2,
                static_cast<std::uint8_t>(type >> 8),
                static_cast<std::uint8_t>(type)};
    }
    static std::vector<std::uint8_t> ipv4(std::uint32_t to, std::uint16_t port) {
        std::vector<std::uint8_t> frame = ethernet(ETHERTYPE_IP);
        put(frame, {0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, IPPROTO_UDP, 0, 0});
        for (const std::uint32_t address : {kPeer, to})
            for (int shift = 24; shift >= 0; shift -= 8)
                frame.push_back(static_cast<std::uint8_t>(address >> shift));
        std::uint32_t sum = 0;
        for (std::size_t i = 14; i < 34; i += 2)
            sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
        sum = (sum & 0xFFFF) + (sum >> 16);
        frame[24] = static_cast<std::uint8_t>(~sum >> 8);
        frame[25] = static_cast<std::uint8_t>(~sum);
        put_udp(frame, port);
        return frame;
    }

    void send(const std::vector<std::uint8_t>& frame) {
        sockaddr_ll to{};
        to.sll_family = AF_PACKET;
        to.sll_ifindex = static_cast<int>(::if_nametoindex("vb"));
        ASSERT_EQ(
            ::sendto(wire_.get(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
            static_cast<ssize_t>(frame.size()));
    }
    static bool heard(const ipc::UniqueFd& socket, int milliseconds) {
        pollfd ready{socket.get(), POLLIN, 0};
        if (::poll(&ready, 1, milliseconds) != 1) return false;
        std::array<char, 64> bytes;
        return ::recv(socket.get(), bytes.data(), bytes.size(), 0) == 4;
    }
    /// Frames keep their order: once the second, which nobody drops, is there, the first has had its chance.
    bool reaches_the_stack(std::uint32_t to, std::uint16_t port = kRoceUdpPort) {
        send(ipv4(to, port));
        send(ipv4(kOwn, kOtherPort));
        EXPECT_TRUE(heard(other_, 5000));
        return heard(roce_, 0);
    }

    const std::vector<Gid> own_{gid_of_ipv4(kOwn), Gid{},
                                Gid{0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    int index_ = 0;
    ipc::UniqueFd wire_, roce_, other_;
};

TEST_F(IngressDropTest, WhatIsForThePortIsKeptFromTheStackAsLongAsTheObjectLives) {
    EXPECT_TRUE(reaches_the_stack(kOwn));
    {
        IngressDrop drop;
        EXPECT_NE(drop.error(), 0);
        if (!drop.cover(index_, own_))
            GTEST_SKIP() << "the kernel attaches no program at the ingress (needs Linux 6.6)";
        EXPECT_EQ(drop.error(), 0);
        EXPECT_FALSE(reaches_the_stack(kOwn));
        EXPECT_TRUE(reaches_the_stack(0x0A090009)) << "an address that is not the port's";
        EXPECT_TRUE(drop.cover(index_, {}));
        EXPECT_TRUE(reaches_the_stack(kOwn)) << "the address is gone";
        EXPECT_TRUE(drop.cover(index_, own_));
        EXPECT_FALSE(reaches_the_stack(kOwn)) << "and back";
    }
    EXPECT_TRUE(reaches_the_stack(kOwn));
}

TEST_F(IngressDropTest, Ipv6) {
    std::vector<std::uint8_t> frame = ethernet(ETHERTYPE_IPV6);
    put(frame, {0x60, 0, 0, 0, 0, 12, IPPROTO_UDP, 64});
    put(frame, {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
    frame.insert(frame.end(), own_[2].begin(), own_[2].end());
    put_udp(frame, kRoceUdpPort);
    // The checksum of pseudo header and data, which IPv6 needs.
    std::uint32_t sum = IPPROTO_UDP + 12;
    for (std::size_t i = 22; i < frame.size(); i += 2)
        sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
    while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
    frame[60] = static_cast<std::uint8_t>(~sum >> 8);
    frame[61] = static_cast<std::uint8_t>(~sum);
    send(frame);
    EXPECT_TRUE(heard(roce_, 5000));
    IngressDrop drop;
    if (!drop.cover(index_, own_))
        GTEST_SKIP() << "the kernel attaches no program at the ingress (needs Linux 6.6)";
    send(frame);
    EXPECT_FALSE(reaches_the_stack(kOwn)) << "neither this one nor that";
}

TEST_F(IngressDropTest, ManyAddressesAreNoHarm) {
    std::vector<Gid> many = own_;
    for (unsigned i = 0; i < 8000; ++i) {
        Gid gid = own_[2];
        gid[4] = static_cast<std::uint8_t>(1 + (i >> 8));
        gid[5] = static_cast<std::uint8_t>(i);
        many.push_back(gid);
    }
    IngressDrop drop;
    if (!drop.cover(index_, own_))
        GTEST_SKIP() << "the kernel attaches no program at the ingress (needs Linux 6.6)";
    ASSERT_TRUE(drop.cover(index_, many));
    EXPECT_FALSE(reaches_the_stack(kOwn));
    EXPECT_TRUE(reaches_the_stack(0x0A090009));
}

TEST(IngressDrop, WithoutAnInterfaceNothingIsAttached) {
    IngressDrop drop;
    EXPECT_FALSE(drop.cover(0, {}));
    EXPECT_EQ(drop.error(), ENODEV);
}

}  // namespace
}  // namespace uib::net
