// End-to-end credits: what the responder tells, what the requester makes of it (IBA 9.7.7.2).
#include <gtest/gtest.h>

#include "engine/transport/aeth.h"
#include "engine/transport/credits.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

struct Credits : ::testing::Test {
    Credits() : a(Service::kRc, 0x11) { a.connect(0x12); }
    void post(WorkOpcode opcode, std::uint32_t length) {
        Work work;
        work.opcode = opcode;
        work.entries = {a.entry(0, length)};
        a.post(work);
    }
    std::size_t sent() {
        a.run();
        return a.take_out().size();
    }
    void ack(std::uint32_t psn, std::uint8_t code, std::uint32_t msn) {
        a.deliver(response_for(a, Operation::kAcknowledge, 0x1100 + psn, code, msn));
    }
    Station a;
};

TEST_F(Credits, first_send_goes_one_packet_and_waits) {
    post(WorkOpcode::kSend, 700);
    post(WorkOpcode::kSend, 10);
    a.run();
    ASSERT_EQ(a.out.size(), 1U);
    EXPECT_TRUE(a.out[0].packet.bth.ack_req);
    EXPECT_EQ(a.out[0].operation(), Operation::kSendFirst);
    a.take_out();
    ack(0, encode_credits(2), 0);
    EXPECT_EQ(sent(), 3U);
}

TEST_F(Credits, writes_and_reads_need_none) {
    for (int i = 0; i < 3; ++i) post(WorkOpcode::kRdmaWrite, 700);
    post(WorkOpcode::kRdmaRead, 10);
    EXPECT_EQ(sent(), 10U);
}

TEST_F(Credits, limited_write_with_immediate_goes_whole_and_stops) {
    post(WorkOpcode::kRdmaWriteWithImmediate, 700);
    post(WorkOpcode::kRdmaWrite, 10);
    a.run();
    ASSERT_EQ(a.out.size(), 3U);
    EXPECT_TRUE(a.out[2].packet.bth.ack_req);
    a.take_out();
    ack(2, encode_credits(0), 1);
    EXPECT_EQ(sent(), 1U);
}

TEST_F(Credits, as_many_messages_as_credits_then_one_packet) {
    for (int i = 0; i < 6; ++i) post(WorkOpcode::kSend, 10);
    EXPECT_EQ(sent(), 1U);
    ack(0, encode_credits(3), 1);
    EXPECT_EQ(sent(), 4U);  // three with credit and the limited one
    ack(4, encode_credits(0), 5);
    EXPECT_EQ(sent(), 1U);
}

TEST_F(Credits, invalid_code_turns_credits_off) {
    for (int i = 0; i < 6; ++i) post(WorkOpcode::kSend, 700);
    EXPECT_EQ(sent(), 1U);
    ack(0, kNoCreditCode, 0);
    EXPECT_EQ(sent(), 17U);
}

TEST_F(Credits, unsolicited_ack_brings_credits) {
    for (int i = 0; i < 4; ++i) post(WorkOpcode::kSend, 10);
    ack(0xFFFFFF, encode_credits(8), 0);  // initial PSN - 1
    EXPECT_EQ(sent(), 4U);
}

TEST_F(Credits, resend_needs_none) {
    post(WorkOpcode::kSend, 10);
    EXPECT_EQ(sent(), 1U);
    ack(0, kNakSequence, 0);
    EXPECT_EQ(sent(), 1U);
}

TEST(ResponderCredits, count_receives_beyond_the_msn) {
    Station b(Service::kRc, 0x12);
    b.connect(0x11);
    for (unsigned i = 0; i < 5; ++i) b.post_receive(i, 0, 1000);
    const std::byte data[256] = {};
    b.deliver(packet_for(b, Operation::kSendFirst, 0x1100, data, true));
    b.run();
    ASSERT_EQ(b.out.size(), 1U);
    EXPECT_EQ(b.out[0].packet.aeth.syndrome, encode_credits(5));  // four posted and the one in use
    EXPECT_EQ(b.out[0].packet.aeth.msn, 0U);
    b.take_out();
    b.deliver(packet_for(b, Operation::kSendLast, 0x1101, std::span(data, 1), true));
    b.run();
    ASSERT_EQ(b.out.size(), 1U);
    EXPECT_EQ(b.out[0].packet.aeth.syndrome, encode_credits(4));
    EXPECT_EQ(b.out[0].packet.aeth.msn, 1U);
}

TEST(ResponderCredits, shared_queue_has_none) {
    Station b(Service::kRc, 0x12);
    b.receive_queue.is_shared = true;
    b.connect(0x11);
    b.post_receive(0, 0, 1000);
    b.deliver(packet_for(b, Operation::kSendOnly, 0x1100, {}, true));
    b.run();
    ASSERT_EQ(b.out.size(), 1U);
    EXPECT_EQ(b.out[0].packet.aeth.syndrome, kNoCreditCode);
    EXPECT_TRUE((b.receives.at(0).flags & ipc::kCqeSrq) != 0);
}

}  // namespace
}  // namespace uib::transport::testing
