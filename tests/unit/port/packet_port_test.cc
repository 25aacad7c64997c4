// Driver af_packet, over a packet socket of our own and over DPDK's driver of that name.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/port/frame_port_fixture.h"

namespace uib::net {
namespace {

/// Driver af_packet: over our own socket, and DPDK's, which its arguments choose.
class PacketSocketPort : public FramePortTest, public ::testing::WithParamInterface<const char*> {
  protected:
    static FramePortOptions on(const std::string& interface, const std::string& driver = "af_packet") {
        FramePortOptions options = net::on(interface, driver);
        if (driver == "af_packet") options.extra = GetParam();
        return options;
    }
    static bool over_dpdk() { return *GetParam() != '\0'; }
};

using OwnPacketSocket = FramePortTest;

INSTANTIATE_TEST_SUITE_P(Ways, PacketSocketPort, ::testing::Values("", "qdisc_bypass=0"),
                         [](const auto& way) { return *way.param == '\0' ? "own" : "dpdk"; });

TEST_P(PacketSocketPort, CarriesFramesOfEverySizeBothWaysUnharmed) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port(on("vb"));
    EXPECT_EQ(a->mtu(), kMtu);
    EXPECT_NE(a->mac(), b->mac());
    std::vector<std::size_t> payloads;
    for (std::size_t i = 0; i < 200; ++i) payloads.push_back(46 + i * 44);
    payloads.push_back(kMtu);
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        send(*a, b->mac(), payloads[i], static_cast<unsigned>(i));
        send(*b, a->mac(), payloads[i], static_cast<unsigned>(i));
        a->flush();
        b->flush();
    }
    EXPECT_EQ(collect(*b, payloads), payloads.size());
    EXPECT_EQ(collect(*a, payloads), payloads.size());
    EXPECT_EQ(a->counters().tx_frames, payloads.size());
    EXPECT_GE(b->counters().rx_frames, payloads.size());
    EXPECT_EQ(a->counters().rx_truncated, 0U);
}

/// Once all of them have been received, those before them have been, too.
void carries_one_more(FramePort& from, FramePort& to) {
    FramePortTest::send(from, to.mac(), 50, 0);
    from.flush();
    EXPECT_EQ(FramePortTest::collect(to, {50}), 1U);
}

// DPDK's ring hears of other sockets' frames and drops them by their source.
TEST_F(OwnPacketSocket, APacketSocketDoesNotHearWhatItsOwnHostSends) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port(on("vb"));
    const auto beside = open_frame_port(on("va"));
    send(*beside, b->mac(), 50, 0);
    beside->flush();
    carries_one_more(*b, *a);
    EXPECT_EQ(a->counters().rx_own, 0U);
    EXPECT_EQ(a->counters().rx_frames, 1U);
}

// The kernel takes the tag off and gives it beside the frame.
TEST_P(PacketSocketPort, ATagArrivesInItsFrame) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port([] {
        FramePortOptions options = on("vb");
        options.ether_type = 0;
        return options;
    }());
    // A UDP datagram to port 4791 behind a tag.
    std::vector<std::byte> frame(100);
    const MacAddress to = b->mac(), from = a->mac();
    std::memcpy(frame.data(), to.data(), to.size());
    std::memcpy(frame.data() + 6, from.data(), from.size());
    constexpr std::array<std::uint8_t, 7> kTagAndType = {0x81, 0x00, 0xA0, 0x05, 0x08, 0x00, 0x45};
    std::memcpy(frame.data() + 12, kTagAndType.data(), kTagAndType.size());
    frame[18 + 9] = std::byte{17};
    frame[18 + 22] = std::byte{4791 >> 8};
    frame[18 + 23] = std::byte{4791 & 0xFF};
    const std::span<std::byte> room = a->allocate(frame.size());
    ASSERT_EQ(room.size(), frame.size());
    std::copy(frame.begin(), frame.end(), room.begin());
    a->commit();
    a->flush();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::vector<std::byte> got;
    while (got.empty() && std::chrono::steady_clock::now() < end) {
        for (const auto& view : b->receive()) got.assign(view.begin(), view.end());
        b->release();
    }
    EXPECT_EQ(got, frame);
}

// More frames than the ring has places, none of them taken. (DPDK 22.11's driver counts none.)
TEST_F(OwnPacketSocket, WhatAPacketSocketHasNoRoomForIsCounted) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port(on("vb"));
    for (unsigned round = 0; round < 40; ++round) {
        for (unsigned i = 0; i < 50; ++i) send(*a, b->mac(), 64, i);
        a->flush();
    }
    std::uint64_t received = 0;
    for (std::size_t some = 1; some != 0; b->release()) received += some = b->receive().size();
    EXPECT_GT(b->counters().rx_missed, 0U);
    EXPECT_EQ(received + b->counters().rx_missed, 2000U);
    const std::uint64_t missed = b->counters().rx_missed;
    EXPECT_EQ(b->counters().rx_missed, missed) << "the kernel forgets what it has told";
}

