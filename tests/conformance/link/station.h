// One port under test: the test is its peer, its management and its clock.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "net/link/link_port.h"
#include "net/wire/bytes.h"
#include "net/wire/headers.h"
#include "tests/conformance/rows.h"
#include "tests/unit/link/joined_ports.h"
#include "tests/unit/link/link_packets.h"
#include "tests/unit/net/wire_bytes.h"

namespace uib::net::link {

struct SentFrame {
    FrameStart start;
    Bytes bytes;

    [[nodiscard]] LrhFields lrh() const { return parse_lrh(std::span(bytes).first<kLrhBytes>()); }
    [[nodiscard]] FlowControlPacket update() const {
        FlowControlPacket packet;
        EXPECT_EQ(parse_link_packet(bytes, packet), LinkPacketError::kNone);
        return packet;
    }
};

/// Credits of a peer with room for everything.
inline constexpr std::uint16_t kPlenty = 2048;

class Station {
  public:
    explicit Station(const LinkConfig& config = {}, PortSettings settings = {}) : port(config) {
        settings.lid = kOwnLid;
        port.configure(settings, now);
        SlToVl each_its_own{};
        for (unsigned sl = 0; sl < each_its_own.size(); ++sl)
            each_its_own[sl] = static_cast<std::uint8_t>(sl);
        for (unsigned input = 0; input < config.input_ports; ++input) port.set_sl_to_vl(input, each_its_own);
    }

    // Management and the physical layer.
    bool command(PortState state) { return port.command(static_cast<std::uint8_t>(state), now); }
    void physical(bool up) { port.set_physical_link(up, now); }
    void to_init() { physical(true); }
    void to_arm() {
        to_init();
        command(PortState::kArm);
    }
    /// Active, with credits on all supported VLs and nothing left to send.
    void to_active() {
        to_arm();
        credits(kPlenty);
        command(PortState::kActive);
        ASSERT_EQ(port.state(), PortState::kActive);
        frames();
    }
    void wait(Time duration) { now += duration; }
    void wait_symbols(Time symbols) { now += symbols * port.config().symbol_time; }

    // The peer.
    void receives(const Bytes& bytes) { port.on_frame({.bytes = bytes}, now); }
    void receives_link(const Bytes& bytes) {
        port.on_frame({.start = FrameStart::kLink, .bytes = bytes}, now);
    }
    void update(const FlowControlPacket& packet) {
        Bytes bytes(kLinkPacketBytes);
        build_link_packet(packet, std::span(bytes).first<kLinkPacketBytes>());
        receives_link(bytes);
    }
    void credits(std::uint16_t fccl, std::uint16_t fctbs = 0) {
        for (std::uint8_t vl = 0; vl < port.supported_vls(); ++vl)
            update({.vl = vl, .fctbs = fctbs, .fccl = fccl});
    }
    /// A good packet to this port on the VL.
    static Bytes to_port(std::uint8_t vl, std::size_t payload = 64, std::uint32_t psn = 0) {
        Packet packet = vl == kVl15 ? smp_packet(psn) : data_packet(vl, payload, psn);
        packet.lrh.vl = vl;
        if (vl != kVl15) packet.lrh.dlid = kOwnLid;
        return wire_form(packet);
    }
    void data(std::uint8_t vl, std::size_t payload = 64, std::uint32_t psn = 0) {
        receives(to_port(vl, payload, psn));
    }

    // What comes out.
    std::vector<SentFrame> frames(std::size_t most = 1000) {
        std::vector<SentFrame> sent;
        Bytes out(port.max_frame_bytes());
        while (sent.size() < most) {
            const Frame frame = port.next_frame(now, out);
            if (frame.bytes.empty()) break;
            sent.push_back({frame.start, {frame.bytes.begin(), frame.bytes.end()}});
        }
        return sent;
    }
    std::vector<SentFrame> packets() { return of(FrameStart::kData); }
    std::vector<SentFrame> updates() { return of(FrameStart::kLink); }
    /// Packets received on the VL and not taken yet; takes them.
    int taken(std::uint8_t vl) {
        int count = 0;
        for (; !port.front(vl).empty(); port.pop(vl)) ++count;
        return count;
    }
    Enqueued send(std::uint8_t sl, std::size_t payload = 64, std::uint32_t psn = 0) {
        return port.enqueue(data_packet(sl, payload, psn), now);
    }
    Enqueued send_smp(std::uint32_t psn = 0) { return port.enqueue(smp_packet(psn), now); }
    [[nodiscard]] std::uint64_t count(PortCounter counter) { return port.counters().value(counter); }

    Time now = 1'000'000;
    LinkPort port;

  private:
    std::vector<SentFrame> of(FrameStart start) {
        std::vector<SentFrame> found;
        for (SentFrame& frame : frames())
            if (frame.start == start) found.push_back(std::move(frame));
        return found;
    }
};

inline std::uint32_t psn_of(std::span<const std::byte> packet) {
    Packet decoded;
    EXPECT_EQ(decode(packet, decoded), DecodeError::kNone);
    return decoded.bth.psn;
}

/// A packet whose bytes were changed by hand, with its CRCs right again.
template <typename Change>
Bytes changed(Bytes packet, Change change) {
    change(packet);
    repair_crcs(packet);
    return packet;
}

}  // namespace uib::net::link
