#include "net/netlink/host_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>

#include "tests/unit/port/private_network.h"

namespace uib::net {
namespace {

using uib::testing::shell;

Gid gid(const char* text) {
    Gid out{};
    if (in_addr four{}; ::inet_pton(AF_INET, text, &four) == 1) {
        out[10] = out[11] = 0xFF;
        std::memcpy(out.data() + 12, &four, sizeof four);
    } else {
        ::inet_pton(AF_INET6, text, out.data());
    }
    return out;
}

class HostNetworkTest : public ::testing::Test {
  protected:
    /// va here; vb in a namespace of its own, so that the kernel really has to ask for the neighbour.
    void SetUp() override {
        if (const std::string why = uib::testing::enter_private_network(1500); !why.empty())
            GTEST_SKIP() << why;
        // Addresses without duplicate detection: usable at once.
        ASSERT_TRUE(shell("ip addr add 10.9.0.1/24 dev va && ip -6 addr add fd09::1/64 dev va nodad"));
    }
    static bool wait_for(HostNetwork& network, const std::function<bool()>& condition) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!condition() && std::chrono::steady_clock::now() < end) {
            pollfd fd{network.descriptor(), POLLIN, 0};
            ::poll(&fd, 1, 100);
            network.poll();
        }
        return condition();
    }
    static bool has(const HostNetwork& network, const Gid& wanted) {
        for (const HostAddress& address : network.addresses())
            if (address.gid == wanted) return true;
        return false;
    }
};

TEST_F(HostNetworkTest, AddressesAreGids) {
    const HostNetwork network("va");
    EXPECT_TRUE(has(network, gid("10.9.0.1")));
    EXPECT_TRUE(has(network, gid("fd09::1")));
    EXPECT_FALSE(has(network, gid("127.0.0.1"))) << "of another interface";
    EXPECT_THROW(HostNetwork("vx"), std::runtime_error);
}

TEST_F(HostNetworkTest, OrderIsLinkLocalThenIpv4ThenTheRest) {
    ASSERT_TRUE(shell("ip -6 addr add fe80::99/64 dev va nodad"));
    const HostNetwork network("va");
    ASSERT_GE(network.addresses().size(), 3U);
    EXPECT_EQ(network.addresses().front().gid[0], 0xFE);
    EXPECT_EQ(network.addresses().back().gid, gid("fd09::1"));
}

TEST_F(HostNetworkTest, ChangesAreToldOf) {
    HostNetwork network("va");
    ASSERT_TRUE(shell("ip addr add 10.9.0.7/24 dev va"));
    EXPECT_TRUE(wait_for(network, [&] { return has(network, gid("10.9.0.7")); }));
    ASSERT_TRUE(shell("ip addr del 10.9.0.7/24 dev va"));
    EXPECT_TRUE(wait_for(network, [&] { return !has(network, gid("10.9.0.7")); }));
}

TEST_F(HostNetworkTest, NeighbourGatewayMulticastAndNoRoute) {
    HostNetwork network("va");
    MacAddress mac{};
    ASSERT_TRUE(
        shell("ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:22 dev va nud permanent"
              " && ip neigh add fd09::2 lladdr 02:00:00:00:00:66 dev va nud permanent"));
    EXPECT_EQ(network.resolve(gid("10.9.0.2"), mac), HostNetwork::Resolution::kReady);
    EXPECT_EQ(mac, (MacAddress{2, 0, 0, 0, 0, 0x22}));
    EXPECT_EQ(network.resolve(gid("fd09::2"), mac), HostNetwork::Resolution::kReady);
    EXPECT_EQ(mac, (MacAddress{2, 0, 0, 0, 0, 0x66}));
    EXPECT_EQ(network.resolve(gid("192.0.2.1"), mac), HostNetwork::Resolution::kUnreachable);
    ASSERT_TRUE(shell("ip route add 192.0.2.0/24 via 10.9.0.2 dev va"));
    network.poll();
    EXPECT_EQ(network.resolve(gid("192.0.2.1"), mac), HostNetwork::Resolution::kReady);
    EXPECT_EQ(mac, (MacAddress{2, 0, 0, 0, 0, 0x22}));
    EXPECT_EQ(network.resolve(gid("239.129.2.3"), mac), HostNetwork::Resolution::kReady);
    EXPECT_EQ(mac, (MacAddress{0x01, 0x00, 0x5E, 0x01, 2, 3}));
    EXPECT_EQ(network.resolve(gid("ff02::1:ff00:5"), mac), HostNetwork::Resolution::kReady);
    EXPECT_EQ(mac, (MacAddress{0x33, 0x33, 0xFF, 0, 0, 5}));
}

TEST_F(HostNetworkTest, AnUnknownNeighbourIsAskedForAndFound) {
    HostNetwork network("va");
    MacAddress mac{};
    // Nobody has it: pending, for ever.
    EXPECT_EQ(network.resolve(gid("10.9.0.77"), mac), HostNetwork::Resolution::kPending);
    // A changed neighbour is noticed.
    ASSERT_TRUE(shell("ip neigh replace 10.9.0.77 lladdr 02:00:00:00:00:77 dev va nud reachable"));
    EXPECT_TRUE(wait_for(
        network, [&] { return network.resolve(gid("10.9.0.77"), mac) == HostNetwork::Resolution::kReady; }));
    EXPECT_EQ(mac[5], 0x77);
    ASSERT_TRUE(shell("ip neigh replace 10.9.0.77 lladdr 02:00:00:00:00:78 dev va nud permanent"));
    EXPECT_TRUE(wait_for(network, [&] {
        network.resolve(gid("10.9.0.77"), mac);
        return mac[5] == 0x78;
    }));
}

}  // namespace
}  // namespace uib::net
