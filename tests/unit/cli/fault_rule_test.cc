// Fault rules as people write them.
#include "engine/cli/fault_rule.h"

#include <gtest/gtest.h>

#include "engine/cli/environment.h"
#include "net/tap/fault_rule.h"
#include "net/wire/opcode.h"
#include "tests/simulation/random.h"

namespace uib::cli {
namespace {

using net::FaultAction;

std::uint32_t value(FaultAction action) {
    return static_cast<std::uint32_t>(action);
}

/// The message of the Failure, or "" if there is none.
std::string refusal(const FaultText& text) {
    try {
        fault_request(text);
        return "";
    } catch (const Failure& failure) {
        return failure.what();
    }
}

TEST(FaultRule, BareActionMatchesEveryPacketThatIsSent) {
    const ipc::AddFaultRequest request = fault_request({.action = "drop"});
    EXPECT_EQ(request.action, value(FaultAction::kDrop));
    EXPECT_EQ(request.flags, ipc::kFaultOutbound);
    EXPECT_EQ(request.device[0], '\0');
    EXPECT_EQ(request.probability, 1.0);
    EXPECT_EQ(request.seed, 1U);
    EXPECT_EQ(request.skip, 0U);
}

TEST(FaultRule, EveryPartIsTaken) {
    const ipc::AddFaultRequest request = fault_request({.action = "drop",
                                                        .device = "uib1",
                                                        .direction = "both",
                                                        .qp = "0x11",
                                                        .opcode = "rc-send-only",
                                                        .psn = "0xFFFFFE-1",
                                                        .count = "3",
                                                        .skip = "4",
                                                        .probability = "2.5%",
                                                        .seed = "18446744073709551615"});
    EXPECT_STREQ(request.device, "uib1");
    EXPECT_EQ(request.flags, ipc::kFaultOutbound | ipc::kFaultInbound | ipc::kFaultQp | ipc::kFaultOpcode |
                                 ipc::kFaultPsn | ipc::kFaultCount);
    EXPECT_EQ(request.qp, 0x11U);
    EXPECT_EQ(request.opcode, 0x04U);
    EXPECT_EQ(request.psn_first, 0xFFFFFEU);
    EXPECT_EQ(request.psn_last, 1U);
    EXPECT_EQ(request.count, 3U);
    EXPECT_EQ(request.skip, 4U);
    EXPECT_DOUBLE_EQ(request.probability, 0.025);
    EXPECT_EQ(request.seed, ~std::uint64_t{0});
}

TEST(FaultRule, OnePsnIsARangeOfOne) {
    const ipc::AddFaultRequest request = fault_request({.action = "drop", .psn = "104"});
    EXPECT_EQ(request.psn_first, 104U);
    EXPECT_EQ(request.psn_last, 104U);
}

TEST(FaultRule, AmountsHaveUnits) {
    EXPECT_EQ(fault_request({.action = "delay", .amount = "250us"}).amount, 250'000U);
    EXPECT_EQ(fault_request({.action = "delay", .amount = "1.5ms"}).amount, 1'500'000U);
    EXPECT_EQ(fault_request({.action = "delay", .amount = "2s"}).amount, 2'000'000'000U);
    EXPECT_EQ(fault_request({.action = "rate", .amount = "10Mbit"}).amount, 1'250'000U);
    EXPECT_EQ(fault_request({.action = "rate", .amount = "2.5gbit/s"}).amount, 312'500'000U);
    EXPECT_EQ(fault_request({.action = "reorder", .amount = "5"}).amount, 5U);
    EXPECT_EQ(fault_request({.action = "reorder"}).amount, 1U);
}

TEST(FaultRule, CorruptIsABitOrAField) {
    EXPECT_EQ(fault_request({.action = "corrupt"}).action, value(FaultAction::kCorruptBit));
    const ipc::AddFaultRequest request = fault_request({.action = "corrupt", .field = "rkey"});
    EXPECT_EQ(request.action, value(FaultAction::kCorruptField));
    EXPECT_EQ(request.field, static_cast<std::uint32_t>(net::FaultField::kRkey));
}

TEST(FaultRule, NamesOfActionsAndFieldsBelongToTheirValues) {
    EXPECT_STREQ(net::kFaultActionNames[value(FaultAction::kLinkDown)], "link-down");
    EXPECT_STREQ(net::kFaultActionNames[value(FaultAction::kCorruptField)], "corrupt-field");
    EXPECT_STREQ(net::kFaultFieldNames[static_cast<std::size_t>(net::FaultField::kAck)], "ack");
    EXPECT_STREQ(net::kFaultFieldNames[static_cast<std::size_t>(net::FaultField::kLength)], "length");
}

TEST(FaultRule, OpcodesByNameOrNumber) {
    EXPECT_EQ(parse_opcode("rc-send-only"), 0x04);
    EXPECT_EQ(parse_opcode("RC SEND Only"), 0x04);
    EXPECT_EQ(parse_opcode("send-only"), 0x04);
    EXPECT_EQ(parse_opcode("ud-send-only"), 0x64);
    EXPECT_EQ(parse_opcode("uc_rdma_write_first"), 0x26);
    EXPECT_EQ(parse_opcode("acknowledge"), 0x11);
    EXPECT_EQ(parse_opcode("xrc-fetchadd"), 0xB4);
    EXPECT_EQ(parse_opcode("0xFF"), 0xFF);
    EXPECT_THROW(parse_opcode("0x100"), Failure);
    EXPECT_THROW(parse_opcode("rc-reserved"), Failure);
    EXPECT_THROW(parse_opcode("ud-rdma-write-only"), Failure);
}

TEST(FaultRule, MistakesAreNamed) {
    EXPECT_NE(refusal({.action = "loose"}).find("no action 'loose'; it is one of drop, duplicate"),
              std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .direction = "up"}).find("no direction 'up'"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .probability = "1.5"}).find("no probability"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .probability = "101%"}).find("no probability"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .probability = "nan"}).find("no probability"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .psn = "0x1000000"}).find("no packet sequence number"),
              std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .psn = "5-"}).find("no packet sequence number"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .qp = "five"}).find("no queue pair number"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .count = "-1"}).find("no count"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .amount = "5"}).find("--amount does not go with drop"),
              std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .field = "psn"}).find("--field goes with corrupt-field"),
              std::string::npos);
    EXPECT_NE(refusal({.action = "corrupt-field"}).find("needs --field"), std::string::npos);
    EXPECT_NE(refusal({.action = "corrupt", .field = "psm"}).find("no field 'psm'"), std::string::npos);
    EXPECT_NE(refusal({.action = "delay"}).find("delay needs --amount"), std::string::npos);
    EXPECT_NE(refusal({.action = "delay", .amount = "5"}).find("no time"), std::string::npos);
    EXPECT_NE(refusal({.action = "delay", .amount = "0ms"}).find("at most 60s"), std::string::npos);
    EXPECT_NE(refusal({.action = "delay", .amount = "61s"}).find("at most 60s"), std::string::npos);
    EXPECT_NE(refusal({.action = "rate", .amount = "10MB"}).find("no rate"), std::string::npos);
    EXPECT_NE(refusal({.action = "rate", .amount = "1e30gbit"}).find("no rate"), std::string::npos);
    EXPECT_NE(refusal({.action = "reorder", .amount = "5000"}).find("no number of packets"),
              std::string::npos);
    EXPECT_NE(refusal({.action = "link-down", .qp = "3"}).find("--device only"), std::string::npos);
    EXPECT_NE(refusal({.action = "drop", .device = std::string(100, 'd')}).find("no device"),
              std::string::npos);
}

