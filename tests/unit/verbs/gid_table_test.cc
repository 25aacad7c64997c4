// The GID table of a RoCE device follows its interface's addresses; entries keep their numbers.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/verbs/device.h"
#include "net/wire/gid.h"

namespace uib::verbs {
namespace {

/// A way out that leads nowhere, with the addresses that the test gives it.
struct Interface final : net::Uplink {
    std::vector<net::Gid> addresses;

    bool receive(net::Time /*now*/, net::PacketSink& /*sink*/) override { return false; }
    [[nodiscard]] std::uint32_t room() const override { return 0; }
    void send(const net::Packet& /*packet*/) override {}
    void end_turn() override {}
    [[nodiscard]] net::Time next_deadline() const override { return net::kNoDeadline; }
    [[nodiscard]] std::vector<int> wake_descriptors() const override { return {}; }
    [[nodiscard]] bool sleepable() const override { return true; }
    void watch(bool /*asleep*/) override {}
    [[nodiscard]] bool active() const override { return true; }
    [[nodiscard]] std::uint32_t mtu() const override { return 1024; }
    [[nodiscard]] net::MacAddress mac() const override { return {2, 0, 0, 0, 0, 1}; }
    [[nodiscard]] std::vector<net::Gid> gids() const override { return addresses; }
    std::uint8_t take_changes() override { return 0; }
    std::vector<Counter> counters() override { return {}; }
    void listen(net::FrameListener* /*listener*/) override {}
};

net::Gid ipv6(std::uint8_t first, std::uint8_t second, std::uint8_t last) {
    net::Gid gid{};
    gid[0] = first;
    gid[1] = second;
    gid[15] = last;
    return gid;
}

class GidTable : public ::testing::Test {
  protected:
    GidTable() {
        auto interface = std::make_unique<Interface>();
        interface_ = interface.get();
        device_.attach(std::move(interface));
    }

    void become(std::vector<net::Gid> addresses) {
        interface_->addresses = std::move(addresses);
        device_.follow_gids();
    }

    const net::Gid link_local_ = ipv6(0xFE, 0x80, 1);
    const net::Gid other_ = ipv6(0xFD, 0x44, 1);
    const net::Gid ipv4_ = net::gid_of_ipv4(0x0A2C0001);
    net::InternalSwitch fabric_;
    Device device_{DeviceConfig("uib0", LinkLayer::kEthernet), 0, 1, fabric_};
    Interface* interface_ = nullptr;
};

TEST_F(GidTable, EntryZeroIsTheLinkLocalAddresssWheneverThatComes) {
    become({ipv4_, other_});
    EXPECT_EQ(device_.gids()[0], net::Gid{});
    EXPECT_EQ(device_.gids()[1], ipv4_);
    EXPECT_EQ(device_.gids()[2], other_);
    become({link_local_, ipv4_, other_});
    EXPECT_EQ(device_.gids()[0], link_local_);
    EXPECT_EQ(device_.gids()[1], ipv4_);
    EXPECT_EQ(device_.gids()[2], other_);
}

TEST_F(GidTable, EntriesStayWhereTheyAreWhenOthersGo) {
    become({link_local_, ipv4_, other_});
    become({link_local_, other_});
    EXPECT_EQ(device_.gids()[1], net::Gid{});
    EXPECT_EQ(device_.gids()[2], other_);
    become({ipv4_, other_});
    EXPECT_EQ(device_.gids()[0], net::Gid{});
    EXPECT_EQ(device_.gids()[1], ipv4_);
}

TEST_F(GidTable, AddressesBeyondTheTableAreLeftOut) {
    std::vector<net::Gid> many;
    for (std::uint8_t i = 1; i <= Limits::kGids + 2; ++i) many.push_back(ipv6(0xFD, 0, i));
    become(many);
    EXPECT_EQ(device_.gids()[0], net::Gid{});
    for (std::size_t i = 1; i < Limits::kGids; ++i) EXPECT_EQ(device_.gids()[i], many[i - 1]);
}

}  // namespace
}  // namespace uib::verbs
