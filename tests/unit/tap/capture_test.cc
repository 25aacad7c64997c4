// Captures, read back block by block. That Wireshark reads them is for the integration tests.
#include "net/tap/capture.h"

#include <gtest/gtest.h>

#include <cstring>

#include "net/encap/roce_frame.h"
#include "net/wire/codec.h"
#include "net/wire/gid.h"

namespace uib::net {
namespace {

struct Block {
    std::uint32_t type;
    std::vector<std::byte> body;
    template <typename T>
    [[nodiscard]] T at(std::size_t offset) const {
        T value;
        std::memcpy(&value, body.data() + offset, sizeof value);
        return value;
    }
};

std::vector<Block> blocks_of(const std::vector<std::byte>& file) {
    std::vector<Block> out;
    for (std::size_t at = 0; at < file.size();) {
        std::uint32_t type, length, again;
        std::memcpy(&type, file.data() + at, 4);
        std::memcpy(&length, file.data() + at + 4, 4);
        EXPECT_EQ(length % 4, 0U);
        if (length < 12 || at + length > file.size()) {
            ADD_FAILURE() << "broken block at " << at;
            return out;
        }
        std::memcpy(&again, file.data() + at + length - 4, 4);
        EXPECT_EQ(length, again);
        out.push_back({type,
                       {file.begin() + static_cast<std::ptrdiff_t>(at) + 8,
                        file.begin() + static_cast<std::ptrdiff_t>(at + length) - 4}});
        at += length;
    }
    return out;
}

Packet packet(std::span<const std::byte> payload) {
    Packet out;
    out.lrh = {.dlid = 2, .slid = 1};
    out.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
    out.bth.dest_qp = 0x1234;
    out.bth.pad = static_cast<std::uint8_t>(-payload.size() & 3);
    out.payload = payload;
    return out;
}

const std::vector<CapturePort> kPorts = {{"uib0", false, {}}, {"roce0", true, {2, 0, 0, 0, 0, 9}}};

TEST(Capture, SectionAndInterfacesComeFirst) {
    Capture capture(kPorts, {});
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(blocks[0].type, 0x0A0D0D0AU);
    EXPECT_EQ(blocks[0].at<std::uint32_t>(0), 0x1A2B3C4DU);
    EXPECT_EQ(blocks[1].type, 1U);
    EXPECT_EQ(blocks[1].at<std::uint16_t>(0), 197U);
    EXPECT_EQ(blocks[2].at<std::uint16_t>(0), 1U);
}

TEST(Capture, AnInfiniBandPacketIsKeptFromLrhToVcrc) {
    Capture capture(kPorts, {});
    capture.take(false, 0);
    const std::vector<std::byte> payload(21, std::byte{0x5A});
    capture.add(0, CaptureDirection::kOutbound, 0x1122334455667788, packet(payload));
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 1U);
    const Block& block = blocks[0];
    EXPECT_EQ(block.type, 6U);
    EXPECT_EQ(block.at<std::uint32_t>(0), 0U);
    EXPECT_EQ(block.at<std::uint32_t>(4), 0x11223344U);
    EXPECT_EQ(block.at<std::uint32_t>(8), 0x55667788U);
    const auto kept = block.at<std::uint32_t>(12);
    EXPECT_EQ(kept, kErfHeaderBytes + encoded_bytes(packet(payload)));
    EXPECT_EQ(block.at<std::uint32_t>(16), kept);
    const auto record = std::span(block.body).subspan(20, kept);
    EXPECT_EQ(block.at<std::uint32_t>(20 + 4), 0x1122334455667788U / 1'000'000'000) << "seconds";
    EXPECT_EQ(std::to_integer<unsigned>(record[8]), 21U) << "InfiniBand";
    EXPECT_EQ(std::to_integer<unsigned>(record[10]) << 8 | std::to_integer<unsigned>(record[11]), kept);
    EXPECT_EQ(std::to_integer<unsigned>(record[14]) << 8 | std::to_integer<unsigned>(record[15]),
              kept - kErfHeaderBytes);
    Packet got;
    ASSERT_EQ(decode(record.subspan(kErfHeaderBytes), got), DecodeError::kNone);
    EXPECT_EQ(got.bth.dest_qp, 0x1234U);
    EXPECT_EQ(got.payload.size(), payload.size());
    EXPECT_EQ(block.at<std::uint32_t>(20 + (kept + 3) / 4 * 4 + 4), 2U) << "outbound";
}

TEST(Capture, AnEthernetPortsPacketIsARoceFrame) {
    Capture capture(kPorts, {});
    capture.take(false, 0);
    Packet roce = packet({});
    roce.has_grh = true;
    roce.grh.sgid = gid_of_ipv4(0x0A000001);
    roce.grh.dgid = gid_of_ipv4(0x0A000002);
    roce.grh.hop_limit = 1;
    capture.add(1, CaptureDirection::kInbound, 1, roce);
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 1U);
    Packet got;
    RoceEnvelope envelope;
    DecodeError detail{};
    ASSERT_EQ(decode_roce(std::span(blocks[0].body).subspan(20, blocks[0].at<std::uint32_t>(12)), got,
                          envelope, detail),
              RoceError::kNone);
    EXPECT_EQ(envelope.destination, kPorts[1].mac);
    EXPECT_EQ(got.grh.sgid, roce.grh.sgid);
}

TEST(Capture, AFrameOfTheWireIsKeptByteForByte) {
    Capture capture(kPorts, {.qp = 0x1234});
    capture.take(false, 0);
    std::vector<std::byte> frame(61);
    for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(i * 7);
    capture.add_frame(1, CaptureDirection::kOutbound, 0x1122334455667788, frame, packet({}));
    Packet other = packet({});
    other.bth.dest_qp = 7;
    capture.add_frame(1, CaptureDirection::kInbound, 2, frame, other);
    capture.add_frame(1, CaptureDirection::kInbound, 3, frame, other, 0x1234);
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 2U) << "to the queue pair and from it";
    const Block& block = blocks[0];
    EXPECT_EQ(block.at<std::uint32_t>(0), 1U);
    EXPECT_EQ(block.at<std::uint32_t>(4), 0x11223344U);
    ASSERT_EQ(block.at<std::uint32_t>(12), frame.size());
    EXPECT_EQ(block.at<std::uint32_t>(16), frame.size());
    EXPECT_TRUE(std::equal(frame.begin(), frame.end(), block.body.begin() + 20));
    EXPECT_EQ(block.at<std::uint32_t>(20 + 64 + 4), 2U) << "outbound";
    EXPECT_EQ(blocks[1].at<std::uint32_t>(20 + 64 + 4), 1U) << "inbound";
}

