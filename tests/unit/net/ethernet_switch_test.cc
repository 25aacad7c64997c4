#include "net/fabric/ethernet_switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace uib::net {
namespace {

constexpr MacAddress kFirst{2, 0, 0, 0, 0, 1};
constexpr MacAddress kSecond{2, 0, 0, 0, 0, 2};

std::vector<EthernetSwitch::PortIndex> route_to(const EthernetSwitch& fabric, const MacAddress& address,
                                                std::size_t bytes = 60) {
    std::vector<std::byte> frame(bytes);
    std::transform(address.begin(), address.end(), frame.begin(),
                   [](std::uint8_t byte) { return std::byte{byte}; });
    const auto ports = fabric.route(frame);
    return {ports.begin(), ports.end()};
}

struct EthernetSwitchTest : ::testing::Test {
    EthernetSwitchTest() {
        fabric.add_port(3, kFirst);
        fabric.add_port(7, kSecond);
    }
    EthernetSwitch fabric;
};

using Ports = std::vector<EthernetSwitch::PortIndex>;

TEST_F(EthernetSwitchTest, a_ports_own_address_is_reached_alone) {
    EXPECT_EQ(route_to(fabric, kFirst), Ports{3});
    EXPECT_EQ(route_to(fabric, kSecond), Ports{7});
}

TEST_F(EthernetSwitchTest, groups_and_unknown_addresses_go_to_all_ports) {
    EXPECT_EQ(route_to(fabric, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}), (Ports{3, 7}));
    EXPECT_EQ(route_to(fabric, {1, 0, 0x5E, 0, 0, 1}), (Ports{3, 7}));
    EXPECT_EQ(route_to(fabric, {2, 0, 0, 0, 0, 9}), (Ports{3, 7}));
}

TEST_F(EthernetSwitchTest, what_has_no_header_goes_nowhere) {
    EXPECT_EQ(route_to(fabric, kFirst, kEthernetHeaderBytes), Ports{3});
    EXPECT_TRUE(route_to(fabric, kFirst, kEthernetHeaderBytes - 1).empty());
}

TEST_F(EthernetSwitchTest, addresses_are_unicast_and_different) {
    EXPECT_THROW(fabric.add_port(9, kFirst), std::invalid_argument);
    EXPECT_THROW(fabric.add_port(9, {3, 0, 0, 0, 0, 3}), std::invalid_argument);
}

}  // namespace
}  // namespace uib::net
