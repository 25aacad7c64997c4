// What packets a reliable requester makes of its work requests: opcodes, headers, lengths (IBA 9.2, 9.3, 9.4,
// 9.7.3.3, 9.7.3.4; Tables 38 and 43), read from the bytes of the wire.
#include "engine/memory/null_space.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::size_t kEnvelope = 8 + 12 + 4 + 2;  // LRH, BTH, ICRC, VCRC
constexpr std::size_t kXrceth = 4;

struct WirePacket {
    unsigned operation;     // OpCode[4:0]
    std::size_t extension;  // bytes of the extension headers, on RC
    std::size_t payload;
};

struct Case {
    WorkOpcode opcode;
    std::uint32_t length;
    std::vector<WirePacket> packets;
};

const std::vector<Case>& cases() {
    static const std::vector<Case> all = {
        {WorkOpcode::kSend, 0, {{0x04, 0, 0}}},
        {WorkOpcode::kSend, 700, {{0x00, 0, 256}, {0x01, 0, 256}, {0x02, 0, 188}}},
        {WorkOpcode::kSendWithImmediate, 30, {{0x05, 4, 30}}},
        {WorkOpcode::kSendWithImmediate, 257, {{0x00, 0, 256}, {0x03, 4, 1}}},
        {WorkOpcode::kSendWithInvalidate, 30, {{0x17, 4, 30}}},
        {WorkOpcode::kSendWithInvalidate, 512, {{0x00, 0, 256}, {0x16, 4, 256}}},
        {WorkOpcode::kRdmaWrite, 0, {{0x0A, 16, 0}}},
        {WorkOpcode::kRdmaWrite, 700, {{0x06, 16, 256}, {0x07, 0, 256}, {0x08, 0, 188}}},
        {WorkOpcode::kRdmaWriteWithImmediate, 256, {{0x0B, 20, 256}}},
        {WorkOpcode::kRdmaWriteWithImmediate, 700, {{0x06, 16, 256}, {0x07, 0, 256}, {0x09, 4, 188}}},
        {WorkOpcode::kRdmaRead, 700, {{0x0C, 16, 0}}},
        {WorkOpcode::kCompareSwap, 8, {{0x13, 28, 0}}},
        {WorkOpcode::kFetchAdd, 8, {{0x14, 28, 0}}},
        {WorkOpcode::kAtomicWrite, 8, {{0x1D, 16, 8}}},
    };
    return all;
}

TEST_P(Requester, C9_2_opcodes_and_headers_are_those_of_table_38) {
    ROWS("C9-1", "C9-2", "C9-14", "C9-19", "C9-23", "o9-15", "C9-67", "C9-68");
    const std::uint8_t service = is_xrc() ? 0xA0 : 0x00;
    for (const Case& one : cases()) {
        Peer one_peer(GetParam());
        one_peer.connect();
        if (!is_xrc()) one_peer.sends(ack(-1));
        one_peer.posts(one.opcode, one.length);
        const std::vector<Carried> heard = one_peer.hears_all();
        ASSERT_EQ(heard.size(), one.packets.size());
        for (std::size_t i = 0; i < heard.size(); ++i) {
            const WirePacket& want = one.packets[i];
            const std::size_t extension = want.extension + (is_xrc() ? kXrceth : 0);
            EXPECT_EQ(heard[i].byte(Part::kBth, 0), service | want.operation);
            EXPECT_EQ(heard[i].frame->size(), kEnvelope + extension + (want.payload + 3) / 4 * 4);
            EXPECT_EQ(heard[i].packet.payload.size(), want.payload);
        }
        one_peer.ends();
    }
}

/// Posts a request of `length` bytes with a solicited event and this value for ImmDt or IETH.
void post_solicited(Peer& peer, WorkOpcode opcode, std::uint32_t length, std::uint32_t value) {
    Work work = peer.work(opcode, length);
    work.flags = ipc::kWorkSignaled | ipc::kWorkSolicited;
    work.immediate = value;
    peer.posts(work);
}

