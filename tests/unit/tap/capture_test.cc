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
    EXPECT_EQ(blocks[1].at<std::uint16_t>(0), 247U);
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
    EXPECT_EQ(kept, encoded_bytes(packet(payload)));
    EXPECT_EQ(block.at<std::uint32_t>(16), kept);
    Packet got;
    ASSERT_EQ(decode(std::span(block.body).subspan(20, kept), got), DecodeError::kNone);
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
    EXPECT_EQ(blocks[0].at<std::uint32_t>(12), 30U);
    EXPECT_EQ(blocks[0].at<std::uint32_t>(16), encoded_bytes(packet(payload)));
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

}  // namespace
}  // namespace uib::net