TEST_P(PacketSocketPort, TooLongAFrameIsRefusedAndCounted) {
    const auto a = open_frame_port(on("va"));
    EXPECT_TRUE(a->allocate(kHeader + kMtu + 5).empty());
    EXPECT_EQ(a->counters().tx_too_long, 1U);
    EXPECT_EQ(a->counters().tx_frames, 0U);
}

TEST_P(PacketSocketPort, RefusesMoreFramesThanItsQueueHoldsUntilFlushed) {
    const auto a = open_frame_port(on("va"));
    const std::uint32_t room = a->room();
    ASSERT_GT(room, 0U);
    for (std::uint32_t i = 0; i < room; ++i) send(*a, a->mac(), 60, 0);
    EXPECT_EQ(a->room(), 0U);
    EXPECT_TRUE(a->allocate(60).empty());
    EXPECT_EQ(a->counters().tx_no_buffer, 1U);
    a->flush();
    EXPECT_EQ(a->room(), room);
}

TEST_P(PacketSocketPort, WakesASleeperForItsOwnFramesOnly) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port(on("vb"));
    pollfd watched{b->wake_descriptor(), POLLIN, 0};
    ASSERT_GE(watched.fd, 0);
    send(*a, b->mac(), 100, 0);
    a->flush();
    EXPECT_EQ(collect(*b, {100}), 1U);
    EXPECT_EQ(::poll(&watched, 1, 0), 0) << "awake: nothing is copied to the watching socket";
    b->watch(true);
    ASSERT_TRUE(uib::testing::shell("ip addr add 10.9.9.1/24 dev va && ip -6 neigh show >/dev/null"));
    EXPECT_EQ(::poll(&watched, 1, 0), 0) << "another protocol's frames wake nobody";
    send(*a, b->mac(), 100, 0);
    a->flush();
    EXPECT_EQ(::poll(&watched, 1, 5000), 1);
    b->watch(false);
    EXPECT_EQ(collect(*b, {100}), 1U);
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
}

/// The kernel's receivers of all frames of an interface, in the order in which they get one.
std::vector<std::string> receivers_of(const std::string& interface) {
    std::vector<std::string> found;
    std::ifstream list("/proc/thread-self/net/ptype");
    std::string line, type, device, function;
    while (std::getline(list, line)) {
        std::istringstream fields(line);
        if (fields >> type >> device >> function && type == "ALL" && device == interface)
            found.push_back(function.substr(0, function.find('+')));
    }
    return found;
}

TEST_P(PacketSocketPort, AFrameIsInTheRingBeforeItWakesASleeper) {
    const auto ring_comes_first = [] {
        const std::vector<std::string> order = receivers_of("va");
        if (!over_dpdk()) {
            EXPECT_EQ(order, std::vector<std::string>{"tpacket_rcv"}) << "one for both, in no fanout group";
            return;
        }
        ASSERT_EQ(order.size(), 2U) << "the ring and the socket that wakes";
        EXPECT_NE(order[0], "packet_rcv");
        EXPECT_EQ(order[1], "packet_rcv") << "an ordinary socket, behind the ring";
    };
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 2000"));
    const auto a = open_frame_port(on("va"));
    ring_comes_first();
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 4000"));
    a->refresh();
    EXPECT_EQ(a->mtu(), 4000U);
    ring_comes_first();
    ASSERT_TRUE(uib::testing::shell("ip link set va down && ip link set va up"));
    ring_comes_first();
}

/// The kernel tells of a lost carrier with up to a second's delay.
bool comes_to(FramePort& port, bool up) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (port.link_up() != up && std::chrono::steady_clock::now() < end) {
    }
    return port.link_up() == up;
}

TEST_P(PacketSocketPort, FollowsTheInterfacesState) {
    const auto a = open_frame_port(on("va"));
    EXPECT_TRUE(a->link_up());
    ASSERT_TRUE(uib::testing::shell("ip link set vb down"));
    EXPECT_TRUE(comes_to(*a, false));
    ASSERT_TRUE(uib::testing::shell("ip link set vb up"));
    EXPECT_TRUE(comes_to(*a, true));
}

TEST_P(PacketSocketPort, ComesBackWithItsInterface) {
    const auto a = open_frame_port(on("va"));
    const int descriptor = a->wake_descriptor();
    ASSERT_TRUE(uib::testing::shell("ip link del va"));
    EXPECT_TRUE(refreshed_until(*a, false));
    ASSERT_TRUE(
        uib::testing::shell("ip link add va mtu 1500 type veth peer name vb mtu 1500"
                            " && ip link set va up && ip link set vb up"));
    ASSERT_TRUE(refreshed_until(*a, true));
    EXPECT_EQ(a->mtu(), 1500U);
    EXPECT_EQ(a->wake_descriptor(), descriptor) << "whoever waits for it goes on";
    const auto b = open_frame_port(on("vb"));
    send(*a, b->mac(), 1500, 0);
    send(*b, a->mac(), 1500, 0);
    a->flush();
    b->flush();
    EXPECT_EQ(collect(*b, {1500}), 1U);
    EXPECT_EQ(collect(*a, {1500}), 1U);
}

