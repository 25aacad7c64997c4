// What tests of frame ports share: a veth pair in a network namespace of the test's own, frames whose bytes
// are known.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "net/port/port_module.h"
#include "tests/unit/port/private_network.h"

namespace uib::net {

inline constexpr std::uint16_t kType = 0x88B5;
inline constexpr std::size_t kHeader = 14;

inline FramePortOptions on(const std::string& interface, const std::string& driver = "af_packet") {
    FramePortOptions options;
    options.name = "test";
    options.driver = driver;
    options.interface = interface;
    options.ether_type = kType;
    return options;
}

/// On a veth pair of interfaces va and vb.
class FramePortTest : public ::testing::Test {
  public:
    static constexpr unsigned kMtu = 9000;
    void SetUp() override {
        if (const std::string why = uib::testing::enter_private_network(kMtu); !why.empty())
            GTEST_SKIP() << why;
    }

    static void send(FramePort& from, const MacAddress& to, std::size_t payload, unsigned seed) {
        const std::span<std::byte> frame = from.allocate(kHeader + payload);
        ASSERT_EQ(frame.size(), kHeader + payload);
        const MacAddress mac = from.mac();
        std::memcpy(frame.data(), to.data(), to.size());
        std::memcpy(frame.data() + 6, mac.data(), mac.size());
        frame[12] = std::byte{kType >> 8};
        frame[13] = std::byte{kType & 0xFF};
        for (std::size_t i = 0; i < payload; ++i)
            frame[kHeader + i] = static_cast<std::byte>(seed + i * 7 + (i >> 8));
        from.commit();
    }

    /// Waits for frames of ours until `count` have come, and checks their bytes: payload sizes, seeds from 0
    /// on.
    static std::size_t collect(FramePort& at, const std::vector<std::size_t>& payloads) {
        std::size_t good = 0;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (good < payloads.size() && std::chrono::steady_clock::now() < end) {
            for (const auto& frame : at.receive()) {
                if (frame[12] != std::byte{kType >> 8} || frame[13] != std::byte{kType & 0xFF}) continue;
                EXPECT_EQ(frame.size(), kHeader + payloads[good]);
                for (std::size_t i = 0; i + kHeader < frame.size(); ++i) {
                    if (frame[kHeader + i] != static_cast<std::byte>(good + i * 7 + (i >> 8))) {
                        ADD_FAILURE() << "frame " << good << " byte " << i;
                        return good;
                    }
                }
                ++good;
            }
            at.release();
        }
        return good;
    }
};

/// refresh() as the uplink calls it, until the port is up or ten seconds have gone.
inline bool refreshed_until(FramePort& port, bool up) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    do {
        port.refresh();
    } while (port.link_up() != up && std::chrono::steady_clock::now() < end);
    return port.link_up() == up;
}

}  // namespace uib::net