// SE belongs to the last packet of what takes a receive, ImmDt and IETH to the last of what has one.
TEST_P(Requester, C9_3_the_last_packet_has_the_solicited_bit_and_the_immediate) {
    ROWS("C9-3", "C9-2", "C9-68");
    connect_without_credits();
    post_solicited(peer, WorkOpcode::kSend, 300, 0);
    post_solicited(peer, WorkOpcode::kSend, 10, 0);
    post_solicited(peer, WorkOpcode::kSendWithImmediate, 300, 0x11223344);
    post_solicited(peer, WorkOpcode::kSendWithImmediate, 10, 0x55667788);
    post_solicited(peer, WorkOpcode::kSendWithInvalidate, 300, 0x12340001);
    post_solicited(peer, WorkOpcode::kSendWithInvalidate, 10, 0x12340002);
    post_solicited(peer, WorkOpcode::kRdmaWriteWithImmediate, 300, 0x99AABBCC);
    post_solicited(peer, WorkOpcode::kRdmaWriteWithImmediate, 10, 0xDDEEFF00);
    const Frame with_event[] = {
        send_first(0).solicited(false),
        send_last(1, 44).solicited(),
        send_only(2, 10).solicited(),
        send_first(3).solicited(false),
        send_last_imm(4, 44, 0x11223344).solicited(),
        send_only_imm(5, 10, 0x55667788).solicited(),
        send_first(6).solicited(false),
        send_last_inv(7, 44, 0x12340001).solicited(),
        send_only_inv(8, 10, 0x12340002).solicited(),
        write_first(9, kRemoteKey, kRemoteAddress, 300).solicited(false),
        write_last_imm(10, 44, 0x99AABBCC).solicited(),
        write_only_imm(11, kRemoteKey, kRemoteAddress, 10, 0xDDEEFF00).solicited(),
    };
    for (const Frame& frame : with_event) peer.expects(frame);
    acknowledge(11, 8);
    post_solicited(peer, WorkOpcode::kRdmaWrite, 300, 0);
    post_solicited(peer, WorkOpcode::kRdmaWrite, 10, 0);
    post_solicited(peer, WorkOpcode::kRdmaRead, 10, 0);
    post_solicited(peer, WorkOpcode::kFetchAdd, 8, 0);
    const std::vector<Carried> without_event = peer.hears_all();
    ASSERT_EQ(without_event.size(), 5U);
    for (const Carried& heard : without_event) EXPECT_FALSE(heard.packet.bth.solicited);
}

TEST_P(Requester, C9_5_versions_and_reserved_bits_are_sent_as_zero) {
    ROWS("C9-5", "C9-6", "C9-7");
    XRC_ROWS("o9-3.a1");
    connect_without_credits();
    // Peer looks at every packet (Wire::violation); here on the literal bytes, for one of each kind.
    peer.posts(WorkOpcode::kSend, 700);
    peer.posts(WorkOpcode::kRdmaWriteWithImmediate, 10);
    peer.posts(WorkOpcode::kRdmaRead, 10);
    peer.posts(WorkOpcode::kFetchAdd, 8);
    const std::vector<Carried> heard = peer.hears_all();
    ASSERT_EQ(heard.size(), 6U);
    for (const Carried& one : heard) {
        EXPECT_EQ(one.byte(Part::kBth, 1) & 0x0F, 0) << "TVer";
        EXPECT_EQ(one.byte(Part::kBth, 4), 0) << "F, B, Resv6";
        EXPECT_EQ(one.byte(Part::kBth, 8) & 0x7F, 0) << "Resv7";
        if (is_xrc()) {
            EXPECT_EQ(one.byte(Part::kExtension, 0), 0) << "XRCETH";
        }
    }
}

TEST_P(Requester, o9_114_a5_all_packets_of_a_message_name_the_same_srq) {
    ROWS("C9-1");
    XRC_ROWS("o9-3.a1", "o9-114.a5");
    if (!is_xrc()) return;
    connect();
    peer.posts(WorkOpcode::kSend, 700);
    peer.posts(WorkOpcode::kRdmaWrite, 700);
    peer.posts(WorkOpcode::kRdmaRead, 700);
    peer.posts(WorkOpcode::kCompareSwap, 8);
    const std::vector<Carried> heard = peer.hears_all();
    ASSERT_EQ(heard.size(), 8U);
    for (const Carried& one : heard) {
        EXPECT_EQ(one.byte(Part::kExtension, 0), 0);
        EXPECT_EQ(one.byte(Part::kExtension, 1), kXrcSrq >> 16);
        EXPECT_EQ(one.byte(Part::kExtension, 2), (kXrcSrq >> 8) & 0xFF);
        EXPECT_EQ(one.byte(Part::kExtension, 3), kXrcSrq & 0xFF);
    }
}

TEST_P(Requester, C9_11_a_message_longer_than_the_mtu_is_cut_into_packets_of_its_size) {
    ROWS("C9-11", "C9-17", "C9-67", "C9-69", "C9-62", "C9-64");
    XRC_ROWS("o9-4", "o9-29", "o9-31");
    connect_without_credits();
    peer.machine().fill(0, 700, 1);
    peer.posts(WorkOpcode::kSend, 700);
    peer.posts(WorkOpcode::kRdmaWrite, 700);
    peer.expects(send_first(0).bytes(1, 0));
    peer.expects(send_middle(1).bytes(1, 256));
    peer.expects(send_last(2, 188).bytes(1, 512));
    peer.expects(write_first(3, kRemoteKey, kRemoteAddress, 700).bytes(1, 0));
    peer.expects(write_middle(4).bytes(1, 256));
    peer.expects(write_last(5, 188).bytes(1, 512).asks_ack());
    acknowledge(5, 2);
}

