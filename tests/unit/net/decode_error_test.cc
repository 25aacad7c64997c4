// Each reason for which a frame is no packet, the order in which they are told, and frames from a random
// generator that must do no harm.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "net/wire/codec.h"
#include "net/wire/headers.h"
#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

/// UD SEND Only of 5 bytes; with a GRH the BTH starts at byte 48, else at 8.
Bytes valid_frame(bool global) {
    Packet packet;
    packet.lrh = {.dlid = 2, .slid = 1, .sl = 0, .vl = 3};
    packet.has_grh = global;
    packet.bth.opcode = opcode(Service::kUd, Operation::kSendOnly);
    packet.bth.pad = 3;
    const Bytes payload = hex("0102030405");
    packet.payload = payload;
    Bytes frame(encoded_bytes(packet));
    encode(packet, frame);
    return frame;
}

DecodeError error_of(std::span<const std::byte> frame, DecodeChecks checks = {}) {
    Packet packet;
    return decode(frame, packet, checks);
}

/// The error after `change` was made to the valid frame and its CRCs made right again.
template <typename Change>
DecodeError after(bool global, Change change) {
    Bytes frame = valid_frame(global);
    change(frame);
    repair_crcs(frame);
    return error_of(frame);
}

/// Makes the frame, without its CRCs, end after `end` bytes, and LRH:PktLen (and GRH:PayLen) fit.
void cut(Bytes& frame, std::size_t end) {
    const bool global = frame[1] == std::byte{3};
    frame.resize(end + 6);
    frame[5] = static_cast<std::byte>((end + 4) / 4);
    if (global) frame[13] = static_cast<std::byte>(end + 4 - 48);
}

TEST(DecodeErrors, ValidFramesAreTheStart) {
    EXPECT_EQ(error_of(valid_frame(false)), DecodeError::kNone);
    EXPECT_EQ(error_of(valid_frame(true)), DecodeError::kNone);
}

TEST(DecodeErrors, TooShortForItsHeaders) {
    EXPECT_EQ(error_of({}), DecodeError::kTooShort);
    EXPECT_EQ(error_of(Bytes(9)), DecodeError::kTooShort);
    EXPECT_EQ(after(false, [](Bytes& frame) { cut(frame, 20); }), DecodeError::kTooShort);  // no DETH
    EXPECT_EQ(after(true, [](Bytes& frame) { cut(frame, 64); }), DecodeError::kTooShort);   // half of it
    // No room for a BTH: the ICRC cannot be meant.
    Bytes frame = hex("00020002 00050001 04400000 00000000 00000000 0000");
    put_little_endian(std::span(frame).last(2), bitwise_crc16(std::span(frame).first(20)));
    EXPECT_EQ(error_of(frame), DecodeError::kTooShort);
    // A raw IPv6 packet with half a header.
    frame = hex("00010002 00050001 60000000 00041100 00000000 0000");
    put_little_endian(std::span(frame).last(2), bitwise_crc16(std::span(frame).first(20)));
    EXPECT_EQ(error_of(frame), DecodeError::kTooShort);
}

TEST(DecodeErrors, LinkVersion) {
    for (unsigned version = 1; version < 16; ++version) {
        const auto change = [&](Bytes& frame) { frame[0] |= static_cast<std::byte>(version); };
        EXPECT_EQ(after(false, change), DecodeError::kLinkVersion);
    }
}

TEST(DecodeErrors, LengthOfTheLrh) {
    EXPECT_EQ(after(false, [](Bytes& frame) { frame[5] = std::byte{9}; }), DecodeError::kLength);
    EXPECT_EQ(after(false, [](Bytes& frame) { frame[5] = std::byte{11}; }), DecodeError::kLength);
    EXPECT_EQ(after(false, [](Bytes& frame) { frame[4] = std::byte{1}; }), DecodeError::kLength);
    // A byte more than PktLen says, and not a whole number of words.
    EXPECT_EQ(after(false, [](Bytes& frame) { frame.emplace_back(); }), DecodeError::kLength);
    // C7-44: raw packets have 5 words at least.
    for (const auto& [words, error] : {std::pair{4, DecodeError::kLength}, {5, DecodeError::kNone}}) {
        Packet packet;
        packet.kind = PacketKind::kRawEthertype;
        const Bytes payload(static_cast<std::size_t>(words) * 4 - 12);
        packet.payload = payload;
        Bytes frame(encoded_bytes(packet));
        encode(packet, frame);
        EXPECT_EQ(error_of(frame), error);
    }
}

