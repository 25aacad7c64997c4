// Atomic writes at the responder (IBA 1.7), RC and XRC alike.
#include "tests/unit/transport/rc_responder_script.h"

namespace uib::transport::testing {
namespace {

constexpr std::uint64_t kPattern = 0x5A5A5A5A5A5A5A5A;

template <Service kService>
struct AtomicWriteOn : ResponderScript {
    AtomicWriteOn() : ResponderScript(kService) {}
};

template <typename Script>
struct AtomicWrite : ::testing::Test {
    Script script;
};
using Scripts = ::testing::Types<AtomicWriteOn<Service::kRc>, AtomicWriteOn<Service::kXrcTarget>>;
TYPED_TEST_SUITE(AtomicWrite, Scripts);

TYPED_TEST(AtomicWrite, stores_the_word_and_answers_as_an_empty_read) {
    ResponderScript& s = this->script;
    s.b.deliver(s.atomic_write(0, 1024));
    EXPECT_EQ(s.word(1024), kPattern);
    EXPECT_EQ(s.word(1016), 0U);
    EXPECT_EQ(s.word(1032), 0U);
    EXPECT_EQ(s.reply(), (ResponderScript::Reply{{Operation::kReadResponseOnly, 0}}));
    EXPECT_TRUE(s.last[0].payload.empty());
    EXPECT_EQ(s.last[0].packet.aeth.msn, 1U);
    EXPECT_EQ(aeth_kind(s.last[0].packet.aeth.syndrome), AethKind::kAck);
    EXPECT_EQ(s.b.qp->receive_psn(), ResponderScript::kPsn + 1);
}

TYPED_TEST(AtomicWrite, duplicate_is_answered_and_not_executed) {
    ResponderScript& s = this->script;
    s.b.deliver(s.atomic_write(0, 1024));
    s.reply();
    std::memset(s.b.at(1024), 0, 8);
    s.b.deliver(s.atomic_write(0, 1024));
    EXPECT_EQ(s.reply(), (ResponderScript::Reply{{Operation::kReadResponseOnly, 0}}));
    EXPECT_EQ(s.last[0].packet.aeth.msn, 1U);
    EXPECT_EQ(s.word(1024), 0U);
}

TYPED_TEST(AtomicWrite, takes_a_place_among_reads_and_atomics) {
    ResponderScript& s = this->script;
    for (std::uint32_t i = 0; i < 5; ++i) s.b.deliver(s.atomic_write(i, 1024 + 8 * i));
    s.b.run();
    ASSERT_EQ(s.b.out.size(), 5U);
    EXPECT_EQ(s.b.out[3].operation(), Operation::kReadResponseOnly);
    EXPECT_EQ(s.b.out[4].packet.aeth.syndrome, kNakInvalidRequest);
    EXPECT_EQ(s.word(1024 + 32), 0U);
    EXPECT_EQ(s.b.count().read_resource_errors, 1U);
}

TYPED_TEST(AtomicWrite, wants_alignment) {
    ResponderScript& s = this->script;
    s.b.deliver(s.atomic_write(0, 1028));
    s.expect_nak(kNakInvalidRequest, 0);
    EXPECT_EQ(s.b.count().misaligned_atomics, 1U);
    EXPECT_EQ(s.word(1028), 0U);
}

TYPED_TEST(AtomicWrite, is_eight_bytes_long) {
    ResponderScript& s = this->script;
    net::Packet longer = s.atomic_write(0, 1024);
    longer.reth.dma_length = 16;
    s.b.deliver(longer);
    s.expect_nak(kNakInvalidRequest, 0);
    EXPECT_EQ(s.b.count().request_length_errors, 1U);
    TypeParam other;
    net::Packet shorter = other.atomic_write(0, 1024);
    shorter.payload = shorter.payload.first(4);
    other.b.deliver(shorter);
    other.expect_nak(kNakInvalidRequest, 0);
}

TYPED_TEST(AtomicWrite, needs_the_right_to_write) {
    ResponderScript& s = this->script;
    net::Packet wrong = s.atomic_write(0, 1024);
    wrong.reth.rkey ^= 1;
    s.b.deliver(wrong);
    s.expect_nak(kNakRemoteAccess, 0);
    Station reader(s.b.qp->config().service, 0x12);
    reader.parameters.access = ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic;
    reader.connect(0x11);
    net::Packet request = s.atomic_write(0, 1024);
    request.reth.rkey = reader.region->key();
    reader.deliver(request);
    EXPECT_EQ(reader.count().unsupported_requests, 1U);
    EXPECT_EQ(reader.events, std::vector<QpEvent>{QpEvent::kRequestError});
}

TYPED_TEST(AtomicWrite, follows_earlier_writes) {
    ResponderScript& s = this->script;
    std::vector<std::byte> ones(16, std::byte{1});
    net::Packet before = s.write(Operation::kWriteOnly, 0, 16, 16);
    before.payload = ones;
    s.b.deliver(before);
    s.b.deliver(s.atomic_write(1, 0));
    EXPECT_EQ(s.word(0), kPattern);
    EXPECT_EQ(s.word(8), 0x0101010101010101U);
}

TYPED_TEST(AtomicWrite, stands_alone) {
    ResponderScript& s = this->script;
    s.b.deliver(s.write(Operation::kWriteFirst, 0, 256, 512));
    s.b.deliver(s.atomic_write(1, 1024));
    s.expect_nak(kNakInvalidRequest, 1);
    EXPECT_EQ(s.b.count().opcode_sequence_errors, 1U);
}

}  // namespace
}  // namespace uib::transport::testing
