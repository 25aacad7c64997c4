// Raw datagrams (IBA 9.8.4): queue pairs that send and take packets without IBA transport, over the wire's
// bytes.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

using net::PacketKind;

constexpr std::size_t kNextHeader = 6;  // of the IPv6 header
constexpr std::uint8_t kIbaTransport = 0x1B;
constexpr std::uint8_t kUdp = 17;

/// A queue pair that is bound to one raw service.
class RawStation {
  public:
    explicit RawStation(PacketKind kind, std::uint16_t ethertype = 0)
        : station_(transport::Service::kRaw, kMachineQp) {
        transport::QpConfig config = station_.qp->config();
        config.raw_kind = kind;
        config.raw_ethertype = ethertype;
        station_.qp = transport::QueuePair::make(config, station_);
        station_.parameters.mtu_bytes = kMtu;
        station_.connect(kPeerQp);
    }
    Station& station() { return station_; }

    /// Sends `length` bytes, as an IPv6 packet if `next_header` is given; what goes on the wire.
    std::vector<Carried> sends(std::uint32_t length, std::optional<std::uint8_t> next_header = {}) {
        station_.fill(0, length, 1);
        if (next_header) {
            *station_.at(0) = std::byte{0x60};
            *station_.at(kNextHeader) = std::byte{*next_header};
        }
        Work work;
        work.entries = {station_.entry(0, length)};
        station_.post(work);
        station_.run();
        std::vector<Carried> carried;
        for (const auto& sent : station_.take_out()) carried.push_back(Wire::carry(sent.whole()));
        return carried;
    }
    [[nodiscard]] Status last_status() const { return station_.sends.back().status; }

  private:
    Station station_;
};

TEST(RawDatagrams, C9_208_a_raw_packet_never_claims_to_carry_iba_transport) {
    ROWS("C9-208", "C9-34");
    RawStation sender(PacketKind::kRawIpv6);
    EXPECT_TRUE(sender.sends(60, kIbaTransport).empty());
    EXPECT_EQ(sender.last_status(), Status::kLocalQpOperation);

    RawStation other(PacketKind::kRawIpv6);
    std::vector<Carried> carried = other.sends(60, kUdp);
    ASSERT_EQ(carried.size(), 1U);
    EXPECT_EQ(carried[0].error, net::DecodeError::kNone);
    EXPECT_EQ(carried[0].byte(Part::kLrh, 1) & 3, 1) << "LNH";
    RawStation receiver(PacketKind::kRawIpv6);
    receiver.station().post_receive(1, 0, 400);
    receiver.station().deliver(carried[0].packet);
    EXPECT_EQ(receiver.station().receives.size(), 1U);
    // The same with the forbidden next header: the port drops it, and so does the queue pair.
    std::vector<std::byte> frame = *carried[0].frame;
    frame[8 + kNextHeader] = std::byte{kIbaTransport};
    net::Packet forged;
    EXPECT_EQ(net::decode(frame, forged, {false, false}), net::DecodeError::kRawTransport);
    forged = carried[0].packet;
    forged.payload = std::span(frame).subspan(8, 60);
    receiver.station().post_receive(2, 0, 400);
    receiver.station().deliver(forged);
    EXPECT_EQ(receiver.station().receives.size(), 1U);
    EXPECT_EQ(receiver.station().count().invalid_requests, 1U);
}

TEST(RawDatagrams, o9_145_the_payload_is_a_multiple_of_four_bytes) {
    ROWS("o9-145");
    RawStation sender(PacketKind::kRawEthertype, 0x88B6);
    for (std::uint32_t length = 1; length <= 40; ++length) {
        const std::vector<Carried> carried = sender.sends(length);
        ASSERT_EQ(carried.size(), 1U);
        EXPECT_EQ(carried[0].error, net::DecodeError::kNone);
        EXPECT_EQ((carried[0].frame->size() - 2) % 4, 0U);
        EXPECT_GE(carried[0].packet.payload.size(), length);
        EXPECT_LT(carried[0].packet.payload.size(), std::max(length + 4, 9U));
        const std::size_t words = (carried[0].byte(Part::kLrh, 4) & 7) << 8 | carried[0].byte(Part::kLrh, 5);
        EXPECT_EQ(words * 4, carried[0].frame->size() - 2) << "PktLen";
    }
}

TEST(RawDatagrams, o9_146_queue_pairs_are_bound_to_a_raw_service_by_the_adapter) {
    ROWS("o9-146", "o9-147");
    RawStation ethertype(PacketKind::kRawEthertype, 0x88B6);
    RawStation other_ethertype(PacketKind::kRawEthertype, 0x88B7);
    RawStation ipv6(PacketKind::kRawIpv6);
    RawStation* const stations[] = {&ethertype, &other_ethertype, &ipv6};
    for (RawStation* from : stations) {
        const std::vector<Carried> carried =
            from->sends(60, from == &ipv6 ? std::optional<std::uint8_t>(kUdp) : std::nullopt);
        ASSERT_EQ(carried.size(), 1U);
        for (RawStation* to : stations) {
            const std::size_t before = to->station().receives.size();
            to->station().receive_queue.posted.clear();
            to->station().post_receive(1, 0, 400);
            to->station().deliver(carried[0].packet);
            EXPECT_EQ(to->station().receives.size() - before, to == from ? 1U : 0U);
        }
    }
    for (RawStation* to : stations) EXPECT_EQ(to->station().count().dropped_service, 2U);
}

TEST(RawDatagrams, o9_148_a_packet_has_at_most_the_mtu_and_124_bytes) {
    ROWS("o9-148");
    constexpr std::uint32_t kMost = kMtu + 124;  // from the LRH on, without VCRC
    RawStation ethertype(PacketKind::kRawEthertype, 0x88B6);
    std::vector<Carried> carried = ethertype.sends(kMtu + 112);
    ASSERT_EQ(carried.size(), 1U);
    EXPECT_EQ(carried[0].frame->size() - 2, kMost);
    EXPECT_TRUE(ethertype.sends(kMtu + 116).empty());
    EXPECT_EQ(ethertype.last_status(), Status::kLocalLength);

    RawStation ipv6(PacketKind::kRawIpv6);
    carried = ipv6.sends(40 + kMtu + 76, kUdp);
    ASSERT_EQ(carried.size(), 1U);
    EXPECT_EQ(carried[0].frame->size() - 2, kMost);
    EXPECT_TRUE(ipv6.sends(40 + kMtu + 80, kUdp).empty());
    EXPECT_EQ(ipv6.last_status(), Status::kLocalLength);

    // One that long from elsewhere is dropped; the longest is taken.
    RawStation receiver(PacketKind::kRawIpv6);
    net::Packet packet;
    packet.kind = PacketKind::kRawIpv6;
    for (const std::uint32_t length : {40 + kMtu + 76, 40 + kMtu + 80}) {
        packet.payload = {ipv6.station().at(0), length};
        receiver.station().post_receive(1, 0, 4096);
        receiver.station().deliver(packet);
        ASSERT_EQ(receiver.station().receives.size(), 1U);
        EXPECT_EQ(receiver.station().receives[0].byte_len, 40 + kMtu + 76);
    }
    EXPECT_EQ(receiver.station().count().dropped_length, 1U);
}

}  // namespace
}  // namespace uib::conformance
