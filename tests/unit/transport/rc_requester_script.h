// Fixture of the packet scripts for the RC requester.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/transport/station.h"

namespace uib::transport::testing {

using ipc::WorkOpcode;
using net::Operation;

struct RcRequesterScript : ::testing::Test {
    static constexpr std::uint32_t kPsn = 0x1100;  // first PSN of station 0x11
    RcRequesterScript() : a(Service::kRc, 0x11) {}
    void connect() { a.connect(0x12); }
    void post(WorkOpcode opcode, std::uint32_t length, std::uint8_t flags = ipc::kWorkSignaled) {
        Work work;
        work.opcode = opcode;
        work.flags = flags;
        if (length > 0) work.entries = {a.entry(1000 * a.send_queue.works.size(), length)};
        work.remote_address = 0x5000;
        work.rkey = 0x99;
        a.post(work);
    }
    void answer(Operation operation, std::uint32_t psn, std::uint8_t syndrome = 0x1F,
                std::span<const std::byte> payload = {}) {
        a.deliver(response_for(a, operation, kPsn + psn, syndrome, 0, payload));
    }
    void ack(std::uint32_t psn, std::uint8_t syndrome = 0x1F) {
        answer(Operation::kAcknowledge, psn, syndrome);
    }
    /// PSNs (relative) that go out now.
    std::vector<std::uint32_t> psns() {
        a.run();
        std::vector<std::uint32_t> out;
        for (const SentPacket& sent : a.take_out()) out.push_back((sent.psn() - kPsn) & 0xFFFFFF);
        return out;
    }
    Station a;
};
using Psns = std::vector<std::uint32_t>;

}  // namespace uib::transport::testing
