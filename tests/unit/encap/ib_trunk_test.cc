// Trunks joined by a wire of frames in memory.
#include "net/encap/ib_trunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "net/port/memory_port.h"
#include "net/wire/bytes.h"
#include "net/wire/codec.h"

namespace uib::net {
namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr std::uint8_t kSetActive = 4;
constexpr std::uint8_t kSetArm = 3;

/// Trunks on one Ethernet segment.
class TrunkTest : public ::testing::Test {
  protected:
    struct End {
        MemoryPort* port = nullptr;
        std::unique_ptr<IbTrunk> trunk;
        bool silent = false;
    };
    End& add(std::uint8_t number, std::uint32_t mtu = 4500, std::vector<MacAddress> peers = {},
             unsigned slots = 4) {
        End end;
        auto port = std::make_unique<MemoryPort>(mac(number), mtu);
        end.port = port.get();
        IbTrunkOptions options;
        options.identity = ++identities_ * 1000;
        options.peers = std::move(peers);
        options.slots = slots;
        options.link.role = link::PortRole::kSwitch;  // takes packets to any LID
        end.trunk = std::make_unique<IbTrunk>(std::move(port), options);
        ends_.push_back(std::make_unique<End>(std::move(end)));
        return *ends_.back();
    }
    static MacAddress mac(std::uint8_t number) { return {2, 0, 0, 0, 0, number}; }

    /// Lets `time` pass in steps of a quarter of a millisecond.
    void run(Time time) {
        for (const Time end = now_ + time; now_ < end; now_ += kMillisecond / 4) step();
    }
    void step() {
        for (const auto& end : ends_) {
            end->trunk->receive(now_);
            end->trunk->send(now_);
            end->trunk->end_turn();
            for (; !end->port->sent.empty(); end->port->sent.pop_front()) {
                if (end->silent || (lose && lose())) continue;
                deliver(*end, end->port->sent.front());
            }
        }
    }
    void deliver(const End& from, const MemoryPort::Frame& frame) {
        for (const auto& to : ends_) {
            if (to.get() == &from || to->silent) continue;
            const bool mine = std::equal(frame.begin(), frame.begin() + 6,
                                         reinterpret_cast<const std::byte*>(to->port->mac().data()));
            if (flood || mine || frame[0] == std::byte{0xFF}) to->port->arriving.push_back(frame);
        }
    }
    /// Brings a link to Active, as a subnet manager would.
    void activate(End& a, End& b) {
        for (const std::uint8_t state : {kSetArm, kSetActive}) {
            a.trunk->link(0).command(state, now_);
            b.trunk->link(0).command(state, now_);
            run(2 * kMillisecond);
        }
        ASSERT_EQ(a.trunk->link(0).state(), link::PortState::kActive);
        ASSERT_EQ(b.trunk->link(0).state(), link::PortState::kActive);
    }
    static Packet packet(std::span<const std::byte> payload, std::uint32_t psn) {
        Packet out;
        out.lrh = {.dlid = 2, .slid = 1};
        out.bth.opcode = opcode(Service::kRc, Operation::kSendOnly);
        out.bth.psn = psn;
        out.bth.dest_qp = 5;
        out.bth.pad = static_cast<std::uint8_t>(-payload.size() & 3);
        out.payload = payload;
        return out;
    }

