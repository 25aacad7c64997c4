// Management datagrams against bytes written by hand after link-and-management-tables.md, sections 14 and 15.
#include "net/wire/mad.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

Bytes built(const Smp& smp) {
    Bytes bytes(kMadBytes, std::byte{0xEE});
    build_smp(smp, std::span<std::byte, kMadBytes>(bytes));
    return bytes;
}

void put(Bytes& bytes, std::size_t at, const Bytes& what) {
    std::copy(what.begin(), what.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

TEST(Mad, CommonHeaderBothWays) {
    const MadHeader header{.base_version = 1,
                           .management_class = kClassPerformance,
                           .class_version = 2,
                           .method = MadMethod::kGetResponse,
                           .status = 0x001C,
                           .class_specific = 0xABCD,
                           .transaction_id = 0x0102030405060708,
                           .attribute_id = 0x0012,
                           .attribute_modifier = 0xDEADBEEF};
    Bytes bytes(kMadHeaderBytes, std::byte{0xEE});
    build_mad_header(header, std::span<std::byte, kMadHeaderBytes>(bytes));
    EXPECT_EQ(bytes, hex("01040281 001CABCD 0102030405060708 00120000 DEADBEEF"));
    bytes[18] = std::byte{0xFF};  // reserved
    const MadHeader read = parse_mad_header(std::span<const std::byte, kMadHeaderBytes>(bytes));
    EXPECT_EQ(read.base_version, 1);
    EXPECT_EQ(read.management_class, 0x04);
    EXPECT_EQ(read.class_version, 2);
    EXPECT_EQ(read.method, MadMethod::kGetResponse);
    EXPECT_TRUE(read.is_response());
    EXPECT_EQ(read.status, 0x001C);
    EXPECT_EQ(read.class_specific, 0xABCD);
    EXPECT_EQ(read.transaction_id, 0x0102030405060708U);
    EXPECT_EQ(read.attribute_id, 0x0012);
    EXPECT_EQ(read.attribute_modifier, 0xDEADBEEFU);
}

Smp lid_routed() {
    Smp smp;
    smp.header.management_class = kClassSubnLidRouted;
    smp.header.method = MadMethod::kSet;
    smp.header.attribute_id = 0x0015;
    smp.header.transaction_id = 0x77;
    smp.mkey = 0x8877665544332211;
    smp.data.front() = std::byte{0xAA};
    smp.data.back() = std::byte{0xBB};
    return smp;
}

TEST(Mad, LidRoutedSmpBothWays) {
    Bytes expected(kMadBytes);
    put(expected, 0, hex("01010102 00000000 0000000000000077 00150000 00000000 8877665544332211"));
    expected[64] = std::byte{0xAA};
    expected[127] = std::byte{0xBB};
    EXPECT_EQ(built(lid_routed()), expected);
    Smp read;
    ASSERT_EQ(parse_smp(expected, read), MadError::kNone);
    EXPECT_FALSE(read.is_directed());
    EXPECT_FALSE(read.header.is_response());
    EXPECT_EQ(read.mkey, 0x8877665544332211U);
    EXPECT_EQ(read.data, lid_routed().data);
}

Smp directed() {
    Smp smp = lid_routed();
    smp.header.management_class = kClassSubnDirected;
    smp.header.method = MadMethod::kGetResponse;
    smp.header.status = 0x000C;
    smp.route.returning = true;
    smp.route.hop_pointer = 3;
    smp.route.hop_count = 2;
    smp.route.slid = 0x1234;
    smp.route.dlid = 0xFFFF;
    smp.route.initial_path[1] = 5;
    smp.route.initial_path[2] = 6;
    smp.route.initial_path[63] = 7;
    smp.route.return_path[1] = 8;
    smp.route.return_path[63] = 9;
    return smp;
}

TEST(Mad, DirectedRouteSmpBothWays) {
    Bytes expected(kMadBytes);
    put(expected, 0, hex("01810181 800C0302 0000000000000077 00150000 00000000 8877665544332211 1234FFFF"));
    expected[64] = std::byte{0xAA};
    expected[127] = std::byte{0xBB};
    expected[129] = std::byte{5};
    expected[130] = std::byte{6};
    expected[191] = std::byte{7};
    expected[193] = std::byte{8};
    expected[255] = std::byte{9};
    EXPECT_EQ(built(directed()), expected);
    Smp read;
    ASSERT_EQ(parse_smp(expected, read), MadError::kNone);
    EXPECT_TRUE(read.is_directed());
    EXPECT_TRUE(read.route.returning);
    EXPECT_EQ(read.header.status, 0x000C);
    EXPECT_EQ(read.route.hop_pointer, 3);
    EXPECT_EQ(read.route.hop_count, 2);
    EXPECT_EQ(read.route.slid, 0x1234);
    EXPECT_EQ(read.route.dlid, 0xFFFF);
    EXPECT_EQ(read.route.initial_path, directed().route.initial_path);
    EXPECT_EQ(read.route.return_path, directed().route.return_path);
    read.route.returning = false;
    EXPECT_EQ(built(read)[4], std::byte{0});
}

TEST(Mad, ReasonsToDrop) {
    Smp read;
    Bytes bytes = built(directed());
    EXPECT_EQ(parse_smp(std::span(bytes).first(255), read), MadError::kLength);
    EXPECT_EQ(parse_smp({}, read), MadError::kLength);
    bytes.emplace_back();
    EXPECT_EQ(parse_smp(bytes, read), MadError::kLength);
    bytes.pop_back();
    bytes[7] = std::byte{63};
    EXPECT_EQ(parse_smp(bytes, read), MadError::kNone);
    bytes[7] = std::byte{64};
    EXPECT_EQ(parse_smp(bytes, read), MadError::kHopCount);
    EXPECT_FALSE(describe(read).empty());
    for (unsigned management_class = 0; management_class < 256; ++management_class) {
        bytes[1] = static_cast<std::byte>(management_class);
        bytes[7] = std::byte{0};
        const bool subnet = management_class == 0x01 || management_class == 0x81;
        EXPECT_EQ(parse_smp(bytes, read), subnet ? MadError::kNone : MadError::kClass);
        MadHeader header;
        EXPECT_EQ(parse_mad(bytes, header), MadError::kNone);
        EXPECT_EQ(header.management_class, management_class);
    }
    // Versions are not judged here: they get an answer.
    bytes = built(lid_routed());
    bytes[0] = bytes[2] = std::byte{9};
    EXPECT_EQ(parse_smp(bytes, read), MadError::kNone);
    EXPECT_EQ(read.header.base_version, 9);
}

TEST(Mad, Text) {
    EXPECT_EQ(describe(lid_routed()), "MAD class 0x01 Set attribute 0x0015 modifier 0x0 TID 0x77");
    EXPECT_EQ(describe(directed()),
              "MAD class 0x81 GetResp attribute 0x0015 modifier 0x0 TID 0x77 status 0x000c, "
              "returning hop 3 of 2, path 5,6");
    MadHeader odd;
    odd.method = static_cast<MadMethod>(0x44);
    EXPECT_NE(describe(odd).find("method 0x44"), std::string::npos);
    EXPECT_STREQ(name_of(MadError::kHopCount), "hop_count");
}

}  // namespace
}  // namespace uib::net
