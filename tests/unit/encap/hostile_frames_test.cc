// Whatever frames an Ethernet port brings: under the sanitizers, nothing outside them is read; each is taken
// or counted by the cause of its refusal.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "net/encap/ib_trunk.h"
#include "net/encap/roce_frame.h"
#include "net/port/memory_port.h"
#include "net/wire/bytes.h"
#include "net/wire/gid.h"
#include "tests/simulation/random.h"
#include "tests/unit/net/wire_bytes.h"

namespace uib::net {
namespace {

class HostileRoceFrames : public ::testing::Test {
  protected:
    Packet packet(bool ipv4) {
        Packet made;
        made.has_grh = true;
        made.grh.hop_limit = 64;
        made.grh.traffic_class = static_cast<std::uint8_t>(random_.next());
        if (ipv4) {
            made.grh.sgid = gid_of_ipv4(0x0A000001);
            made.grh.dgid = gid_of_ipv4(0x0A000002);
        } else {
            made.grh.sgid = {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
            made.grh.dgid = {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
            made.grh.flow_label = random_.draw32(0, 0xFFFFF);
        }
        made.bth.opcode = static_cast<std::uint8_t>(random_.chance(0.7) ? 0x04 : random_.next());
        made.bth.dest_qp = random_.draw32(0, 0xFFFFFF);
        made.bth.psn = random_.draw32(0, 0xFFFFFF);
        made.payload = std::span(payload_).first(random_.draw(0, payload_.size()));
        made.bth.pad = static_cast<std::uint8_t>(-made.payload.size() & 3);
        return made;
    }
    /// Makes the sums right again of a frame whose IP header starts at `ip`, as far as there is room for
    /// them.
    static void repair(Bytes& frame, std::size_t ip, bool ipv4) {
        const std::size_t udp = ip + (ipv4 ? 20 : 40);
        if (frame.size() < udp + 8 + 16) return;
        if (ipv4) {
            frame[ip + 10] = frame[ip + 11] = std::byte{0};
            std::uint32_t sum = 0;
            for (std::size_t i = 0; i < 20; i += 2) sum += load_be<std::uint16_t>(&frame[ip + i]);
            while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
            store_be<2>(&frame[ip + 10], static_cast<std::uint16_t>(~sum));
        }
        // The datagram ends where the header says, if the frame reaches that far.
        const std::size_t said = ip + (ipv4 ? 0 : 40) + load_be<std::uint16_t>(&frame[ip + (ipv4 ? 2 : 4)]);
        const std::size_t end = std::min(said, frame.size());
        if (end < udp + 8 + 16) return;
        Bytes covered(8, std::byte{0xFF});
        covered.insert(covered.end(), frame.begin() + static_cast<std::ptrdiff_t>(ip),
                       frame.begin() + static_cast<std::ptrdiff_t>(end - 4));
        const std::size_t masked = 8 + udp - ip;
        if (ipv4) {
            for (const std::size_t at : {9, 16, 18, 19}) covered[at] = std::byte{0xFF};
        } else {
            covered[8] |= std::byte{0x0F};
            for (const std::size_t at : {9, 10, 11, 15}) covered[at] = std::byte{0xFF};
        }
        for (const std::size_t at : {masked + 6, masked + 7, masked + 12}) covered[at] = std::byte{0xFF};
        put_little_endian(std::span(frame).subspan(end - 4), bitwise_crc32(covered));
    }

    simulation::Random random_{5};
    const Bytes payload_ = Bytes(40, std::byte{0x5A});
};

TEST_F(HostileRoceFrames, AreTakenApartOrRefusedForOneCause) {
    std::set<RoceError> seen;
    std::set<DecodeError> details;
    for (int round = 0; round < 40'000; ++round) {
        const bool ipv4 = random_.chance(0.5);
        RoceEnvelope envelope{.destination = {2, 0, 0, 0, 0, 2}, .source = {2, 0, 0, 0, 0, 1}, .vlan = {}};
        if (random_.chance(0.3)) envelope.vlan = static_cast<std::uint16_t>(random_.next());
        const Packet good = packet(ipv4);
        Bytes frame(roce_frame_bytes(good, envelope.vlan.has_value()));
        encode_roce(good, envelope, frame);
        const std::size_t ip = envelope.vlan ? 18 : 14;
        for (std::uint64_t i = random_.draw(0, 2); i > 0; --i)
            frame[random_.draw(random_.chance(0.1) ? 0 : ip, std::min(frame.size() - 1, ip + 70))] =
                static_cast<std::byte>(random_.next());
        if (random_.chance(0.1)) frame.resize(random_.draw(0, frame.size()));
        if (random_.chance(0.7)) repair(frame, ip, ipv4);
        // An allocation of exactly this size, so that the sanitizer sees one byte too many.
        const Bytes exact(frame);
        Packet got;
        RoceEnvelope unwrapped;
        DecodeError detail{};
        const RoceError error = decode_roce(exact, got, unwrapped, detail);
        seen.insert(error);
        if (error == RoceError::kTransport) details.insert(detail);
        if (error != RoceError::kNone) continue;
        // What was accepted is written again as a frame that says the same.
        Bytes again(roce_frame_bytes(got, unwrapped.vlan.has_value()));
        encode_roce(got, unwrapped, again);
        Packet same;
        ASSERT_EQ(decode_roce(again, same, unwrapped, detail), RoceError::kNone) << round;
        ASSERT_EQ(describe(same), describe(got)) << round;
    }
    for (std::size_t i = 0; i < kRoceErrorCount; ++i)
        EXPECT_TRUE(seen.contains(static_cast<RoceError>(i)) ||
                    static_cast<RoceError>(i) == RoceError::kRoceV1)
            << name_of(static_cast<RoceError>(i));
    EXPECT_EQ(details,
              (std::set{DecodeError::kTooShort, DecodeError::kTransportVersion, DecodeError::kPadding}));
}

// Each check by a frame in which all the others are satisfied.
TEST_F(HostileRoceFrames, EachCheckRefusesByItself) {
    const auto after = [&](bool ipv4, const auto& change) {
        Packet good = packet(ipv4);
        good.bth.opcode = 0x04;
        good.payload = payload_;
        good.bth.pad = 0;
        Bytes frame(roce_frame_bytes(good, false));
        encode_roce(good, {}, frame);
        change(frame);
        repair(frame, 14, ipv4);
        Packet got;
        RoceEnvelope envelope;
        DecodeError detail{};
        return decode_roce(frame, got, envelope, detail);
    };
    const auto set = [](std::size_t at, int value) {
        return [=](Bytes& frame) { frame[14 + at] = static_cast<std::byte>(value); };
    };
    for (const bool ipv4 : {true, false}) EXPECT_EQ(after(ipv4, [](Bytes&) {}), RoceError::kNone);
    EXPECT_EQ(after(true, set(0, 0x46)), RoceError::kIpHeader) << "options";
    EXPECT_EQ(after(true, set(0, 0x55)), RoceError::kIpHeader) << "version";
    EXPECT_EQ(after(true, set(6, 0x20)), RoceError::kFragment) << "more fragments";
    EXPECT_EQ(after(true, set(6, 0x01)), RoceError::kFragment) << "not the first";
    EXPECT_EQ(after(true, set(7, 0x01)), RoceError::kFragment) << "not the first";
    EXPECT_EQ(after(true, set(6, 0x00)), RoceError::kNone) << "that it may be fragmented does not matter";
    EXPECT_EQ(after(true, set(9, 6)), RoceError::kOtherProtocol);
    EXPECT_EQ(after(true, set(2, 0x10)), RoceError::kTruncated);
    EXPECT_EQ(after(true, [](Bytes& frame) { store_be<2>(&frame[16], std::uint16_t{19}); }),
              RoceError::kIpHeader)
        << "shorter than its own header";
    EXPECT_EQ(after(true, set(22, 0)), RoceError::kOtherProtocol) << "UDP port";
    EXPECT_EQ(after(true, set(25, 1)), RoceError::kUdpLength);
    EXPECT_EQ(after(false, set(0, 0x50)), RoceError::kIpHeader) << "version";
    EXPECT_EQ(after(false, set(6, 6)), RoceError::kOtherProtocol);
    EXPECT_EQ(after(false, set(4, 0x10)), RoceError::kTruncated);
    EXPECT_EQ(after(false, set(42, 0)), RoceError::kOtherProtocol) << "UDP port";
    EXPECT_EQ(after(false, set(45, 1)), RoceError::kUdpLength);
    EXPECT_EQ(after(false, set(49, 0x01)), RoceError::kTransport) << "BTH:TVer";
}

TEST(HostileTrunkFrames, AreCountedOnceOrBelongToALink) {
    simulation::Random random(11);
    const MacAddress own = {2, 0, 0, 0, 0, 1};
    auto port = std::make_unique<MemoryPort>(own, 4500);
    MemoryPort& wire = *port;
    IbTrunkOptions options;
    options.slots = 3;
    options.identity = 77;
    options.link.role = link::PortRole::kSwitch;
    IbTrunk trunk(std::move(port), options);
    const auto sum = [&] {
        const IbTrunkCounters& counters = trunk.counters();
        return counters.rx_foreign + counters.rx_other_host + counters.rx_malformed + counters.rx_no_slot +
               counters.rx_unknown_peer + counters.mtu_mismatch;
    };
    Time now = 1'000'000'000;
    std::uint64_t to_links = 0;
    std::uint64_t hellos = 0;
    for (int round = 0; round < 30'000; ++round) {
        Bytes frame(random.draw(16, 90));
        for (std::byte& byte : frame) byte = static_cast<std::byte>(random.chance(0.5) ? 0 : random.next());
        std::memcpy(frame.data(), own.data(), own.size());
        if (random.chance(0.1))
            std::fill_n(frame.begin(), 6, static_cast<std::byte>(random.chance(0.5) ? 0xFF : 4));
        const MacAddress peer = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(random.draw(2, 6))};
        std::memcpy(frame.data() + 6, peer.data(), peer.size());
        store_be<2>(&frame[12], std::uint16_t{0x88B5});
        frame[14] = static_cast<std::byte>(random.chance(0.95) ? random.draw(0, 2) : random.next());
        frame[15] = std::byte{1};
        if (frame[14] == std::byte{2} && frame.size() >= 33) {
            store_be<8>(&frame[16], std::uint64_t{peer[5]});
            store_be<8>(&frame[24], std::uint64_t{random.chance(0.9) ? 77U : 78U});
            frame[32] = std::byte{static_cast<unsigned char>(random.chance(0.9) ? 5 : random.draw(0, 255))};
        }
        if (random.chance(0.1))
            frame[random.draw(0, frame.size() - 1)] = static_cast<std::byte>(random.next());
        if (random.chance(0.1)) frame.resize(random.draw(0, frame.size()));
        const std::uint64_t before = sum();
        wire.arriving.push_back(Bytes(frame));
        EXPECT_TRUE(trunk.receive(now));
        const std::uint64_t counted = sum() - before;
        ASSERT_LE(counted, 1U);
        if (counted == 0) {
            ASSERT_GE(frame.size(), 16U);
            const auto kind = std::to_integer<unsigned>(frame[14]);
            ASSERT_LE(kind, 2U);
            ++(kind == 2 ? hellos : to_links);
        }
        trunk.send(now);
        trunk.end_turn();
        wire.sent.clear();
        now += random.draw(0, 2'000'000);
    }
    EXPECT_GT(to_links, 1000U);
    EXPECT_GT(hellos, 1000U);
    EXPECT_GT(trunk.counters().rx_foreign, 0U);
    EXPECT_GT(trunk.counters().rx_other_host, 0U);
    EXPECT_GT(trunk.counters().rx_malformed, 0U);
    EXPECT_GT(trunk.counters().rx_no_slot, 0U);
    EXPECT_GT(trunk.counters().rx_unknown_peer, 0U);
    EXPECT_GT(trunk.counters().mtu_mismatch, 0U);
}

}  // namespace
}  // namespace uib::net