TEST(Capture, OfAFrameTheSnapLengthIsKept) {
    Capture capture(kPorts, {.snap = 20, .buffer_bytes = 1000});
    capture.take(false, 0);
    const std::vector<std::byte> frame(700);
    capture.add_frame(1, CaptureDirection::kInbound, 1, frame, packet({}));
    capture.add_frame(1, CaptureDirection::kInbound, 2, std::vector<std::byte>(1000), packet({}));
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(blocks[0].at<std::uint32_t>(12), 20U);
    EXPECT_EQ(blocks[0].at<std::uint32_t>(16), frame.size());
    EXPECT_EQ(capture.dropped(), 1U);
}

TEST(Capture, SnapLengthPortAndQpFilter) {
    Capture capture(kPorts, {.port = 0, .qp = 0x1234, .snap = 30});
    capture.take(false, 0);
    const std::vector<std::byte> payload(100, std::byte{1});
    capture.add(0, CaptureDirection::kInbound, 1, packet(payload));
    capture.add(1, CaptureDirection::kInbound, 1, packet(payload));
    Packet other = packet(payload);
    other.bth.dest_qp = 7;
    capture.add(0, CaptureDirection::kInbound, 1, other);
    other.deth.source_qp = 0x1234;
    capture.add(0, CaptureDirection::kInbound, 1, other);
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 2U);
    EXPECT_EQ(blocks[0].at<std::uint32_t>(12), kErfHeaderBytes + 30U);
    EXPECT_EQ(blocks[0].at<std::uint32_t>(16), kErfHeaderBytes + encoded_bytes(packet(payload)));
    EXPECT_EQ(capture.packets(), 2U);
}

TEST(Capture, WhatDoesNotFitIsCountedInTheFile) {
    Capture capture(kPorts, {.buffer_bytes = 2000});
    const std::vector<std::byte> payload(1000, std::byte{1});
    for (int i = 0; i < 5; ++i) capture.add(0, CaptureDirection::kInbound, 1, packet(payload));
    EXPECT_EQ(capture.packets(), 1U);
    EXPECT_EQ(capture.dropped(), 4U);
    const auto blocks = blocks_of(capture.take(true, 5));
    const Block& statistics = blocks[blocks.size() - 2];
    EXPECT_EQ(statistics.type, 5U);
    EXPECT_EQ(statistics.at<std::uint32_t>(0), 0U);
    EXPECT_EQ(statistics.at<std::uint64_t>(12 + 4), 5U);  // received
    EXPECT_EQ(statistics.at<std::uint64_t>(24 + 4), 4U);  // dropped
}

