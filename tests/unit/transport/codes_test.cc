// Tables: PSN circle, credit codes, RNR timer, acknowledge timeout, GRH bytes.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/transport/aeth.h"
#include "engine/transport/credits.h"
#include "engine/transport/psn.h"
#include "engine/transport/rnr_timer.h"
#include "net/wire/packet.h"

namespace uib::transport {
namespace {

TEST(Psn, wraps_at_24_bits) {
    EXPECT_EQ(psn_add(0xFFFFFF, 1), 0U);
    EXPECT_EQ(psn_distance(0xFFFFFE, 3), 5U);
    EXPECT_TRUE(psn_before(0xFFFFFF, 0));
    EXPECT_FALSE(psn_before(0, 0xFFFFFF));
    EXPECT_FALSE(psn_before(5, 5));
}

TEST(CreditCodes, codes_are_those_of_table_50) {
    constexpr std::uint32_t kValues[] = {0,    1,    2,    3,    4,    6,     8,     12,    16,   24,   32,
                                         48,   64,   96,   128,  192,  256,   384,   512,   768,  1024, 1536,
                                         2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
    for (std::uint8_t code = 0; code < 31; ++code) {
        EXPECT_EQ(decode_credits(code), kValues[code]);
        EXPECT_EQ(encode_credits(kValues[code]), code);
        if (code > 1) {
            EXPECT_EQ(encode_credits(kValues[code] - 1), code - 1);
        }
    }
    EXPECT_EQ(encode_credits(5), 4);
    EXPECT_EQ(encode_credits(1'000'000), 30);
}

TEST(RnrTimer, waits_are_those_of_table_48) {
    constexpr double kMilliseconds[] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                        0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                        2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                        40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
    for (std::uint8_t code = 0; code < 32; ++code)
        EXPECT_EQ(rnr_wait(code), static_cast<Time>(std::llround(kMilliseconds[code] * 1e6))) << +code;
    EXPECT_EQ(rnr_wait(0x20 | 12), rnr_wait(12));  // a whole syndrome
}

TEST(AckTimeout, lies_between_one_and_four_times_t_tr) {
    EXPECT_EQ(ack_timeout(0), kNever);
    for (std::uint8_t code = kSmallestAckTimeout; code < 32; ++code) {
        const Time t_tr = Time{4096} << code;
        EXPECT_GE(ack_timeout(code), t_tr);
        EXPECT_LE(ack_timeout(code), 4 * t_tr);
    }
    EXPECT_EQ(ack_timeout(1), ack_timeout(kSmallestAckTimeout));
}

TEST(Aeth, knows_reserved_syndromes) {
    EXPECT_FALSE(aeth_reserved(0x1F));
    EXPECT_FALSE(aeth_reserved(0x3F));
    EXPECT_TRUE(aeth_reserved(0x40));
    EXPECT_FALSE(aeth_reserved(0x64));
    EXPECT_TRUE(aeth_reserved(0x65));
}

TEST(Grh, is_encoded_as_ipv6_header) {
    net::Grh grh;
    grh.sgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    grh.dgid = {0xFF, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    grh.flow_label = 0xABCDE;
    grh.traffic_class = 0x5A;
    grh.hop_limit = 64;
    const auto bytes = net::encode_grh(grh, 0x0123);
    const unsigned char head[] = {0x65, 0xAA, 0xBC, 0xDE, 0x01, 0x23, 0x1B, 64, 0xFE, 0x80};
    for (std::size_t i = 0; i < sizeof head; ++i) EXPECT_EQ(bytes[i], std::byte{head[i]}) << i;
    EXPECT_EQ(bytes[23], std::byte{8});
    EXPECT_EQ(bytes[24], std::byte{0xFF});
    EXPECT_EQ(bytes[39], std::byte{9});
}

}  // namespace
}  // namespace uib::transport