TEST_P(Requester, C9_69_first_and_middle_packets_are_full_at_every_mtu) {
    ROWS("C9-69", "C9-71");
    for (const std::uint32_t mtu : {256U, 512U, 1024U, 2048U, 4096U}) {
        Peer one_peer(GetParam());
        one_peer.parameters().mtu_bytes = mtu;
        one_peer.connect();
        one_peer.posts(WorkOpcode::kRdmaWrite, 2 * mtu + 1);
        one_peer.posts(WorkOpcode::kRdmaWrite, 2 * mtu);
        one_peer.expects(write_first(0, kRemoteKey, kRemoteAddress, 2 * mtu + 1).length(mtu));
        one_peer.expects(write_middle(1).length(mtu));
        one_peer.expects(write_last(2, 1));
        one_peer.expects(write_first(3, kRemoteKey, kRemoteAddress, 2 * mtu).length(mtu));
        one_peer.expects(write_last(4, mtu));
        one_peer.ends();
    }
}

TEST_P(Requester, C9_70_a_message_up_to_the_mtu_is_one_packet) {
    ROWS("C9-70", "C9-71");
    connect_without_credits();
    peer.posts(WorkOpcode::kSend, 0);
    peer.posts(WorkOpcode::kSend, 1);
    peer.posts(WorkOpcode::kSend, 256);
    peer.posts(WorkOpcode::kRdmaWrite, 0);
    peer.posts(WorkOpcode::kRdmaWrite, 256);
    peer.expects(send_only(0, 0));
    peer.expects(send_only(1, 1).pad(3));
    peer.expects(send_only(2, 256).pad(0));
    peer.expects(write_only(3, kRemoteKey, kRemoteAddress, 0));
    peer.expects(write_only(4, kRemoteKey, kRemoteAddress, 256));
    acknowledge(4, 5);
}

// A region of 4 GiB that holds nothing.
std::uint32_t endless_key(Peer& peer) {
    memory::RegionInit init;
    init.pd = 1;
    init.access = ipc::kAccessLocalWrite;
    init.length = std::uint64_t{1} << 32;
    init.space = std::make_shared<memory::NullSpace>();
    return peer.machine().keys().add_region(std::move(init))->key();
}

TEST_P(Requester, C9_9_a_message_may_have_2_to_the_31_bytes_and_not_one_more) {
    ROWS("C9-9", "C9-10", "C9-16", "C9-22", "C9-72");
    constexpr std::uint32_t kLongest = 1U << 31;
    for (const WorkOpcode opcode : {WorkOpcode::kSend, WorkOpcode::kRdmaWrite, WorkOpcode::kRdmaRead}) {
        Peer one_peer(GetParam());
        one_peer.parameters().mtu_bytes = 4096;
        one_peer.connect();
        if (!is_xrc()) one_peer.sends(ack(-1));
        Work work = one_peer.work(opcode, 0);
        work.entries = {{0, kLongest, endless_key(one_peer)}};
        one_peer.hold();
        one_peer.posts(work);
        one_peer.step(2);
        if (opcode == WorkOpcode::kSend) one_peer.expects(send_first(0).length(4096));
        if (opcode == WorkOpcode::kRdmaWrite)
            one_peer.expects(write_first(0, kRemoteKey, kRemoteAddress, kLongest).length(4096));
        if (opcode == WorkOpcode::kRdmaRead) one_peer.expects(read(0, kRemoteKey, kRemoteAddress, kLongest));
        one_peer.completes_nothing();

        Peer longer(GetParam());
        longer.connect();
        work.entries = {{0, kLongest, endless_key(longer)}, {0, 1, endless_key(longer)}};
        longer.posts(work);
        longer.expects_nothing();
        longer.completes(Status::kLocalLength);
        EXPECT_EQ(longer.state(), QpState::kError);
        longer.ends();
    }
}

TEST_P(Requester, C9_61_no_more_than_2_to_the_23_psns_are_outstanding) {
    ROWS("C9-61");
    connect();
    Work work = peer.work(WorkOpcode::kRdmaRead, 0);
    work.entries = {{0, 1U << 31, endless_key(peer)}};
    peer.posts(work);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.expects(read(0, kRemoteKey, kRemoteAddress, 1U << 31));
    peer.expects_nothing();
    peer.sends(response_first(0));
    peer.expects(write_only(1 << 23, kRemoteKey, kRemoteAddress, 10));
}

}  // namespace
}  // namespace uib::conformance