TEST(DecodeErrors, EveryBitIsUnderACrc) {
    for (const bool global : {false, true}) {
        const Bytes valid = valid_frame(global);
        for (std::size_t bit = 0; bit < valid.size() * 8; ++bit) {
            Bytes frame = valid;
            frame[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
            EXPECT_EQ(error_of(frame), DecodeError::kVcrc) << "bit " << bit;
        }
    }
}

TEST(DecodeErrors, InvariantCrc) {
    for (const bool global : {false, true}) {
        Bytes frame = valid_frame(global);
        frame[frame.size() - 12] ^= std::byte{1};  // payload
        put_little_endian(std::span(frame).last(2), bitwise_crc16(std::span(frame).first(frame.size() - 2)));
        EXPECT_EQ(error_of(frame), DecodeError::kIcrc);
        EXPECT_EQ(error_of(frame, {.icrc = false}), DecodeError::kNone);
        frame[0] ^= std::byte{0x10};
        EXPECT_EQ(error_of(frame, {.icrc = false}), DecodeError::kVcrc);
        EXPECT_EQ(error_of(frame, {.icrc = false, .vcrc = false}), DecodeError::kNone);
    }
}

TEST(DecodeErrors, TransportVersion) {
    for (unsigned version = 1; version < 16; ++version) {
        const auto change = [&](Bytes& frame) { frame[9] |= static_cast<std::byte>(version); };
        EXPECT_EQ(after(false, change), DecodeError::kTransportVersion);
    }
}

TEST(DecodeErrors, GlobalHeader) {
    EXPECT_EQ(after(true, [](Bytes& frame) { frame[8] = std::byte{0x40}; }), DecodeError::kGrhVersion);
    EXPECT_EQ(after(true, [](Bytes& frame) { frame[8] = std::byte{0x70}; }), DecodeError::kGrhVersion);
    EXPECT_EQ(after(true, [](Bytes& frame) { frame[14] = std::byte{0x11}; }), DecodeError::kGrhNextHeader);
    EXPECT_EQ(after(true, [](Bytes& frame) { frame[13] ^= std::byte{4}; }), DecodeError::kGrhLength);
    EXPECT_EQ(after(true, [](Bytes& frame) { frame[12] = std::byte{1}; }), DecodeError::kGrhLength);
}

TEST(DecodeErrors, RawPacketOfTheIbaTransport) {
    Packet packet;
    packet.kind = PacketKind::kRawIpv6;
    Bytes payload(40);
    payload[6] = std::byte{0x1B};
    packet.payload = payload;
    Bytes frame(encoded_bytes(packet));
    encode(packet, frame);
    EXPECT_EQ(error_of(frame), DecodeError::kRawTransport);
}

TEST(DecodeErrors, MorePaddingThanPayload) {
    EXPECT_EQ(after(false, [](Bytes& frame) { cut(frame, 28); }), DecodeError::kPadding);
    EXPECT_EQ(after(false,
                    [](Bytes& frame) {
                        cut(frame, 28);
                        frame[9] = std::byte{0x40};
                    }),
              DecodeError::kNone);
}

TEST(DecodeErrors, CrcsComeFirstThenTheLinkThenTheRest) {
    Bytes frame = valid_frame(true);
    frame[49] |= std::byte{1};  // BTH:TVer
    frame[14] = std::byte{0};   // GRH:NxtHdr
    repair_crcs(frame);
    EXPECT_EQ(error_of(frame), DecodeError::kGrhNextHeader);
    frame[8] = std::byte{0x50};  // GRH:IPVer
    repair_crcs(frame);
    EXPECT_EQ(error_of(frame), DecodeError::kGrhVersion);
    frame[5] = std::byte{1};  // LRH:PktLen
    repair_crcs(frame);
    EXPECT_EQ(error_of(frame), DecodeError::kLength);
    frame[0] |= std::byte{1};  // LRH:LVer
    repair_crcs(frame);
    EXPECT_EQ(error_of(frame), DecodeError::kLinkVersion);
    frame[70] ^= std::byte{1};
    put_little_endian(std::span(frame).last(2), bitwise_crc16(std::span(frame).first(frame.size() - 2)));
    EXPECT_EQ(error_of(frame), DecodeError::kIcrc);
    frame.back() ^= std::byte{1};
    EXPECT_EQ(error_of(frame), DecodeError::kVcrc);
}

TEST(DecodeErrors, WhatWasReadBeforeTheErrorIsThere) {
    Bytes frame = valid_frame(true);
    frame[49] |= std::byte{1};
    repair_crcs(frame);
    frame.back() ^= std::byte{1};
    Packet packet;
    ASSERT_EQ(decode(frame, packet), DecodeError::kVcrc);
    EXPECT_EQ(packet.lrh.slid, 1);
    EXPECT_EQ(packet.lrh.vl, 3);
    repair_crcs(frame);
    ASSERT_EQ(decode(frame, packet), DecodeError::kTransportVersion);
    EXPECT_EQ(packet.bth.opcode, 0x64);
    EXPECT_TRUE(packet.payload.empty());
}

TEST(DecodeErrors, EachHasAName) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < kDecodeErrorCount; ++i) names.insert(name_of(static_cast<DecodeError>(i)));
    EXPECT_EQ(names.size(), kDecodeErrorCount);
    EXPECT_EQ(names.count("unknown"), 0U);
    EXPECT_STREQ(name_of(DecodeError::kIcrc), "icrc");
}

