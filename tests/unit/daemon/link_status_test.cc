// What the status report says of InfiniBand links.
#include "engine/daemon/link_status.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "net/port/memory_port.h"
#include "net/wire/bytes.h"

namespace uib::daemon {
namespace {

constexpr net::MacAddress kOwn = {2, 0, 0, 0, 0, 1};
constexpr net::MacAddress kPeer = {2, 0, 0, 0, 0, 2};
constexpr std::uint64_t kIdentity = 0x55;

net::MemoryPort::Frame frame_of(std::uint8_t kind) {
    net::MemoryPort::Frame frame(60);
    std::memcpy(frame.data(), kOwn.data(), kOwn.size());
    std::memcpy(frame.data() + 6, kPeer.data(), kPeer.size());
    net::store_be<2>(&frame[12], std::uint16_t{0x88B5});
    frame[14] = std::byte{kind};
    frame[15] = std::byte{1};
    return frame;
}

TEST(LinkStatus, EmptyWithoutLinks) {
    const verbs::Adapter adapter({"uib0"});
    EXPECT_EQ(links_json(adapter).dump(), "[]");
}

TEST(LinkStatus, StatesAndCountersOfEachLayerAreShown) {
    auto owned = std::make_unique<net::MemoryPort>(kOwn, 4500);
    net::MemoryPort& port = *owned;
    net::IbTrunkOptions options;
    options.identity = kIdentity;
    options.link.role = net::link::PortRole::kSwitch;
    std::vector<std::unique_ptr<net::IbTrunk>> trunks;
    trunks.push_back(std::make_unique<net::IbTrunk>(std::move(owned), options));
    verbs::Adapter adapter({"uib0"}, std::vector<verbs::SubnetConfig>(1), std::move(trunks));
    port.arriving.push_back(net::MemoryPort::Frame(20));
    adapter.turn();
    nlohmann::ordered_json shown = links_json(adapter);
    ASSERT_EQ(shown.size(), 1U);
    EXPECT_EQ(shown[0]["mac"], "02:00:00:00:00:01");
    EXPECT_EQ(shown[0]["mtu"], 4096);
    EXPECT_EQ(shown[0]["frames"]["rx_foreign"], 1);
    EXPECT_TRUE(shown[0]["links"].empty()) << "nobody has been found yet";

    // A peer that hears us; and then bytes that are no packet.
    net::MemoryPort::Frame hello = frame_of(2);
    net::store_be<8>(&hello[16], std::uint64_t{0x66});
    net::store_be<8>(&hello[24], kIdentity);
    hello[32] = std::byte{5};
    port.arriving.push_back(hello);
    adapter.turn();
    port.arriving.push_back(frame_of(0));
    port.arriving.push_back(frame_of(1));
    adapter.turn();
    shown = links_json(adapter);
    ASSERT_EQ(shown[0]["links"].size(), 1U);
    const auto& link = shown[0]["links"][0];
    EXPECT_EQ(link["peer"], "02:00:00:00:00:02");
    EXPECT_EQ(link["switch_port"], 2) << "behind the device's";
    EXPECT_EQ(link["state"], "Init");
    EXPECT_EQ(link["receive_discards"]["link_packet_lpcrc"], 1);
    EXPECT_EQ(link["counters"]["port_rcv_errors"], 1);
    EXPECT_EQ(link["receive_discards"]["state"], 1) << "data, before the link is armed";
    EXPECT_EQ(link["lanes"].size(), 1U);
    EXPECT_EQ(shown[0]["forwarding"]["way_back"], 0);
}

}  // namespace
}  // namespace uib::daemon
