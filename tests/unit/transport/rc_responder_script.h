// What the packet scripts for the reliable responder, RC or XRC target, have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "engine/transport/aeth.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {

using net::Operation;

struct ResponderScript {
    static constexpr std::uint32_t kPsn = 0x1100;  // first PSN of the peer, 0x11
    using Reply = std::vector<std::pair<Operation, std::uint32_t>>;

    explicit ResponderScript(Service service, bool lend = true)
        : b(service, 0x12, lend), key(b.region->key()) {
        b.connect(0x11);
    }

    net::Packet packet(Operation operation, std::uint32_t psn, std::size_t length = 0, bool ack = false) {
        return packet_for(b, operation, kPsn + psn, std::span(data).first(length), ack);
    }
    void in(Operation operation, std::uint32_t psn, std::size_t length = 0, bool ack = false) {
        b.deliver(packet(operation, psn, length, ack));
    }
    net::Packet write(Operation operation, std::uint32_t psn, std::size_t length, std::uint32_t total,
                      bool ack = false) {
        net::Packet made = packet(operation, psn, length, ack);
        made.reth = {Station::kBase, key, total};
        return made;
    }
    net::Packet read(std::uint32_t psn, std::uint64_t offset, std::uint32_t length) {
        net::Packet made = packet(Operation::kReadRequest, psn);
        made.reth = {Station::kBase + offset, key, length};
        return made;
    }
    net::Packet add(std::uint32_t psn, std::uint64_t offset, std::uint64_t value) {
        net::Packet made = packet(Operation::kFetchAdd, psn);
        made.atomic = {Station::kBase + offset, key, value, 0};
        return made;
    }
    net::Packet atomic_write(std::uint32_t psn, std::uint64_t offset) {
        net::Packet made = packet(Operation::kAtomicWrite, psn, 8);
        made.reth = {Station::kBase + offset, key, 8};
        return made;
    }
    std::uint64_t word(std::uint64_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, b.at(offset), sizeof value);
        return value;
    }
    /// What goes out now, as (operation, relative PSN).
    Reply reply() {
        b.run();
        return taken();
    }
    /// What goes out in one run with room for `packets`.
    Reply reply_in_part(std::uint32_t packets) {
        b.room = packets;
        b.qp->run(100);
        b.mover().end_turn();
        b.room = 100;
        return taken();
    }
    /// The only packet that goes out now is this NAK; RNR NAKs and sequence NAKs leave the QP running.
    void expect_nak(std::uint8_t syndrome, std::uint32_t psn) {
        EXPECT_EQ(reply(), (Reply{{Operation::kAcknowledge, psn}}));
        if (last.empty()) return;
        EXPECT_EQ(last.back().packet.aeth.syndrome, syndrome);
        const bool fatal = aeth_kind(syndrome) == AethKind::kNak && syndrome != kNakSequence;
        EXPECT_EQ(b.qp->state() == QpState::kError, fatal);
    }

    Station b;
    std::uint32_t key;  ///< of the station's region, also when that is gone
    std::vector<std::byte> data = std::vector<std::byte>(5000, std::byte{0x5A});
    std::vector<SentPacket> last;

  private:
    Reply taken() {
        last = b.take_out();
        Reply list;
        for (const SentPacket& sent : last)
            list.emplace_back(sent.operation(), (sent.psn() - kPsn) & 0xFFFFFF);
        return list;
    }
};

struct RcResponderScript : ::testing::Test, ResponderScript {
    RcResponderScript() : ResponderScript(Service::kRc) {}
};

}  // namespace uib::transport::testing
