// The Toeplitz function by the verification suite that Microsoft published for receive side scaling, and
// which fields of a frame go into it.
#include "engine/verbs/rx_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace uib::verbs {
namespace {

constexpr HashKey kKey{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                       0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                       0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
constexpr std::uint32_t kIpv4 = ipc::kHashSourceIpv4 | ipc::kHashDestinationIpv4;
constexpr std::uint32_t kIpv6 = ipc::kHashSourceIpv6 | ipc::kHashDestinationIpv6;
constexpr std::uint32_t kTcp = ipc::kHashSourceTcpPort | ipc::kHashDestinationTcpPort;
constexpr std::uint32_t kUdp = ipc::kHashSourceUdpPort | ipc::kHashDestinationUdpPort;

void put_port(std::uint8_t (&to)[2], unsigned port) {
    to[0] = static_cast<std::uint8_t>(port >> 8);
    to[1] = static_cast<std::uint8_t>(port);
}

/// 66.9.149.187:2794 to 161.142.100.80:1766.
FrameHeaders ipv4_tcp() {
    FrameHeaders headers;
    headers.layers = ipc::kFlowIpv4 | ipc::kFlowTcp;
    constexpr std::uint8_t kSource[] = {66, 9, 149, 187}, kDestination[] = {161, 142, 100, 80};
    std::copy(std::begin(kSource), std::end(kSource), headers.fields.source_ip);
    std::copy(std::begin(kDestination), std::end(kDestination), headers.fields.destination_ip);
    put_port(headers.fields.source_port, 2794);
    put_port(headers.fields.destination_port, 1766);
    return headers;
}

/// [3ffe:2501:200:1fff::7]:2794 to [3ffe:2501:200:3::1]:1766.
FrameHeaders ipv6_tcp() {
    FrameHeaders headers;
    headers.layers = ipc::kFlowIpv6 | ipc::kFlowTcp;
    constexpr std::uint8_t kSource[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff,
                                          0,    0,    0,    0,    0,    0,    0,    7};
    constexpr std::uint8_t kDestination[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0, 3,
                                               0,    0,    0,    0,    0,    0,    0, 1};
    std::copy(std::begin(kSource), std::end(kSource), headers.fields.source_ip);
    std::copy(std::begin(kDestination), std::end(kDestination), headers.fields.destination_ip);
    put_port(headers.fields.source_port, 2794);
    put_port(headers.fields.destination_port, 1766);
    return headers;
}

std::uint32_t hash(const FrameHeaders& headers, std::uint32_t fields) {
    return RxHash{nullptr, fields, kKey}.hash(headers);
}

TEST(RxHash, agrees_with_the_published_suite) {
    EXPECT_EQ(hash(ipv4_tcp(), kIpv4), 0x323e8fc2U);
    EXPECT_EQ(hash(ipv4_tcp(), kIpv4 | kTcp), 0x51ccc178U);
    EXPECT_EQ(hash(ipv6_tcp(), kIpv6), 0x2cc18cd5U);
    EXPECT_EQ(hash(ipv6_tcp(), kIpv6 | kTcp), 0x40207d3dU);
}

TEST(RxHash, takes_the_fields_that_are_asked_for_and_there) {
    FrameHeaders udp = ipv4_tcp();
    udp.layers = ipc::kFlowIpv4 | ipc::kFlowUdp;
    EXPECT_EQ(hash(udp, kIpv4 | kUdp), 0x51ccc178U);
    EXPECT_EQ(hash(udp, kIpv4 | kTcp), 0x323e8fc2U) << "no TCP ports there";
    EXPECT_EQ(hash(ipv4_tcp(), kIpv6 | kUdp), 0U);
    EXPECT_EQ(hash(ipv4_tcp(), 0), 0U);
    const FrameHeaders tcp = ipv4_tcp();
    EXPECT_EQ(hash(tcp, ipc::kHashDestinationIpv4),
              toeplitz(kKey, std::span(tcp.fields.destination_ip).first(4)));
    EXPECT_EQ(hash(tcp, ipc::kHashSourceTcpPort), toeplitz(kKey, tcp.fields.source_port));
    EXPECT_NE(hash(tcp, ipc::kHashSourceTcpPort), hash(tcp, ipc::kHashDestinationTcpPort));
}

TEST(RxHash, leaves_the_ports_of_a_first_fragment_out) {
    FrameHeaders fragment = ipv4_tcp();
    fragment.fields.ip_flags = 4;  // more fragments, which have no ports
    EXPECT_EQ(hash(fragment, kIpv4 | kTcp), 0x323e8fc2U);
}

TEST(RxHash, fields_that_exclude_each_other_are_refused) {
    EXPECT_EQ(check_hash_fields(kIpv4 | kTcp), 0);
    EXPECT_EQ(check_hash_fields(kIpv6 | ipc::kHashSourceUdpPort), 0);
    EXPECT_EQ(check_hash_fields(0), 0);
    EXPECT_EQ(check_hash_fields(kIpv4 | ipc::kHashSourceIpv6), EINVAL);
    EXPECT_EQ(check_hash_fields(kTcp | ipc::kHashSourceUdpPort), EINVAL);
    EXPECT_EQ(check_hash_fields(1U << 8), EOPNOTSUPP) << "security parameter index";
    EXPECT_EQ(check_hash_fields(1U << 31), EOPNOTSUPP) << "inner headers";
}

}  // namespace
}  // namespace uib::verbs