TEST_P(PacketSocketPort, FollowsTheInterfacesMtu) {
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 1500"));
    const auto a = open_frame_port(on("va"));
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 700"));
    a->refresh();
    EXPECT_EQ(a->mtu(), 700U);
    EXPECT_TRUE(a->allocate(kHeader + 800).empty());
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 9000"));
    a->refresh();
    EXPECT_EQ(a->mtu(), 9000U) << "with larger buffers";
    const auto b = open_frame_port(on("vb"));
    send(*a, b->mac(), 9000, 0);
    a->flush();
    EXPECT_EQ(collect(*b, {9000}), 1U);
    send(*b, a->mac(), 9000, 0);
    b->flush();
    EXPECT_EQ(collect(*a, {9000}), 1U);
}

// The kernel refuses such a frame for good.
TEST_F(OwnPacketSocket, AFrameThatTheInterfaceHasGrownTooSmallForIsNotInTheWay) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port(on("vb"));
    send(*a, b->mac(), 9000, 0);
    send(*a, b->mac(), 8000, 0);
    send(*a, b->mac(), 700, 0);
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 1500"));
    a->flush();
    EXPECT_FALSE(a->unsent());
    EXPECT_EQ(collect(*b, {700}), 1U);
    EXPECT_EQ(a->counters().tx_refused, 2U);
}

// It waits for one that it can serve, and keeps nothing that was laid out for another ring.
TEST_F(OwnPacketSocket, AnMtuThatNoRingHoldsStopsItUntilThatIsSmaller) {
    const auto a = open_frame_port(on("va"));
    const auto b = open_frame_port(on("vb"));
    for (unsigned i = 0; i < 40; ++i) send(*a, b->mac(), 8000, i);
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 40000"));
    a->refresh();
    EXPECT_FALSE(a->link_up());
    EXPECT_FALSE(a->unsent());
    EXPECT_EQ(a->counters().tx_refused, 40U);
    EXPECT_TRUE(a->allocate(100).empty());
    a->flush();
    ASSERT_TRUE(uib::testing::shell("ip link set va mtu 9000"));
    a->refresh();
    ASSERT_TRUE(a->link_up());
    send(*a, b->mac(), 700, 0);
    a->flush();
    EXPECT_EQ(collect(*b, {700}), 1U);
}

// Until then somebody must call flush(): the lane does not sleep.
TEST_F(OwnPacketSocket, WhatIsCommittedIsUnsentUntilTheDriverHasIt) {
    const auto a = open_frame_port(on("va"));
    EXPECT_FALSE(a->unsent());
    send(*a, a->mac(), 60, 0);
    EXPECT_TRUE(a->unsent());
    a->flush();
    EXPECT_FALSE(a->unsent());
}

TEST_P(PacketSocketPort, TheInterfacesOtherTrafficStaysOutOfItsRing) {
    const auto a = open_frame_port(on("va"));
    const auto other = [] {
        FramePortOptions options = on("vb");
        options.ether_type = 0x88B6;
        return open_frame_port(options);
    }();
    // What came before the driver's socket had its filter.
    while (!a->receive().empty()) a->release();
    const std::uint64_t before = a->counters().rx_frames;
    send(*other, a->mac(), 100, 0);  // type 0x88B5, which is ours
    const std::span<std::byte> frame = other->allocate(kHeader + 60);
    std::memcpy(frame.data(), a->mac().data(), 6);
    std::memcpy(frame.data() + 6, other->mac().data(), 6);
    frame[12] = std::byte{0x88};
    frame[13] = std::byte{0xB7};  // nobody's
    other->commit();
    send(*other, a->mac(), 101, 1);
    other->flush();
    EXPECT_EQ(collect(*a, {100, 101}), 2U);
    EXPECT_EQ(a->counters().rx_frames, before + 2);
}

std::string error_of(const FramePortOptions& options) {
    try {
        open_frame_port(options);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "no error";
}

TEST_P(PacketSocketPort, SaysWhatIsWrong) {
    EXPECT_NE(error_of(on("vx")).find("no interface 'vx'"), std::string::npos) << error_of(on("vx"));
    EXPECT_NE(error_of(on("va", "af_paket")).find("unknown driver"), std::string::npos);
    FramePortOptions large = on("va");
    large.mtu = kMtu + 1;
    EXPECT_NE(error_of(large).find("ip link set va mtu 9001"), std::string::npos) << error_of(large);
    ASSERT_TRUE(uib::testing::shell("ip link set va down"));
    EXPECT_NE(error_of(on("va")).find("down"), std::string::npos) << error_of(on("va"));
}

}  // namespace
}  // namespace uib::net
