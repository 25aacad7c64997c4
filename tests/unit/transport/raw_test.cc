// Raw packets: Ethernet frames, and what of raw datagrams is no row of the specification's (those are in
// tests/conformance/raw_datagram_test.cc).
#include <gtest/gtest.h>

#include <cstring>

#include "engine/transport/raw_queue_pair.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using net::PacketKind;

constexpr std::uint32_t kMtu = 256;
constexpr std::size_t kNextHeader = 6;

/// Gives the station a queue pair that is bound to a kind of raw packets by its configuration.
void bind(Station& station, PacketKind kind, std::uint16_t ethertype) {
    QpConfig config = station.qp->config();
    config.raw_kind = kind;
    config.raw_ethertype = ethertype;
    station.qp = QueuePair::make(config, station);
    station.parameters.mtu_bytes = kMtu;
}

void post_bytes(Station& station, std::uint32_t length) {
    Work work;
    work.entries = {station.entry(0, length)};
    station.post(work);
}

/// An IPv6 packet of `length` bytes at 0.
void put_ipv6(Station& station, std::uint32_t length, std::uint8_t next_header) {
    station.fill(0, length, 1);
    *station.at(0) = std::byte{0x60};
    *station.at(kNextHeader) = std::byte{next_header};
}

struct RawPair {
    explicit RawPair(PacketKind kind, std::uint16_t ethertype = 0)
        : a(Service::kRaw, 0x11), b(Service::kRaw, 0x12) {
        bind(a, kind, ethertype);
        bind(b, kind, ethertype);
        a.connect(0x12);
        b.connect(0x11);
    }
    std::vector<SentPacket> carry() {
        a.run();
        std::vector<SentPacket> sent = a.take_out();
        for (const SentPacket& packet : sent) b.deliver(packet.whole());
        return sent;
    }
    Station a;
    Station b;
};

TEST(RawFrames, are_sent_and_received_whole) {
    RawPair pair(PacketKind::kEthernet);
    for (const std::uint32_t length : {14U, 61U, 192U, 193U, 4114U, kMaxFrameBytes}) {
        pair.a.fill(0, length, length);
        pair.b.post_receive(length, 0, kMaxFrameBytes);
        post_bytes(pair.a, length);
        const auto sent = pair.carry();
        ASSERT_EQ(sent.size(), 1U);
        EXPECT_EQ(sent[0].packet.kind, PacketKind::kEthernet);
        EXPECT_EQ(sent[0].payload.size(), length);
        ASSERT_FALSE(pair.b.receives.empty());
        EXPECT_EQ(pair.b.receives.back().wr_id, length);
        EXPECT_EQ(pair.b.receives.back().byte_len, length);
        EXPECT_EQ(pair.b.receives.back().status, Status::kSuccess);
        EXPECT_EQ(pair.b.receives.back().slid, 0);
        EXPECT_TRUE(pair.b.holds(0, length, length));
    }
    EXPECT_EQ(pair.a.sends.size(), 6U);
}

TEST(RawFrames, are_gathered_and_scattered) {
    RawPair pair(PacketKind::kEthernet);
    pair.a.fill(100, 60, 3);
    Work work;
    work.entries = {pair.a.entry(100, 14), pair.a.entry(114, 1), pair.a.entry(115, 45)};
    pair.a.post(work);
    pair.b.receive_queue.posted.push_back({1, {pair.b.entry(0, 20), pair.b.entry(20, 100)}, false});
    pair.carry();
    ASSERT_EQ(pair.b.receives.size(), 1U);
    EXPECT_EQ(pair.b.receives[0].byte_len, 60U);
    EXPECT_TRUE(pair.b.holds(0, 60, 3));
}

TEST(RawFrames, shorter_than_a_header_or_longer_than_a_jumbo_frame_are_length_errors) {
    for (const std::uint32_t length : {0U, kMinFrameBytes - 1, kMaxFrameBytes + 1}) {
        RawPair pair(PacketKind::kEthernet);
        post_bytes(pair.a, length);
        EXPECT_TRUE(pair.carry().empty());
        ASSERT_EQ(pair.a.sends.size(), 1U);
        EXPECT_EQ(pair.a.sends[0].status, Status::kLocalLength);
        EXPECT_EQ(pair.a.qp->state(), QpState::kSqe);
    }
}