TEST(DecodeErrors, TransportPartAlone) {
    Packet packet;
    EXPECT_EQ(decode_transport(Bytes(11), packet), DecodeError::kTooShort);
    EXPECT_EQ(decode_transport(hex("11400000 00000001 00000002 1F0003"), packet), DecodeError::kTooShort);
    EXPECT_EQ(decode_transport(hex("11400000 00000001 00000002 1F000003"), packet), DecodeError::kNone);
    EXPECT_EQ(packet.aeth.msn, 3U);
    EXPECT_EQ(decode_transport(hex("11600000 00000001 00000002 1F000003"), packet), DecodeError::kPadding);
    EXPECT_EQ(decode_transport(hex("11420000 00000001 00000002 1F000003"), packet),
              DecodeError::kTransportVersion);
}

// Under the sanitizers: whatever arrives, decode() reads nothing outside the frame, and what it accepts is
// written again as the same frame but for reserved bits.
TEST(DecodeErrors, RandomFramesDoNoHarm) {
    std::mt19937 random(20240611);
    std::set<DecodeError> seen;
    for (int round = 0; round < 60000; ++round) {
        Bytes frame = valid_frame(random() % 2 != 0);
        const unsigned kind = random() % 4;
        if (kind == 0) {
            frame.resize(random() % 120);
            for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
        } else {
            if (kind == 1) frame.resize(random() % (frame.size() + 1));
            for (unsigned i = random() % 4; i > 0 && !frame.empty(); --i)
                frame[random() % frame.size()] = static_cast<std::byte>(random());
        }
        // Let most of them through to the later checks.
        if (frame.size() >= 10) {
            if (random() % 8 != 0) frame[0] &= std::byte{0xF0};
            if (random() % 8 != 0) frame[4] = std::byte{0};
            if (random() % 8 != 0) frame[5] = static_cast<std::byte>((frame.size() - 2) / 4);
        }
        const DecodeChecks checks{.icrc = random() % 2 != 0, .vcrc = random() % 2 != 0};
        if (frame.size() >= 60 && random() % 2 != 0) repair_crcs(frame);
        // An allocation of exactly this size, so that the sanitizer sees one byte too many.
        const std::vector<std::byte> exact(frame);
        Packet packet;
        const DecodeError error = decode(exact, packet, checks);
        seen.insert(error);
        EXPECT_FALSE(describe(packet).empty());
        if (error != DecodeError::kNone) continue;
        ASSERT_LE(encoded_bytes(packet), exact.size());
        Bytes again(encoded_bytes(packet));
        encode(packet, again);
        Packet same;
        ASSERT_EQ(decode(again, same), DecodeError::kNone);
        ASSERT_EQ(describe(same), describe(packet));
    }
    EXPECT_EQ(seen.size(), kDecodeErrorCount);
}

}  // namespace
}  // namespace uib::net
