#include "net/tap/fault_injector.h"

#include <gtest/gtest.h>

#include <array>

#include "net/wire/codec.h"
#include "net/wire/opcode_table.h"

namespace uib::net {
namespace {

constexpr Time kMillisecond = 1'000'000;

Packet packet(std::uint32_t psn, std::uint32_t qp = 5) {
    Packet out;
    out.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
    out.bth.psn = psn;
    out.bth.dest_qp = qp;
    return out;
}

class Faults : public ::testing::Test {
  protected:
    void send(std::uint32_t psn, std::uint32_t qp = 5, bool outbound = true, std::uint32_t port = 0) {
        injector.pass(now, port, outbound, packet(psn, qp), [&](const Packet& p) { out.push_back(p); });
    }
    void release() {
        injector.release(now, [&](std::uint32_t, bool, const Packet& p) { out.push_back(p); });
    }
    [[nodiscard]] std::vector<std::uint32_t> psns() const {
        std::vector<std::uint32_t> list;
        for (const Packet& p : out) list.push_back(p.bth.psn);
        return list;
    }
    using Psns = std::vector<std::uint32_t>;

    FaultTotals totals;
    FaultInjector injector{totals};
    Time now = 1000;
    std::vector<Packet> out;
};

TEST_F(Faults, WithoutRulesEverythingPasses) {
    for (std::uint32_t i = 0; i < 3; ++i) send(i);
    EXPECT_EQ(psns(), (Psns{0, 1, 2}));
    EXPECT_TRUE(injector.empty());
}

TEST_F(Faults, DropByQpCountAndSkip) {
    const std::uint32_t id = injector.add({.qp = 7, .skip = 1, .count = 2});
    for (std::uint32_t i = 0; i < 6; ++i) send(i, 7);
    send(9, 5);
    EXPECT_EQ(psns(), (Psns{0, 3, 4, 5, 9}));
    const auto rules = injector.rules();
    ASSERT_EQ(rules.size(), 1U);
    EXPECT_EQ(rules[0].id, id);
    EXPECT_EQ(rules[0].matched, 6U);
    EXPECT_EQ(rules[0].fired, 2U);
    EXPECT_TRUE(injector.remove(id));
    EXPECT_FALSE(injector.remove(id));
    EXPECT_NE(injector.add({}), id);
}

TEST_F(Faults, DirectionPortAndOpcode) {
    injector.add({.port = 1, .outbound = false, .inbound = true, .opcode = packet(0).bth.opcode});
    send(0, 5, true, 1);
    send(1, 5, false, 1);
    send(2, 5, false, 0);
    EXPECT_EQ(psns(), (Psns{0, 2}));
}

TEST_F(Faults, PsnRangeMayWrap) {
    injector.add({.psn_first = 0xFFFFFE, .psn_last = 1});
    for (const std::uint32_t psn : {0xFFFFFDU, 0xFFFFFEU, 0xFFFFFFU, 0U, 1U, 2U}) send(psn);
    EXPECT_EQ(psns(), (Psns{0xFFFFFD, 2}));
}

TEST_F(Faults, ProbabilityIsKeptAndRepeatable) {
    Psns first;
    for (int round = 0; round < 2; ++round) {
        FaultInjector fresh(totals);
        fresh.add({.probability = 0.3, .seed = 42});
        Psns passed;
        for (std::uint32_t i = 0; i < 10000; ++i)
            fresh.pass(now, 0, true, packet(i), [&](const Packet& p) { passed.push_back(p.bth.psn); });
        EXPECT_NEAR(static_cast<double>(passed.size()), 7000, 150);
        if (round == 0) first = passed;
        if (round == 1) {
            EXPECT_EQ(passed, first);
        }
    }
}

TEST_F(Faults, DuplicateAndDelay) {
    injector.add({.count = 1, .action = FaultAction::kDuplicate});
    injector.add({.count = 1, .action = FaultAction::kDelay, .amount = kMillisecond});
    send(0);
    send(1);
    send(2);
    EXPECT_EQ(psns(), (Psns{0, 0, 2}));
    EXPECT_EQ(injector.next_deadline(), now + kMillisecond);
    release();
    EXPECT_EQ(out.size(), 3U);
    now += kMillisecond;
    release();
    EXPECT_EQ(psns(), (Psns{0, 0, 2, 1}));
    EXPECT_EQ(injector.next_deadline(), kNoDeadline);
}

TEST_F(Faults, ReorderLetsPacketsPassOrASecond) {
    injector.add({.count = 1, .action = FaultAction::kReorder, .amount = 2});
    send(0);
    send(1);
    release();
    EXPECT_EQ(psns(), (Psns{1}));
    send(2);
    release();
    EXPECT_EQ(psns(), (Psns{1, 2, 0}));
    injector.add({.count = 1, .action = FaultAction::kReorder, .amount = 5});
    send(3);
    EXPECT_EQ(out.size(), 3U);
    now = injector.next_deadline();
    release();
    EXPECT_EQ(psns().back(), 3U);
}

TEST_F(Faults, HeldPacketsOwnTheirPayload) {
    injector.add({.count = 1, .action = FaultAction::kDelay, .amount = 1});
    std::vector<std::byte> payload(8, std::byte{7});
    Packet carried = packet(1);
    carried.payload = payload;
    injector.pass(now, 0, true, carried, [](const Packet&) {});
    std::fill(payload.begin(), payload.end(), std::byte{0});
    ++now;
    release();
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].payload.size(), 8U);
    EXPECT_EQ(out[0].payload[7], std::byte{7});
}