TEST(RawFrames, carry_sends_only) {
    RawPair pair(PacketKind::kEthernet);
    Work work;
    work.opcode = ipc::WorkOpcode::kSendWithImmediate;
    work.entries = {pair.a.entry(0, 60)};
    pair.a.post(work);
    EXPECT_TRUE(pair.carry().empty());
    ASSERT_EQ(pair.a.sends.size(), 1U);
    EXPECT_EQ(pair.a.sends[0].status, Status::kLocalQpOperation);
}

TEST(RawFrames, without_a_receive_are_dropped_and_counted) {
    RawPair pair(PacketKind::kEthernet);
    post_bytes(pair.a, 60);
    pair.carry();
    EXPECT_EQ(pair.b.count().dropped_no_receive, 1U);
    EXPECT_EQ(pair.b.qp->state(), QpState::kRts);
}

TEST(RawFrames, end_a_queue_pair_whose_shared_queue_is_in_error) {
    RawPair pair(PacketKind::kEthernet);
    pair.b.receive_queue.is_failed = true;
    post_bytes(pair.a, 60);
    pair.carry();
    EXPECT_EQ(pair.b.qp->state(), QpState::kError);
    EXPECT_EQ(pair.b.events, std::vector{QpEvent::kFatal});
}

TEST(RawFrames, longer_than_the_receive_end_it_with_a_length_error) {
    RawPair pair(PacketKind::kEthernet);
    std::memset(pair.b.at(0), 0xCC, 100);
    pair.b.post_receive(1, 0, 59);
    post_bytes(pair.a, 60);
    pair.carry();
    ASSERT_EQ(pair.b.receives.size(), 1U);
    EXPECT_EQ(pair.b.receives[0].status, Status::kLocalLength);
    EXPECT_EQ(*pair.b.at(0), std::byte{0xCC});
    EXPECT_EQ(pair.b.qp->state(), QpState::kError);
}

TEST(RawDatagrams, pad_bytes_are_zeros_and_received) {
    RawPair pair(PacketKind::kRawEthertype, 0x88B6);
    struct {
        std::uint32_t given, wire;
    } constexpr kCases[] = {{0, 8}, {1, 8}, {8, 8}, {9, 12}, {10, 12}, {11, 12}, {12, 12}, {13, 16}};
    for (const auto& [given, wire] : kCases) {
        pair.a.fill(0, 16, 5);
        std::memset(pair.b.at(0), 0xCC, 64);
        pair.b.post_receive(1, 0, 64);
        post_bytes(pair.a, given);
        const auto sent = pair.carry();
        ASSERT_EQ(sent.size(), 1U) << given;
        EXPECT_EQ(sent[0].payload.size(), wire);
        EXPECT_EQ(pair.b.receives.back().byte_len, wire);
        EXPECT_TRUE(pair.b.holds(0, given, 5));
        for (std::uint32_t i = given; i < wire; ++i) EXPECT_EQ(*pair.b.at(i), std::byte{0});
        EXPECT_EQ(*pair.b.at(wire), std::byte{0xCC});
    }
}

TEST(RawDatagrams, wrong_ip_version_or_a_header_cut_short_is_refused) {
    RawPair pair(PacketKind::kRawIpv6);
    put_ipv6(pair.a, 60, 17);
    *pair.a.at(0) = std::byte{0x45};
    post_bytes(pair.a, 60);
    EXPECT_TRUE(pair.carry().empty());
    RawPair other(PacketKind::kRawIpv6);
    put_ipv6(other.a, 60, 17);
    post_bytes(other.a, 39);
    EXPECT_TRUE(other.carry().empty());
    EXPECT_EQ(other.a.sends.back().status, Status::kLocalLength);
}

}  // namespace
}  // namespace uib::transport::testing
