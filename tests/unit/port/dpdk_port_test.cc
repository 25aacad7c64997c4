// The ports of DPDK's drivers but af_packet's.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/port/frame_port_fixture.h"

// libxdp 1.3.1 does not free its program when a socket goes (xdp-tools pull request 376); both libraries of
// it are without frame pointers.
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libxdp.so\nleak:libbpf.so\n";
}

namespace uib::net {
namespace {

using DpdkPort = FramePortTest;

class XdpPort : public ::testing::Test {
  protected:
    // In bursts: a few at a time would be the same few all the time, from the thread's own store.
    static constexpr unsigned kBurst = 250;

    void SetUp() override {
        if (const std::string why = uib::testing::enter_private_network(1500); !why.empty())
            GTEST_SKIP() << why;
        try {
            a_ = open_frame_port(on("va", "af_xdp"));
            b_ = open_frame_port(on("vb", "af_xdp"));
        } catch (const std::runtime_error& error) {
            GTEST_SKIP() << "no af_xdp here: " << error.what();
        }
    }
    void send_burst() {
        for (unsigned i = 0; i < kBurst; ++i) DpdkPort::send(*a_, b_->mac(), 64, i);
        a_->flush();
    }

    std::unique_ptr<FramePort> a_, b_;
};

// Buffers are used in turns: more frames than there are buffers use each of them.
TEST_F(XdpPort, EveryBufferCarriesAFrame) {
    for (unsigned round = 0; round < 40; ++round) {
        send_burst();
        ASSERT_EQ(DpdkPort::collect(*b_, std::vector<std::size_t>(kBurst, 64)), kBurst) << "round " << round;
    }
}

TEST_F(XdpPort, WhatTheKernelLosesAtItsSocketIsCountedByCause) {
    const auto lost = [&] {
        const FramePortCounters& counters = b_->counters();
        return counters.xdp_rx_fill_ring_empty_descs + counters.xdp_rx_ring_full + counters.xdp_rx_dropped;
    };
    EXPECT_EQ(lost(), 0U);
    // Nobody takes them: the socket's rings hold some thousands.
    for (unsigned round = 0; round < 40; ++round) send_burst();
    const std::uint64_t before = lost();
    EXPECT_GT(before, 0U);
    // Another socket, which counts from 0.
    b_->release();
    ASSERT_TRUE(
        uib::testing::shell("ip link del va && ip link add va mtu 1500 type veth peer name vb mtu 1500"
                            " && ip link set va up && ip link set vb up"));
    ASSERT_TRUE(refreshed_until(*b_, true));
    EXPECT_GE(lost(), before);
}

void leave_stale_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
}

// DPDK 22.11's driver crashes in its own thread when a peer stops under way (dpdk.md, section 4), so neither
// end does.
TEST_F(DpdkPort, MemifNeedsNoInterface) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the memif driver of DPDK 22.11 has faults that sanitizers stop at";
#endif
    const std::string socket = ::testing::TempDir() + "uib-memif-" + std::to_string(::getpid()) + ".sock";
    leave_stale_socket(socket);  // as an engine that was killed does
    FramePortOptions options = on(socket, "memif");
    options.server = true;
    FramePort* const server = open_frame_port(options).release();
    options.server = false;
    FramePort* const client = open_frame_port(options).release();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!(server->link_up() && client->link_up()) && std::chrono::steady_clock::now() < end) {
    }
    ASSERT_TRUE(server->link_up());
    for (unsigned i = 0; i < 4; ++i) send(*client, server->mac(), 4000, i);
    client->flush();
    EXPECT_EQ(collect(*server, {4000, 4000, 4000, 4000}), 4U);
    ::unlink(socket.c_str());
}

}  // namespace
}  // namespace uib::net