TEST_F(Faults, RateSpacesPacketsByTheirSize) {
    injector.add({.action = FaultAction::kRate, .amount = 1'000'000});  // 1 MB/s: 1 us a byte
    for (std::uint32_t i = 0; i < 3; ++i) send(i);
    EXPECT_EQ(psns(), (Psns{0}));
    const Time step = 24 * 1000;  // LRH, BTH, ICRC
    EXPECT_EQ(injector.next_deadline(), now + step);
    now += step;
    release();
    EXPECT_EQ(psns(), (Psns{0, 1}));
    now += step;
    release();
    EXPECT_EQ(psns(), (Psns{0, 1, 2}));
}

TEST_F(Faults, ACorruptedBitIsCaughtByTheCrcs) {
    injector.add({.action = FaultAction::kCorruptBit});
    for (std::uint32_t i = 0; i < 200; ++i) send(i);
    ASSERT_EQ(out.size(), 200U);
    for (const Packet& p : out) {
        std::vector<std::byte> frame(encoded_bytes(p));
        encode(p, frame);
        Packet got;
        EXPECT_NE(decode(frame, got), DecodeError::kNone);
    }
}

TEST_F(Faults, ACorruptedFieldHasRightCrcsAndAnotherValue) {
    injector.add({.action = FaultAction::kCorruptField, .field = FaultField::kPsn});
    for (std::uint32_t i = 0; i < 50; ++i) send(i);
    for (std::uint32_t i = 0; i < 50; ++i) {
        std::vector<std::byte> frame(encoded_bytes(out[i]));
        encode(out[i], frame);
        Packet got;
        EXPECT_EQ(decode(frame, got), DecodeError::kNone);
        EXPECT_NE(got.bth.psn, i);
        EXPECT_LE(got.bth.psn, 0xFFFFFFU);
    }
}

TEST_F(Faults, ACorruptedPayloadDiffersInOneBitAndLeavesTheSendersAlone) {
    injector.add({.action = FaultAction::kCorruptField, .field = FaultField::kPayload});
    const std::vector<std::byte> payload(64, std::byte{0});
    Packet carried = packet(1);
    carried.payload = payload;
    injector.pass(now, 0, true, carried, [&](const Packet& p) { out.push_back(p); });
    unsigned bits = 0;
    for (const std::byte byte : out[0].payload)
        bits += static_cast<unsigned>(__builtin_popcount(std::to_integer<unsigned>(byte)));
    EXPECT_EQ(bits, 1U);
    injector.end_turn();
}

TEST_F(Faults, LinkDownStopsBothWaysWhileItStands) {
    const std::uint32_t id = injector.add({.port = 0, .action = FaultAction::kLinkDown});
    send(0, 5, true);
    send(1, 5, false);
    send(2, 5, true, 1);
    EXPECT_EQ(psns(), (Psns{2}));
    EXPECT_TRUE(injector.link_down(0));
    EXPECT_FALSE(injector.link_down(1));
    injector.remove(id);
    EXPECT_FALSE(injector.link_down(0));
}