/// Source and destination of the only frame that the capture makes of the packet.
std::pair<MacAddress, MacAddress> macs_of(const std::vector<CapturePort>& ports, std::uint32_t port,
                                          CaptureDirection direction, const Packet& packet) {
    Capture capture(ports, {});
    capture.take(false, 0);
    capture.add(port, direction, 1, packet);
    const auto blocks = blocks_of(capture.take(false, 0));
    MacAddress source{}, destination{};
    if (blocks.size() != 1) return {source, destination};
    std::memcpy(destination.data(), blocks[0].body.data() + 20, 6);
    std::memcpy(source.data(), blocks[0].body.data() + 26, 6);
    return {source, destination};
}

TEST(Capture, MacAddressesAreThoseOfTheEnginesPorts) {
    const MacAddress first{2, 0, 0, 0, 0, 1}, second{2, 0, 0, 0, 0, 2};
    const Gid gids[] = {gid_of_ipv4(0x0A000001), gid_of_ipv4(0x0A000002)};
    const std::vector<CapturePort> ports = {{"a", true, first, {gids[0]}}, {"b", true, second, {gids[1]}}};
    Packet roce = packet({});
    roce.has_grh = true;
    roce.grh.sgid = gids[0];
    roce.grh.dgid = gids[1];
    using Macs = std::pair<MacAddress, MacAddress>;
    EXPECT_EQ(macs_of(ports, 0, CaptureDirection::kOutbound, roce), (Macs{first, second}));
    EXPECT_EQ(macs_of(ports, 1, CaptureDirection::kInbound, roce), (Macs{first, second}));
    // A stranger: out of the GID, if that was made of a MAC address.
    roce.grh.dgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0x52, 0x54, 0, 0xFF, 0xFE, 1, 2, 3};
    EXPECT_EQ(macs_of(ports, 0, CaptureDirection::kOutbound, roce), (Macs{first, {0x50, 0x54, 0, 1, 2, 3}}));
    roce.grh.dgid = gid_of_ipv4(0x0A010203);
    EXPECT_EQ(macs_of(ports, 0, CaptureDirection::kOutbound, roce), (Macs{first, {2, 0x55, 0x49, 1, 2, 3}}));
}

TEST(Capture, MulticastFramesGoToTheGroupsMacAddress) {
    Packet roce = packet({});
    roce.has_grh = true;
    roce.grh.sgid = gid_of_ipv4(0x0A000001);
    roce.grh.dgid = {0xFF, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4};
    EXPECT_EQ(macs_of(kPorts, 1, CaptureDirection::kOutbound, roce).second,
              (MacAddress{0x33, 0x33, 1, 2, 3, 4}));
    roce.grh.dgid = gid_of_ipv4(0xEF810203);
    EXPECT_EQ(macs_of(kPorts, 1, CaptureDirection::kInbound, roce).second,
              (MacAddress{0x01, 0, 0x5E, 1, 2, 3}));
}

TEST(Capture, AnAddressThatChangesIsFollowed) {
    Capture capture(kPorts, {});
    capture.take(false, 0);
    const MacAddress now{2, 9, 9, 9, 9, 9};
    capture.set_addresses(1, now, {gid_of_ipv4(0x0A000009)});
    Packet roce = packet({});
    roce.has_grh = true;
    roce.grh.sgid = roce.grh.dgid = gid_of_ipv4(0x0A000009);
    capture.add(1, CaptureDirection::kOutbound, 1, roce);
    const auto blocks = blocks_of(capture.take(false, 0));
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(std::memcmp(blocks[0].body.data() + 20, now.data(), 6), 0);
    EXPECT_EQ(std::memcmp(blocks[0].body.data() + 26, now.data(), 6), 0);
}

TEST(Capture, EndsAtItsCount) {
    Capture capture(kPorts, {.count = 2});
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(capture.done());
        capture.add(0, CaptureDirection::kInbound, 1, packet({}));
    }
    EXPECT_TRUE(capture.done());
    capture.add(0, CaptureDirection::kInbound, 1, packet({}));
    EXPECT_EQ(capture.packets(), 2U);
}

TEST(Capture, AQueuePairsOwnPacketsAreKnownByWhoSendsThem) {
    Capture capture(kPorts, {.qp = 7});
    capture.add(0, CaptureDirection::kOutbound, 1, packet({}), 7);
    capture.add(0, CaptureDirection::kOutbound, 1, packet({}), 8);
    EXPECT_EQ(capture.packets(), 1U);
}

}  // namespace
}  // namespace uib::net