// Whatever is written: a rule within its ranges, or a Failure.
TEST(FaultRule, AnyTextIsARuleOrRefused) {
    simulation::Random random(9);
    const std::vector<std::string> words = {"drop",
                                            "duplicate",
                                            "reorder",
                                            "delay",
                                            "corrupt",
                                            "corrupt-bit",
                                            "rate",
                                            "link-down",
                                            "corrupt-field",
                                            "psn",
                                            "payload",
                                            "rkey",
                                            "in",
                                            "out",
                                            "both",
                                            "0x",
                                            "0xFFFFFF",
                                            "16777215",
                                            "-1",
                                            "1-2",
                                            "10ms",
                                            "250us",
                                            "2.5gbit/s",
                                            "1e300s",
                                            "1e99gbit",
                                            "nan",
                                            "inf",
                                            "5%",
                                            "1e-9",
                                            "rc-send-only",
                                            "0x1FF",
                                            "uib0",
                                            "",
                                            "18446744073709551616"};
    const auto text = [&] {
        std::string made = random.pick(words);
        for (std::uint64_t i = random.chance(0.3) ? random.draw(1, 3) : 0; i > 0; --i)
            if (!made.empty()) made[random.draw(0, made.size() - 1)] = static_cast<char>(random.next());
        return made;
    };
    unsigned rules = 0;
    unsigned refused = 0;
    for (int round = 0; round < 30'000; ++round) {
        FaultText rule{.action = random.chance(0.8) ? words[random.draw(0, 8)] : text(),
                       .direction = random.chance(0.8) ? "out" : text()};
        for (std::string FaultText::*part :
             {&FaultText::device, &FaultText::qp, &FaultText::opcode, &FaultText::psn, &FaultText::count,
              &FaultText::skip, &FaultText::probability, &FaultText::seed, &FaultText::amount,
              &FaultText::field})
            if (random.chance(0.15)) rule.*part = text();
        try {
            const ipc::AddFaultRequest request = fault_request(rule);
            ++rules;
            ASSERT_LT(request.action, net::kFaultActionNames.size());
            ASSERT_LT(request.field, net::kFaultFieldNames.size());
            ASSERT_TRUE(request.probability >= 0 && request.probability <= 1);
            ASSERT_LE(request.qp | request.psn_first | request.psn_last, 0xFFFFFFU);
            const auto action = static_cast<FaultAction>(request.action);
            if (action == FaultAction::kDelay) {
                ASSERT_TRUE(request.amount > 0 && request.amount <= net::kFaultDelayMax);
            }
            if (action == FaultAction::kRate) {
                ASSERT_TRUE(request.amount > 0 && request.amount < std::uint64_t{1} << 63) << rule.amount;
            }
        } catch (const Failure& failure) {
            ++refused;
            ASSERT_FALSE(std::string(failure.what()).empty());
        }
    }
    EXPECT_GT(rules, 1000U);
    EXPECT_GT(refused, 1000U);
}

TEST(FaultRule, AmountsAreShownAsTheyAreWritten) {
    EXPECT_EQ(amount_text("delay", 250'000), "250us");
    EXPECT_EQ(amount_text("delay", 1'500'000'000), "1.5s");
    EXPECT_EQ(amount_text("rate", 1'250'000), "10Mbit");
    EXPECT_EQ(amount_text("reorder", 3), "3");
}

}  // namespace
}  // namespace uib::cli
