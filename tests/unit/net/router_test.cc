// The router's rules by ids of conformance-network.tsv, on packets as values and as bytes.
#include "net/fabric/router.h"

#include <gtest/gtest.h>

#include "net/wire/codec.h"
#include "tests/conformance/rows.h"
#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

constexpr std::uint64_t kPrefixA = 0xFEC0000000000001;
constexpr std::uint64_t kPrefixB = 0xFEC0000000000002;

Gid gid_of(std::uint64_t prefix, std::uint8_t id) {
    Gid gid{};
    for (std::size_t i = 0; i < 8; ++i) gid[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
    gid[15] = id;
    return gid;
}

class RouterTest : public ::testing::Test {
  protected:
    RouterTest() {
        router_.set_lid(a_, 7);
        router_.set_lid(b_, 0x21);
        router_.set_port(a_, gid_of(kPrefixA, 1), 3);
        router_.set_port(b_, gid_of(kPrefixB, 2), 0x24);
    }

    Packet packet(std::uint8_t hop_limit) {
        Packet made;
        made.lrh = {.dlid = 7, .slid = 3, .sl = 5, .vl = 2};
        made.has_grh = true;
        made.grh = {.sgid = gid_of(kPrefixA, 1),
                    .dgid = gid_of(kPrefixB, 2),
                    .flow_label = 0x12345,
                    .traffic_class = 0x5A,
                    .hop_limit = hop_limit};
        made.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
        made.bth.dest_qp = 0x44;
        made.bth.psn = 0x123456;
        made.bth.pad = 3;
        made.payload = payload_;
        return made;
    }

    Router router_;
    Router::InterfaceIndex a_ = router_.add_interface(kPrefixA);
    Router::InterfaceIndex b_ = router_.add_interface(kPrefixB);
    std::byte payload_[5] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
};

TEST_F(RouterTest, C8_16_hop_limit_0_and_1_are_discarded_and_others_count_down) {
    ROWS("C8-16");
    for (const std::uint8_t limit : {0, 1}) {
        Packet in = packet(limit);
        EXPECT_FALSE(router_.forward(a_, in));
    }
    EXPECT_EQ(router_.dropped(RouterDrop::kHopLimit), 2U);
    for (const std::uint8_t limit : {2, 64, 255}) {
        Packet in = packet(limit);
        EXPECT_EQ(router_.forward(a_, in), b_);
        EXPECT_EQ(in.grh.hop_limit, limit - 1);
    }
    EXPECT_EQ(router_.forwarded(), 3U);
}

TEST_F(RouterTest, U8_4_lids_are_replaced) {
    ROWS("U8-4");
    Packet in = packet(64);
    ASSERT_EQ(router_.forward(a_, in), b_);
    EXPECT_EQ(in.lrh.slid, 0x21);
    EXPECT_EQ(in.lrh.dlid, 0x24);
}

TEST_F(RouterTest, C8_12_to_C8_18_and_U8_3_the_rest_of_the_bytes_stays_and_with_it_the_icrc) {
    ROWS("C8-12", "C8-13", "C8-14", "C8-15", "C8-17", "C8-18", "U8-3");
    Packet in = packet(64);
    Bytes before(encoded_bytes(in)), after(encoded_bytes(in));
    encode(in, before);
    ASSERT_EQ(router_.forward(a_, in), b_);
    ASSERT_EQ(encode(in, after), before.size());
    // GRH: IPVer, TClass, FlowLabel, PayLen, NxtHdr (bytes 8 to 14); SGID, DGID, BTH, payload, ICRC (16 on).
    EXPECT_TRUE(std::equal(before.begin() + 8, before.begin() + 15, after.begin() + 8));
    EXPECT_TRUE(std::equal(before.begin() + 16, before.end() - 2, after.begin() + 16));
    EXPECT_EQ(after[15], std::byte{63});
    // VL, SL and length of the LRH, too.
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + 2, after.begin()));
    // The VCRC is made anew: it is right for the new bytes, and the old one would not be.
    Packet out;
    EXPECT_EQ(decode(after, out), DecodeError::kNone);
    std::copy(before.end() - 2, before.end(), after.end() - 2);
    EXPECT_EQ(decode(after, out), DecodeError::kVcrc);
}

TEST_F(RouterTest, o8_2_the_flow_label_is_left_unchanged) {
    ROWS("o8-2");
    Packet in = packet(9);
    ASSERT_TRUE(router_.forward(a_, in));
    EXPECT_EQ(in.grh.flow_label, 0x12345U);
    in = packet(9);
    in.grh.flow_label = 0;
    ASSERT_TRUE(router_.forward(a_, in));
    EXPECT_EQ(in.grh.flow_label, 0U);
}

TEST_F(RouterTest, U8_2_subnet_management_does_not_pass) {
    ROWS("U8-2");
    Packet in = packet(64);
    in.lrh.vl = 15;
    EXPECT_FALSE(router_.forward(a_, in));
    in = packet(64);
    in.bth.dest_qp = 0;
    EXPECT_FALSE(router_.forward(a_, in));
    EXPECT_EQ(router_.dropped(RouterDrop::kManagement), 2U);
}

TEST_F(RouterTest, U8_1_the_way_back_is_there) {
    ROWS("U8-1");
    Packet in = packet(64);
    ASSERT_TRUE(router_.forward(a_, in));
    std::swap(in.grh.sgid, in.grh.dgid);
    std::swap(in.lrh.slid, in.lrh.dlid);
    EXPECT_EQ(router_.forward(b_, in), a_);
    EXPECT_EQ(in.lrh.slid, 7);
    EXPECT_EQ(in.lrh.dlid, 3);
}

TEST_F(RouterTest, WhatHasNoWayIsCountedByCause) {
    Packet in = packet(64);
    in.has_grh = false;
    EXPECT_FALSE(router_.forward(a_, in));
    EXPECT_EQ(router_.dropped(RouterDrop::kNoGrh), 1U);
    in = packet(64);
    in.grh.dgid = gid_of(kPrefixB, 9);
    EXPECT_FALSE(router_.forward(a_, in));
    EXPECT_EQ(router_.dropped(RouterDrop::kNoPort), 1U);
    in.grh.dgid = gid_of(kPrefixA, 1);
    EXPECT_FALSE(router_.forward(a_, in));
    EXPECT_EQ(router_.dropped(RouterDrop::kNoSubnet), 1U);
    in.grh.dgid[0] = 0xFF;
    EXPECT_FALSE(router_.forward(a_, in));
    EXPECT_EQ(router_.dropped(RouterDrop::kMulticast), 1U);
    router_.set_port(b_, gid_of(kPrefixB, 2), 0);
    in = packet(64);
    EXPECT_FALSE(router_.forward(a_, in));
    EXPECT_EQ(router_.dropped(RouterDrop::kNoPort), 2U);
    EXPECT_EQ(router_.forwarded(), 0U);
}

}  // namespace
}  // namespace uib::net