TEST_F(Faults, AFieldIsCorruptedOnlyWhereThePacketHasIt) {
    const std::uint32_t id =
        injector.add({.count = 1, .action = FaultAction::kCorruptField, .field = FaultField::kRkey});
    send(1);  // a SEND has no RETH
    EXPECT_EQ(injector.rules()[0].matched, 0U);
    Packet write = packet(2);
    write.bth.opcode = opcode(Service::kRc, Operation::kWriteOnly);
    write.reth = {0x1000, 0x77, 0};
    injector.pass(now, 0, true, write, [&](const Packet& p) { out.push_back(p); });
    EXPECT_EQ(injector.rules()[0].id, id);
    EXPECT_EQ(injector.rules()[0].fired, 1U);
    EXPECT_NE(out.back().reth.rkey, 0x77U);
    EXPECT_EQ(out.back().reth.address, 0x1000U);
}

// Each field is the one that its name says, gets another value, and leaves all others as they are.
TEST_F(Faults, EachFieldIsCorruptedByItself) {
    const auto values = [](const Packet& p) {
        const bool acknowledges = (kOpcodes[p.bth.opcode].headers & kAeth) != 0;
        return std::array<std::uint64_t, 12>{
            p.bth.opcode,
            p.bth.psn,
            p.bth.dest_qp,
            p.bth.pkey,
            p.deth.qkey,
            p.reth.rkey,
            p.reth.address,
            p.reth.dma_length,
            p.lrh.dlid,
            p.lrh.slid,
            p.payload.empty() ? 0U : std::to_integer<std::uint64_t>(p.payload[0]),
            acknowledges ? p.aeth.syndrome : 0U};
    };
    const std::vector<std::byte> payload(1, std::byte{0x33});
    for (std::size_t field = 0; field < kFaultFieldNames.size(); ++field) {
        FaultInjector fresh(totals);
        fresh.add({.action = FaultAction::kCorruptField, .field = static_cast<FaultField>(field)});
        for (int i = 0; i < 20; ++i) {
            Packet carried = packet(7);
            carried.lrh = {.dlid = 2, .slid = 1};
            carried.reth = {0x1000, 0x77, 9};
            carried.bth.opcode = opcode(Service::kRc, Operation::kWriteOnly);
            if (static_cast<FaultField>(field) == FaultField::kQkey)
                carried.bth.opcode = opcode(Service::kUd, Operation::kSendOnly);
            if (static_cast<FaultField>(field) == FaultField::kAck)
                carried.bth.opcode = opcode(Service::kRc, Operation::kReadResponseOnly);
            carried.payload = payload;
            out.clear();
            fresh.pass(now, 0, true, carried, [&](const Packet& p) { out.push_back(p); });
            ASSERT_EQ(out.size(), 1U);
            const auto before = values(carried);
            const auto after = values(out[0]);
            for (std::size_t other = 0; other < before.size(); ++other) {
                // What another opcode carries is another matter.
                if (static_cast<FaultField>(field) == FaultField::kOpcode && other != field) continue;
                EXPECT_EQ(before[other] != after[other], other == field)
                    << kFaultFieldNames[field] << " moved " << kFaultFieldNames[other];
            }
            EXPECT_EQ(out[0].bth.service(), carried.bth.service());
            fresh.end_turn();
        }
    }
}

TEST_F(Faults, AFieldThatThePacketHasNotIsNoMatch) {
    const auto matched = [&](FaultField field, std::uint8_t code) {
        FaultInjector fresh(totals);
        fresh.add({.action = FaultAction::kCorruptField, .field = field});
        Packet carried = packet(1);
        carried.bth.opcode = code;
        fresh.pass(now, 0, true, carried, [](const Packet&) {});
        return fresh.rules()[0].matched == 1;
    };
    const std::uint8_t send = opcode(Service::kRc, Operation::kSendOnly);
    for (const FaultField field : {FaultField::kQkey, FaultField::kRkey, FaultField::kAddress,
                                   FaultField::kLength, FaultField::kAck, FaultField::kPayload})
        EXPECT_FALSE(matched(field, send)) << kFaultFieldNames[static_cast<std::size_t>(field)];
    const std::uint8_t atomic = opcode(Service::kRc, Operation::kFetchAdd);
    EXPECT_TRUE(matched(FaultField::kRkey, atomic));
    EXPECT_TRUE(matched(FaultField::kAddress, atomic));
    EXPECT_FALSE(matched(FaultField::kLength, atomic));
}

