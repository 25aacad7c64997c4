// Static rate control (IBA 9.11): the distance that a source port keeps between packets to one destination.
#include "engine/transport/static_rate.h"

#include "net/wire/length.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint8_t kRate2_5 = 2;  // IBV_RATE_2_5_GBPS: IPD 3 at a port of 10 Gb/s
constexpr std::uint32_t kPortMbps = 10'000;
constexpr Time kIpd = 3;

/// Ts after a packet: (IPD + 1) * LRH:PktLen * 4 / Lr, in nanoseconds, rounded up.
Time wait_after(const Carried& packet) {
    const Time bits = Time{8} * net::packet_bytes(packet.packet);
    return ((kIpd + 1) * bits * 1000 + kPortMbps - 1) / kPortMbps;
}

class StaticRate : public ::testing::TestWithParam<transport::Service> {
  protected:
    /// Posts so many packets' worth of work to `dlid`.
    static void post(Peer& peer, std::uint32_t packets, net::Lid dlid = kPeerQp) {
        const bool datagrams = GetParam() == transport::Service::kUd;
        Work work = peer.work(datagrams ? WorkOpcode::kSend : WorkOpcode::kRdmaWrite,
                              static_cast<std::uint32_t>(datagrams ? kMtu : packets * kMtu));
        work.remote_qpn = kPeerQp;
        work.address_vector.dlid = dlid;
        work.address_vector.static_rate = kRate2_5;
        for (std::uint32_t i = 0; i < (datagrams ? packets : 1); ++i) peer.posts(work);
    }
    static void connect(Peer& peer, transport::StaticRate& rate) {
        peer.machine().port.static_rate = &rate;
        peer.parameters().path.static_rate = kRate2_5;
        peer.connect();
    }
};

// What PortInfo and the path say: 10 Gb/s and 2.5 Gb/s are IPD 3, so the average rate to the DLID is 2.5
// Gb/s.
TEST_P(StaticRate, o9_165_the_wait_is_ipd_plus_one_times_the_packet) {
    ROWS("o9-163", "o9-164", "o9-165");
    transport::StaticRate rate(kPortMbps);
    Peer peer(GetParam());
    connect(peer, rate);
    post(peer, 8);
    peer.after(us(100));
    const std::vector<Carried> heard = peer.hears_all();
    ASSERT_EQ(heard.size(), 8U);
    for (std::size_t i = 1; i < heard.size(); ++i) {
        const Time wait = wait_after(heard[i - 1]);
        const Time gap = heard[i].at - heard[i - 1].at;
        EXPECT_GE(gap, wait);
        EXPECT_LE(gap, wait + 1);
    }
}

TEST_P(StaticRate, o9_164_all_sources_of_the_port_share_the_wait) {
    ROWS("o9-164");
    transport::StaticRate rate(kPortMbps);
    Peer first(GetParam());
    Peer second(GetParam(), kMachineQp + 2);
    connect(first, rate);
    connect(second, rate);
    post(first, 1);
    const Carried heard = first.hears();
    post(second, 1);
    second.after(wait_after(heard) - 1);
    second.expects_nothing();
    second.after(2);
    EXPECT_EQ(second.hears_all().size(), 1U);
}

TEST_P(StaticRate, o9_164_another_destination_does_not_wait) {
    ROWS("o9-164");
    transport::StaticRate rate(kPortMbps);
    Peer first(GetParam());
    Peer second(GetParam(), kMachineQp + 2);
    connect(first, rate);
    second.machine().port.static_rate = &rate;
    second.parameters().path.static_rate = kRate2_5;
    second.connect(QpState::kRts, kPeerQp + 1);
    post(first, 1);
    post(second, 1, kPeerQp + 1);
    EXPECT_EQ(first.hears_all().size(), 1U);
    EXPECT_EQ(second.hears_all().size(), 1U);
}

TEST_P(StaticRate, o9_163_a_path_as_fast_as_the_port_does_not_wait) {
    ROWS("o9-163");
    transport::StaticRate rate(2'500);
    Peer peer(GetParam());
    connect(peer, rate);
    post(peer, 8);
    EXPECT_EQ(peer.hears_all().size(), 8U);
}

INSTANTIATE_TEST_SUITE_P(On, StaticRate,
                         ::testing::Values(transport::Service::kRc, transport::Service::kUc,
                                           transport::Service::kUd, transport::Service::kXrcInitiator),
                         service_name);

// An IPD is a real number here, so each rate that a path can have is met as it is and nothing is chosen in
// its place.
TEST(StaticRates, C9_226_every_rate_of_a_path_is_supported) {
    ROWS("C9-226");
    transport::StaticRate rate(1'200'000);
    const std::pair<std::uint8_t, std::uint32_t> rates[] = {
        {2, 2'500},    {3, 10'000},  {4, 30'000},   {5, 5'000},    {6, 20'000},  {7, 40'000},
        {8, 60'000},   {9, 80'000},  {10, 120'000}, {11, 14'000},  {12, 56'000}, {13, 112'000},
        {14, 168'000}, {15, 25'000}, {16, 100'000}, {17, 200'000}, {18, 300'000}};
    for (const auto& [code, mbps] : rates) EXPECT_EQ(rate.limit(code), mbps);
}

}  // namespace
}  // namespace uib::conformance
