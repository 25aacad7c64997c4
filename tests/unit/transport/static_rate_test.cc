// Static rate control: the wait between packets to one DLID (IBA 9.11, o9-163 to o9-165, C9-226).
#include "engine/transport/static_rate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "net/wire/length.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

constexpr std::uint32_t kPortMbps = 100'000;
constexpr std::uint8_t kRate10 = 3;  // IBV_RATE_10_GBPS

TEST(StaticRate, wait_is_the_packet_at_the_path_rate) {
    // IPD 9 at 100 Gb/s: ten times what 1000 bytes take.
    EXPECT_EQ(StaticRate::wait(1000, 10'000), 800U);
    EXPECT_EQ(StaticRate::wait(1000, 2'500), 3200U);
    EXPECT_EQ(StaticRate::wait(1, 300'000), 1U);  // rounded up
}

TEST(StaticRate, codes_are_those_of_ibv_rate) {
    const std::pair<std::uint8_t, std::uint32_t> codes[] = {
        {0, 0},        {2, 2'500},    {3, 10'000},   {4, 30'000},   {5, 5'000},    {6, 20'000},
        {7, 40'000},   {8, 60'000},   {9, 80'000},   {10, 120'000}, {11, 14'000},  {12, 56'000},
        {13, 112'000}, {14, 168'000}, {15, 25'000},  {16, 100'000}, {17, 200'000}, {18, 300'000},
        {19, 28'000},  {20, 50'000},  {21, 400'000}, {22, 600'000}, {23, 800'000}, {24, 1'200'000}};
    for (const auto& [code, mbps] : codes) {
        EXPECT_EQ(static_rate_mbps(code), mbps);
    }
    for (const std::uint8_t code : {1, 25, 255}) {
        EXPECT_EQ(static_rate_mbps(code), 2'500U);
    }
    EXPECT_EQ(port_mbps(2, 32), 100'000U);  // 4x EDR
    EXPECT_EQ(port_mbps(1, 1), 2'500U);
    EXPECT_EQ(port_mbps(8, 4), 120'000U);
}

TEST(StaticRate, no_limit_at_or_above_the_rate_of_the_port) {
    StaticRate rate(kPortMbps);
    EXPECT_EQ(rate.limit(0), 0U);
    EXPECT_EQ(rate.limit(16), 0U);
    EXPECT_EQ(rate.limit(17), 0U);
    EXPECT_EQ(rate.limit(kRate10), 10'000U);
}

struct Paced : ::testing::TestWithParam<Service> {
    Paced() : a(GetParam(), 0x11) { a.port.static_rate = &rate; }
    /// Posts a request of `packets` packets (UD: so many requests).
    void post(std::uint32_t packets, std::uint8_t static_rate = kRate10) {
        Work work;
        work.remote_qpn = 0x12;
        work.address_vector.dlid = 0x12;
        work.address_vector.static_rate = static_rate;
        const std::uint32_t works = GetParam() == Service::kUd ? packets : 1;
        if (GetParam() != Service::kUd) work.opcode = WorkOpcode::kRdmaWrite;
        work.entries = {a.entry(0, 256 * packets / works)};
        for (std::uint32_t i = 0; i < works; ++i) a.post(work);
    }
    /// Runs, then wakes the machine at its timers only; the times and sizes of what it sends until nothing is
    /// left or `most` packets have gone.
    std::vector<std::pair<Time, std::uint32_t>> send(std::size_t most) {
        std::vector<std::pair<Time, std::uint32_t>> sent;
        for (int turn = 0; turn < 100 && sent.size() < most; ++turn) {
            a.run();
            for (const SentPacket& packet : a.take_out())
                sent.emplace_back(a.clock, net::packet_bytes(packet.whole()));
            if (a.qp->next_timer() == kNever) break;
            EXPECT_GE(a.qp->next_timer(), a.clock);
            if (sent.size() < most) a.advance(a.qp->next_timer() - a.clock);
        }
        return sent;
    }
    StaticRate rate{kPortMbps};
    Station a;
};

TEST_P(Paced, packets_keep_their_distance) {
    a.parameters.path.static_rate = kRate10;
    a.connect(0x12);
    post(4);
    const auto sent = send(4);
    ASSERT_EQ(sent.size(), 4U);
    for (std::size_t i = 1; i < sent.size(); ++i)
        EXPECT_EQ(sent[i].first - sent[i - 1].first,
                  Time{sent[i - 1].second} * 8 / 10 + (sent[i - 1].second * 8 % 10 != 0));
    EXPECT_GT(a.count().rate_waits, 0U);
}

TEST_P(Paced, nothing_waits_without_a_limit) {
    a.connect(0x12);
    post(4, 0);
    EXPECT_EQ(send(4).size(), 4U);
    EXPECT_EQ(a.count().rate_waits, 0U);
}

TEST_P(Paced, held_packets_go_to_error_without_waiting) {
    a.parameters.path.static_rate = kRate10;
    a.connect(0x12);
    post(3);
    post(1);
    a.run();
    EXPECT_EQ(a.take_out().size(), 1U);
    EXPECT_FALSE(a.qp->wants_run());
    a.qp->apply(QpState::kError, a.parameters, false);
    a.run();
    EXPECT_TRUE(a.out.empty());
    EXPECT_EQ(a.sends.size(), a.send_queue.works.size());
}

TEST_P(Paced, queue_pairs_of_one_port_share_the_wait_for_a_destination) {
    a.parameters.path.static_rate = kRate10;
    a.connect(0x12);
    rate.limit(kRate10);
    rate.sent(0x13, 1000, 10'000, a.clock);  // to somebody else
    post(1);
    EXPECT_EQ(send(1).at(0).first, a.clock);
    rate.sent(0x12, 1000, 10'000, a.clock);
    const Time before = a.clock;
    post(1);
    EXPECT_EQ(send(1).at(0).first, before + 800);
}

INSTANTIATE_TEST_SUITE_P(Services, Paced,
                         ::testing::Values(Service::kRc, Service::kUc, Service::kUd, Service::kXrcInitiator));

TEST(PacedResponder, xrc_target_keeps_the_distance) {
    StaticRate rate(kPortMbps);
    Station b(Service::kXrcTarget, 0x12);
    b.port.static_rate = &rate;
    b.parameters.path.static_rate = kRate10;
    b.connect(0x11);
    net::Packet read = packet_for(b, Operation::kReadRequest, b.parameters.rq_psn);
    read.reth = {Station::kBase, b.region->key(), 768};
    b.deliver(read);
    for (int i = 0; i < 3; ++i) {
        b.run();
        EXPECT_EQ(b.take_out().size(), 1U);
        EXPECT_FALSE(b.qp->wants_run());
        if (i < 2) b.advance(b.qp->next_timer() - b.clock);
    }
}

TEST(PacedResponder, responses_keep_their_distance_and_take_turns_with_requests) {
    StaticRate rate(kPortMbps);
    Station a(Service::kRc, 0x11);
    a.port.static_rate = &rate;
    a.parameters.path.static_rate = kRate10;
    a.connect(0x12);
    net::Packet read = packet_for(a, Operation::kReadRequest, a.parameters.rq_psn);
    read.reth = {Station::kBase, a.region->key(), 1024};
    a.deliver(read);
    Work work;
    work.opcode = WorkOpcode::kRdmaWrite;
    work.entries = {a.entry(0, 512)};
    a.post(work);
    std::vector<bool> responses;
    Time last = 0;
    for (int i = 0; i < 6; ++i) {
        a.run();
        ASSERT_EQ(a.out.size(), 1U) << i;
        responses.push_back(net::is_response(a.out[0].operation()));
        EXPECT_GE(a.clock, last + 200);
        last = a.clock;
        a.take_out();
        if (i < 5) a.advance(a.qp->next_timer() - a.clock);
    }
    // One request between two responses, while there are both.
    EXPECT_EQ(std::count(responses.begin(), responses.begin() + 4, true), 2);
    EXPECT_EQ(std::count(responses.begin(), responses.end(), true), 4);
}

}  // namespace
}  // namespace uib::transport::testing