    Time now_ = 1'000'000'000;
    std::vector<std::unique_ptr<End>> ends_;
    std::uint64_t identities_ = 0;
    std::function<bool()> lose;
    bool flood = false;
};

TEST_F(TrunkTest, TwoEndsFindEachOtherAndTheLinkInitialises) {
    End& a = add(1);
    End& b = add(2);
    run(5 * kMillisecond);
    EXPECT_EQ(a.trunk->peer(0), mac(2));
    EXPECT_EQ(b.trunk->peer(0), mac(1));
    EXPECT_TRUE(a.trunk->physically_up(0));
    EXPECT_EQ(a.trunk->link(0).state(), link::PortState::kInit);
    EXPECT_EQ(b.trunk->link(0).state(), link::PortState::kInit);
    EXPECT_FALSE(a.trunk->peer(1).has_value());
}

TEST_F(TrunkTest, ThreeEndsHaveALinkEach) {
    End& a = add(1);
    add(2);
    add(3);
    run(5 * kMillisecond);
    EXPECT_TRUE(a.trunk->physically_up(0));
    EXPECT_TRUE(a.trunk->physically_up(1));
    EXPECT_FALSE(a.trunk->physically_up(2));
}

TEST_F(TrunkTest, PacketsOfAllSizesArriveAsTheyWereAndShortFramesAreCutRight) {
    End& a = add(1);
    End& b = add(2);
    run(5 * kMillisecond);
    activate(a, b);
    std::vector<std::byte> payload(4096);
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
    std::uint32_t psn = 0;
    for (const std::size_t size : {0U, 1U, 2U, 3U, 4U, 17U, 256U, 4095U, 4096U}) {
        ASSERT_EQ(a.trunk->link(0).enqueue(packet(std::span(payload).first(size), psn), now_),
                  link::Enqueued::kQueued);
        run(2 * kMillisecond);
        const std::span<const std::byte> got = b.trunk->link(0).front(0);
        ASSERT_FALSE(got.empty()) << size;
        Packet out;
        ASSERT_EQ(decode(got, out), DecodeError::kNone) << size;
        EXPECT_EQ(out.bth.psn, psn);
        ASSERT_EQ(out.payload.size(), size);
        EXPECT_TRUE(std::equal(out.payload.begin(), out.payload.end(), payload.begin()));
        b.trunk->link(0).pop(0);
        ++psn;
    }
    EXPECT_EQ(b.trunk->counters().rx_malformed, 0U);
}

TEST_F(TrunkTest, AnEndThatFallsSilentTakesTheLinkDownAndItComesBack) {
    End& a = add(1);
    End& b = add(2);
    run(5 * kMillisecond);
    b.silent = true;
    run(IbTrunk::kHelloTimeout + IbTrunk::kHelloInterval);
    EXPECT_FALSE(a.trunk->physically_up(0));
    EXPECT_EQ(a.trunk->link(0).state(), link::PortState::kDown);
    b.silent = false;
    run(3 * IbTrunk::kHelloInterval);
    EXPECT_TRUE(a.trunk->physically_up(0));
    EXPECT_TRUE(b.trunk->physically_up(0));
}

TEST_F(TrunkTest, ARestartedPeerIsAnotherPeerOnTheSameSlot) {
    End& a = add(1);
    add(2);
    run(5 * kMillisecond);
    ASSERT_TRUE(a.trunk->physically_up(0));
    a.trunk->link(0).command(kSetArm, now_);
    ends_.pop_back();
    End& again = add(2);
    run(3 * kMillisecond);
    EXPECT_TRUE(a.trunk->physically_up(0));
    EXPECT_EQ(a.trunk->link(0).state(), link::PortState::kInit) << "it went down in between";
    EXPECT_TRUE(again.trunk->physically_up(0));
    EXPECT_FALSE(a.trunk->peer(1).has_value());
}

// It has heard us before it said anything, so that its first word names us.
TEST_F(TrunkTest, ARestartedPeerThatHearsUsAtOnceTakesTheLinkDownFirst) {
    End& a = add(1);
    add(2);
    run(5 * kMillisecond);
    ASSERT_TRUE(a.trunk->physically_up(0));
    a.trunk->link(0).command(kSetArm, now_);
    ASSERT_EQ(a.trunk->link(0).state(), link::PortState::kArm);
    ends_.pop_back();
    MemoryPort::Frame hello(60);
    const MacAddress to = mac(2);
    const MacAddress from = mac(1);
    std::memcpy(hello.data(), to.data(), to.size());
    std::memcpy(hello.data() + 6, from.data(), from.size());
    store_be<2>(&hello[12], std::uint16_t{0x88B5});
    hello[14] = std::byte{2};
    hello[15] = std::byte{1};
    store_be<8>(&hello[16], std::uint64_t{1000});
    hello[32] = std::byte{5};
    End& again = add(2);
    again.port->arriving.push_back(hello);
    again.trunk->receive(now_);
    again.trunk->end_turn();
    ASSERT_FALSE(again.port->sent.empty());
    a.port->arriving.push_back(again.port->sent.front());
    a.trunk->receive(now_);
    EXPECT_TRUE(a.trunk->physically_up(0));
    EXPECT_EQ(a.trunk->link(0).state(), link::PortState::kInit) << "it went down in between";
}

TEST_F(TrunkTest, OnlyGivenPeersWhenPeersAreGiven) {
    End& a = add(1, 4500, {mac(3)});
    End& b = add(2);
    End& c = add(3);
    run(2 * IbTrunk::kHelloInterval);
    EXPECT_EQ(a.trunk->peer(0), mac(3));
    EXPECT_TRUE(a.trunk->physically_up(0));
    EXPECT_GT(a.trunk->counters().rx_no_slot, 0U);
    EXPECT_TRUE(b.trunk->physically_up(0)) << "to the third";
    EXPECT_TRUE(c.trunk->physically_up(0));
}

TEST_F(TrunkTest, MoreEndsThanSlotsAreCounted) {
    End& a = add(1, 4500, {}, 1);
    add(2);
    add(3);
    run(5 * kMillisecond);
    EXPECT_GT(a.trunk->counters().rx_no_slot, 0U);
    EXPECT_TRUE(a.trunk->physically_up(0));
}

TEST_F(TrunkTest, EndsOfDifferentMtuDoNotLink) {
    End& a = add(1, 1500);
    End& b = add(2, 4500);
    EXPECT_EQ(a.trunk->mtu_code(), 3);
    EXPECT_EQ(b.trunk->mtu_code(), 5);
    run(5 * kMillisecond);
    EXPECT_FALSE(a.trunk->physically_up(0));
    EXPECT_GT(a.trunk->counters().mtu_mismatch, 0U);
}

// A bridge floods hellos for a host that it has lost: they say nothing about us.
TEST_F(TrunkTest, HellosForOthersAreNotHeard) {
    End& a = add(1);
    End& b = add(2);
    End& c = add(3);
    run(5 * kMillisecond);
    flood = true;
    c.silent = true;
    for (int i = 0; i < 200; ++i) {
        run(IbTrunk::kHelloInterval / 20);
        EXPECT_TRUE(a.trunk->physically_up(0));
        EXPECT_TRUE(b.trunk->physically_up(0));
    }
    EXPECT_GT(b.trunk->counters().rx_other_host, 0U);
}

TEST_F(TrunkTest, ALossyWireStillLinksUp) {
    End& a = add(1);
    End& b = add(2);
    std::uint32_t state = 1;
    lose = [&state] {
        state = state * 1664525 + 1013904223;
        return (state >> 24) < 77;  // 30 %
    };
    run(IbTrunk::kHelloTimeout);
    unsigned up = 0;
    for (int i = 0; i < 100; ++i) {
        run(IbTrunk::kHelloInterval / 4);
        up += a.trunk->physically_up(0) && b.trunk->physically_up(0) ? 1 : 0;
    }
    EXPECT_GT(up, 80U);
}

// Ethernet fills frames up; with nothing of what the buffer held before.
TEST_F(TrunkTest, ShortFramesAreFilledUpWithZeros) {
    End& a = add(1);
    a.trunk->receive(now_);
    a.trunk->end_turn();
    ASSERT_FALSE(a.port->sent.empty());
    const MemoryPort::Frame& hello = a.port->sent.front();
    ASSERT_EQ(hello.size(), 60U);
    EXPECT_TRUE(std::all_of(hello.begin() + 16 + 17, hello.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
}

// One frame each while the frame port takes only a few a turn.
TEST_F(TrunkTest, LinksTakeTurnsAtANarrowPort) {
    End& a = add(1);
    End& b = add(2);
    End& c = add(3);
    run(5 * kMillisecond);
    for (const std::uint8_t state : {kSetArm, kSetActive}) {
        for (End* end : {&a, &b, &c})
            for (std::size_t slot = 0; slot < 2; ++slot) end->trunk->link(slot).command(state, now_);
        run(2 * kMillisecond);
    }
    for (std::size_t slot = 0; slot < 2; ++slot)
        ASSERT_EQ(a.trunk->link(slot).state(), link::PortState::kActive);
    a.port->depth = 2;
    const std::vector<std::byte> payload(256);
    std::array<unsigned, 2> taken{};
    for (int turn = 0; turn < 100; ++turn) {
        for (std::size_t slot = 0; slot < 2; ++slot)
            while (a.trunk->link(slot).queued_packets(0) < 4)
                ASSERT_EQ(a.trunk->link(slot).enqueue(packet(payload, 0), now_), link::Enqueued::kQueued);
        step();
        now_ += kMillisecond / 4;
        for (End* end : {&b, &c})
            for (std::size_t slot = 0; slot < 2; ++slot)
                for (; !end->trunk->link(slot).front(0).empty(); end->trunk->link(slot).pop(0))
                    ++taken[end == &b ? 0 : 1];
    }
    EXPECT_GT(taken[0] + taken[1], 60U);
    EXPECT_NEAR(taken[0], taken[1], 10);
    EXPECT_EQ(a.trunk->counters().tx_no_buffer, 0U) << "a frame that has left its link finds room";
}

// Whoever sleeps until next_deadline() misses nothing: updates of links, hellos, and the silence of a peer.
TEST_F(TrunkTest, DeadlinesAreThoseOfLinksHellosAndSilence) {
    End& a = add(1);
    End& b = add(2);
    run(5 * kMillisecond);
    activate(a, b);
    EXPECT_LE(a.trunk->next_deadline(), a.trunk->link(0).next_deadline());
    b.silent = true;
    // Links of a port that is down have none: only hellos and the end of the peer's time are left.
    const Time heard = now_;
    Time at = 0;
    while (a.trunk->physically_up(0) && at < heard + 3 * IbTrunk::kHelloTimeout) {
        at = a.trunk->next_deadline();
        ASSERT_LE(at, heard + IbTrunk::kHelloTimeout) << "the peer's silence is noticed in time";
        now_ = std::max(at, now_ + 1);
        a.trunk->receive(now_);
        a.trunk->send(now_);
        a.trunk->end_turn();
        a.port->sent.clear();
    }
    EXPECT_FALSE(a.trunk->physically_up(0));
}

TEST_F(TrunkTest, WhatTheDriverHasNotTakenIsDueAtOnce) {
    End& a = add(1);
    End& b = add(2);
    run(5 * kMillisecond);
    activate(a, b);
    EXPECT_GT(a.trunk->next_deadline(), 0U);
    a.port->stuck = true;
    run(IbTrunk::kHelloTimeout / 2);  // hellos are due every so often
    EXPECT_EQ(a.trunk->next_deadline(), 0U);
    a.port->stuck = false;
    a.trunk->end_turn();
    EXPECT_GT(a.trunk->next_deadline(), 0U);
}

// A link that it brought up would never end: who has no identity falls silent unnoticed.
TEST_F(TrunkTest, AHelloWithoutAnIdentityIsNone) {
    End& a = add(1);
    a.trunk->receive(now_);
    MemoryPort::Frame hello(60);
    const MacAddress own = mac(1);
    std::memcpy(hello.data(), own.data(), own.size());
    hello[11] = std::byte{9};
    store_be<2>(&hello[12], std::uint16_t{0x88B5});
    hello[14] = std::byte{2};
    hello[15] = std::byte{1};
    store_be<8>(&hello[24], std::uint64_t{1000});  // it hears us
    hello[32] = std::byte{5};
    a.port->arriving.push_back(hello);
    a.trunk->receive(now_);
    EXPECT_FALSE(a.trunk->peer(0).has_value());
    EXPECT_FALSE(a.trunk->physically_up(0));
    EXPECT_EQ(a.trunk->counters().rx_malformed, 1U);
}

TEST_F(TrunkTest, StrayFramesAreCountedAndHarmless) {
    End& a = add(1);
    add(2);
    run(5 * kMillisecond);
    std::vector<std::byte> frame(64, std::byte{0});
    const MacAddress own = mac(1);
    std::memcpy(frame.data(), own.data(), own.size());
    a.port->arriving.push_back(frame);  // another EtherType
    frame[12] = std::byte{0x88};
    frame[13] = std::byte{0xB5};
    a.port->arriving.push_back(frame);  // version 0
    frame[15] = std::byte{1};
    frame[14] = std::byte{9};
    a.port->arriving.push_back(frame);  // unknown kind
    frame[14] = std::byte{0};
    a.port->arriving.push_back(frame);  // data from nobody
    a.port->arriving.push_back(std::vector<std::byte>(5, std::byte{1}));
    step();
    EXPECT_EQ(a.trunk->counters().rx_foreign, 2U);
    EXPECT_EQ(a.trunk->counters().rx_malformed, 2U);
    EXPECT_EQ(a.trunk->counters().rx_unknown_peer, 1U);
}

}  // namespace
}  // namespace uib::net