TEST_F(Faults, EveryActionIsCounted) {
    for (std::size_t action = 0; action < kFaultActionNames.size(); ++action) {
        FaultTotals fresh_totals;
        FaultInjector fresh(fresh_totals);
        fresh.add({.action = static_cast<FaultAction>(action), .amount = 1});
        for (int i = 0; i < 3; ++i) fresh.pass(now, 2, true, packet(0), [](const Packet&) {});
        for (std::size_t other = 0; other < kFaultActionNames.size(); ++other)
            EXPECT_EQ(fresh_totals.of(2, static_cast<FaultAction>(other)), action == other ? 3U : 0U)
                << kFaultActionNames[action] << ", " << kFaultActionNames[other];
    }
}

TEST_F(Faults, OnlyPacketsOfTheSamePortAndDirectionOvertake) {
    injector.add({.count = 1, .action = FaultAction::kReorder, .amount = 1});
    send(0);
    send(1, 5, true, 1);   // another port
    send(2, 5, false, 0);  // another direction
    release();
    EXPECT_EQ(psns(), (Psns{1, 2}));
    send(3);
    release();
    EXPECT_EQ(psns(), (Psns{1, 2, 3, 0}));
}

TEST_F(Faults, WhatARemovedRuleHeldGoesOnAndWhatOthersHoldStays) {
    const std::uint32_t gone =
        injector.add({.count = 1, .action = FaultAction::kDelay, .amount = kMillisecond});
    injector.add({.count = 1, .action = FaultAction::kDelay, .amount = kMillisecond});
    send(0);
    send(1);
    injector.remove(gone);
    release();
    EXPECT_EQ(psns(), (Psns{0}));
}

TEST_F(Faults, HeldPacketsGoInTheOrderOfTheirTimes) {
    injector.add({.count = 1, .action = FaultAction::kDelay, .amount = 3 * kMillisecond});
    injector.add({.count = 1, .action = FaultAction::kDelay, .amount = kMillisecond});
    injector.add({.count = 2, .action = FaultAction::kDelay, .amount = 2 * kMillisecond});
    for (std::uint32_t psn = 0; psn < 4; ++psn) send(psn);
    now += 5 * kMillisecond;
    release();
    EXPECT_EQ(psns(), (Psns{1, 2, 3, 0}));
}

TEST_F(Faults, WhatRulesDidIsCountedByPortAndOutlivesThem) {
    const std::uint32_t id = injector.add({.count = 2});
    for (std::uint32_t i = 0; i < 3; ++i) send(i, 5, true, 1);
    injector.remove(id);
    EXPECT_EQ(totals.of(1, FaultAction::kDrop), 2U);
    EXPECT_EQ(totals.of(0, FaultAction::kDrop), 0U);
    EXPECT_EQ(totals.of(1, FaultAction::kDelay), 0U);
}

TEST_F(Faults, HeldPacketsHaveALimit) {
    injector.add({.action = FaultAction::kDelay, .amount = kMillisecond});
    const std::vector<std::byte> payload(4096);
    Packet carried = packet(1);
    carried.payload = payload;
    const std::size_t most = FaultInjector::kHeldBytes / payload.size();
    for (std::size_t i = 0; i < most; ++i) injector.pass(now, 0, true, carried, [](const Packet&) {});
    const std::uint64_t lost = totals.of(0, FaultAction::kDrop);
    EXPECT_GT(lost, 0U);
    EXPECT_LT(lost, most / 8);
    now += kMillisecond;
    release();
    EXPECT_EQ(out.size(), most - lost);
    injector.pass(now, 0, true, carried, [](const Packet&) {});
    EXPECT_EQ(totals.of(0, FaultAction::kDrop), lost) << "there is room again";
}

TEST_F(Faults, EthernetFramesHaveNoQueuePairToMatch) {
    injector.add({.qp = 0});
    Packet frame;
    frame.kind = PacketKind::kEthernet;
    injector.pass(now, 0, true, frame, [&](const Packet& p) { out.push_back(p); });
    EXPECT_EQ(out.size(), 1U);
}

}  // namespace
}  // namespace uib::net
