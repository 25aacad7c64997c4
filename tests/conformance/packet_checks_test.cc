// Checks of section 9.6 on the BTH, the GRH, LIDs and P_Key that a packet passes before its service looks at
// it, on the bytes of the wire. Connected services; datagrams are in datagram_checks_test.cc.
//
// "Dropped" is: no answer, no receive used, nothing told to the client, the expected PSN as it was, which the
// same request without the fault shows.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

using Change = std::function<void(Frame&)>;

net::Gid gid(std::uint8_t last, std::uint64_t prefix = 0xFD00'0000'0000'0001) {
    net::Gid out{};
    for (unsigned i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
    out[15] = last;
    return out;
}

/// A responder on RC, XRC and UC: the checks are theirs alike.
class Connected : public Conformance, public ::testing::WithParamInterface<transport::Service> {
  protected:
    Connected() : Conformance(GetParam()) {}
    static bool is_xrc() { return GetParam() == transport::Service::kXrcTarget; }
    static bool is_uc() { return GetParam() == transport::Service::kUc; }

    void connect_global() {
        transport::Path& path = peer.parameters().path;
        path.global = true;
        path.grh.sgid = gid(0x11);
        path.grh.dgid = gid(0x12);
        path.grh.hop_limit = 64;
        connect();
    }
    void dropped(Frame frame, Where where = Where::current()) {
        if (posted_++ == 0) peer.posts_receive(wr_id_, 0, 1000);
        peer.sends(frame.asks_ack());
        peer.expects_nothing(where);
        peer.receives_nothing(where);
        peer.raises_nothing(where);
    }
    /// The request that is due, perhaps with a change that must not matter.
    void accepted(Frame frame, Where where = Where::current()) {
        if (posted_ == 0) peer.posts_receive(wr_id_, 0, 1000);
        posted_ = 0;
        peer.sends(frame.asks_ack());
        if (!is_uc()) peer.expects(ack(psn_).msn(static_cast<std::uint32_t>(psn_) + 1), where);
        peer.receives(wr_id_++, Status::kSuccess, where);
        ++psn_;
    }
    [[nodiscard]] Frame due() const { return send_only(psn_, 100); }

  private:
    int psn_ = 0;
    std::uint64_t wr_id_ = 0;
    int posted_ = 0;
};

TEST_P(Connected, C9_36_a_version_other_than_0_is_dropped) {
    ROWS("C9-36");
    connect();
    for (std::uint8_t version = 1; version < 16; ++version) dropped(due().bits(Part::kBth, 1, version, 0x0F));
    accepted(due());
}

TEST_P(Connected, C9_6_reserved_bits_are_ignored) {
    ROWS("C9-6", "C9-7");
    XRC_ROWS("o9-3.a1");
    connect();
    for (unsigned bit = 0; bit < 8; ++bit) {
        const auto mask = static_cast<std::uint8_t>(1U << bit);
        accepted(due().bits(Part::kBth, 4, mask, mask));
        if (bit < 7) accepted(due().bits(Part::kBth, 8, mask, mask));
        if (is_xrc()) accepted(due().bits(Part::kExtension, 0, mask, mask));
    }
}

TEST_P(Connected, C9_6_the_icrc_covers_resv7_and_not_resv6) {
    ROWS("C9-6", "C9-7");
    connect();
    const Carried whole = Wire(peer.machine()).carry(due());
    std::vector<std::byte> frame = *whole.frame;
    net::Packet packet;
    frame[8 + 4] = std::byte{0xFF};
    EXPECT_EQ(net::decode(frame, packet, {true, false}), net::DecodeError::kNone);
    frame[8 + 8] ^= std::byte{0x01};
    EXPECT_EQ(net::decode(frame, packet, {true, false}), net::DecodeError::kIcrc);
}

TEST_P(Connected, C9_34_a_raw_packet_is_none_of_the_queue_pair_s) {
    ROWS("C9-34");
    connect();
    constexpr std::uint8_t kLnh = 0x03;
    dropped(due().bits(Part::kLrh, 1, 0, kLnh));
    dropped(due().bits(Part::kLrh, 1, 1, kLnh));
    accepted(due());
}

TEST_P(Connected, C9_35_the_first_check_in_the_order_of_the_figure_decides) {
    ROWS("C9-35");
    connect();
    // Each second fault would be answered, or end the connection, if its check came first.
    dropped(send_only(5, 100).bits(Part::kBth, 1, 1, 0x0F));
    dropped(send_middle(0).with([](net::Packet& packet) { packet.bth.pkey = 0x8001; }));
    dropped(write_only(0, 0xBAD, Station::kBase, 10).with([](net::Packet& packet) { packet.lrh.slid = 9; }));
    dropped(send_only(5, 100).with([](net::Packet& packet) { packet.has_grh = true; }));
    dropped(Frame(static_cast<Op>(0x1F), 0).service(net::Service::kUd));
    accepted(due());
}

TEST_P(Connected, C9_37_a_queue_pair_in_reset_init_or_error_takes_nothing) {
    if (is_uc()) {
        ROWS("C9-37", "C9-39", "C9-182");
    } else {
        ROWS("C9-37", "C9-39", "C9-76");
    }
    XRC_ROWS("o9-41", "o9-42");
    connect(QpState::kInit);
    dropped(due());
    peer.moves_to(QpState::kReset);
    dropped(due());
    peer.moves_to(QpState::kInit);
    dropped(due());
    EXPECT_NE(peer.machine().qp->receive_psn(), Wire::psn(1));
    peer.moves_to(QpState::kRtr);
    accepted(due());
    peer.raises(QpEvent::kCommunicationEstablished);
    peer.moves_to(QpState::kError);
    peer.sends(due().asks_ack());
}

TEST_P(Connected, C9_38_an_opcode_of_another_service_is_dropped) {
    ROWS("C9-38", "C9-39", "C9-47.2.1");
    connect();
    for (std::uint8_t service = 0; service < 8; ++service) {
        if (service == static_cast<std::uint8_t>(wire_service(GetParam()))) continue;
        dropped(due().bits(Part::kBth, 0, static_cast<std::uint8_t>(service << 5), 0xE0));
    }
    accepted(due());
}

TEST_P(Connected, C9_43_a_foreign_p_key_is_dropped) {
    ROWS("C9-43", "C9-51");
    peer.parameters().pkey = 0x8123;
    connect();
    const auto with_pkey = [&](std::uint16_t pkey) {
        return due().with([=](net::Packet& packet) { packet.bth.pkey = pkey; });
    };
    for (const std::uint16_t pkey : {0xFFFF, 0x8122, 0x0122, 0x8000, 0x0000, 0x0023, 0x7FFF})
        dropped(with_pkey(pkey));
    accepted(with_pkey(0x8123));
    accepted(with_pkey(0x0123));  // a limited member may talk to a full one
}

TEST_P(Connected, C9_43_limited_members_do_not_talk_to_each_other) {
    ROWS("C9-43");
    peer.parameters().pkey = 0x0123;
    connect();
    dropped(due().with([](net::Packet& packet) { packet.bth.pkey = 0x0123; }));
    accepted(due().with([](net::Packet& packet) { packet.bth.pkey = 0x8123; }));
}

TEST_P(Connected, C9_43_an_empty_entry_of_the_table_matches_nothing) {
    ROWS("C9-43");
    peer.parameters().pkey = 0x0000;
    connect();
    for (const std::uint16_t pkey : {0x0000, 0x8000, 0xFFFF})
        dropped(due().with([=](net::Packet& packet) { packet.bth.pkey = pkey; }));
}

TEST_P(Connected, C9_43_1_2_the_grh_is_there_exactly_if_the_path_has_one) {
    ROWS("C9-43.1.2");
    connect();
    dropped(due().with([](net::Packet& packet) {
        packet.has_grh = true;
        packet.grh.sgid = gid(0x12);
        packet.grh.dgid = gid(0x11);
    }));
    accepted(due());
}

TEST_P(Connected, C9_43_1_2_a_packet_without_the_grh_of_its_path_is_dropped) {
    ROWS("C9-43.1.2");
    connect_global();
    dropped(due().with([](net::Packet& packet) { packet.has_grh = false; }));
    accepted(due());
}

TEST_P(Connected, C9_44_another_next_header_is_dropped) {
    ROWS("C9-44");
    connect_global();
    for (const std::uint8_t next : {0x00, 0x11, 0x06, 0x1A, 0xFF}) dropped(due().bits(Part::kGrh, 6, next));
    accepted(due().bits(Part::kGrh, 6, 0x1B));
}

TEST_P(Connected, C9_45_another_ip_version_is_dropped) {
    ROWS("C9-45");
    connect_global();
    for (std::uint8_t version = 0; version < 16; ++version) {
        if (version == 6) continue;
        dropped(due().bits(Part::kGrh, 0, static_cast<std::uint8_t>(version << 4), 0xF0));
    }
    accepted(due());
}

TEST_P(Connected, C9_47_1_1_both_gids_must_be_those_of_the_path) {
    ROWS("C9-47.1.1");
    connect_global();
    constexpr std::uint64_t kDefault = 0xFE80'0000'0000'0000;
    const auto with_dgid = [&](const net::Gid& value) {
        return due().with([=](net::Packet& packet) { packet.grh.dgid = value; });
    };
    const auto with_sgid = [&](const net::Gid& value) {
        return due().with([=](net::Packet& packet) { packet.grh.sgid = value; });
    };
    const net::Gid reserved{};
    const net::Gid loopback = gid(1, 0);
    net::Gid multicast = gid(0x11);
    multicast[0] = 0xFF;
    for (const net::Gid& value : {reserved, loopback, multicast, gid(0x99), gid(0x11, 0xFD00'0000'0000'0002)})
        dropped(with_dgid(value));
    multicast[15] = 0x12;
    for (const net::Gid& value : {loopback, multicast, gid(0x99), gid(0x12, 0xFD00'0000'0000'0002)})
        dropped(with_sgid(value));
    accepted(due());
    accepted(with_dgid(gid(0x11, kDefault)));
    accepted(with_sgid(gid(0x12, kDefault)));
}

TEST_P(Connected, C9_52_both_lids_are_checked_in_full) {
    ROWS("C9-52", "C9-53", "C9-54", "C9-57");
    XRC_ROWS("o9-28");
    connect();
    for (unsigned bit = 0; bit < 16; ++bit) {
        const auto flip = static_cast<net::Lid>(1U << bit);
        dropped(due().with([=](net::Packet& packet) { packet.lrh.slid ^= flip; }));
        dropped(due().with([=](net::Packet& packet) { packet.lrh.dlid ^= flip; }));
    }
    accepted(due());
}

TEST_P(Connected, C9_55_the_permissive_lid_is_not_valid) {
    ROWS("C9-55");
    connect();
    dropped(due().with([](net::Packet& packet) { packet.lrh.dlid = net::kPermissiveLid; }));
    accepted(due());
}

TEST_P(Connected, C9_56_a_multicast_slid_is_not_valid) {
    ROWS("C9-56");
    // Not even where the path says it.
    peer.parameters().path.dlid = 0xC001;
    connect();
    for (const net::Lid lid : {0xC000, 0xC001, 0xFFFE})
        dropped(due().with([=](net::Packet& packet) { packet.lrh.slid = lid; }));
    accepted(due());
}

TEST_P(Connected, C9_54_the_slid_does_not_count_behind_a_grh_and_the_dlid_does) {
    ROWS("C9-54", "C9-53");
    connect_global();
    dropped(due().with([](net::Packet& packet) { packet.lrh.dlid ^= 1; }));
    accepted(due().with([](net::Packet& packet) { packet.lrh.slid = 0x4321; }));
}

INSTANTIATE_TEST_SUITE_P(On, Connected,
                         ::testing::Values(transport::Service::kRc, transport::Service::kUc,
                                           transport::Service::kXrcTarget),
                         service_name);

}  // namespace
}  // namespace uib::conformance
