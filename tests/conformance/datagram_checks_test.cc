// Checks of section 9.6 on datagrams: Q_Key, what is not checked, and the rules of QP0 and QP1.
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint32_t kWellKnownQkey = 0x80010000;

/// One datagram QP of any number, and packets to it.
class Datagrams : public Conformance {
  protected:
    Datagrams() : Conformance(transport::Service::kUd) {}

    static void dropped(Peer& to, const Frame& frame, Where where = Where::current()) {
        to.posts_receive(7, 0, 1000);
        to.sends(frame);
        to.expects_nothing(where);
        to.receives_nothing(where);
        to.raises_nothing(where);
        to.machine().receive_queue.posted.clear();
    }
    static void accepted(Peer& to, const Frame& frame, Where where = Where::current()) {
        to.posts_receive(7, 0, 1000);
        to.sends(frame);
        to.receives(7, Status::kSuccess, where);
        to.expects_nothing(where);
    }
    static Frame datagram() { return send_only(0, 100).deth(kQkey, kPeerQp); }
};

TEST_F(Datagrams, C9_50_a_wrong_q_key_is_dropped) {
    ROWS("C9-50", "C9-51");
    connect();
    for (const std::uint32_t qkey : {0U, 0x1235U, 0x80001234U, kWellKnownQkey})
        dropped(peer, send_only(0, 100).deth(qkey, kPeerQp));
    accepted(peer, datagram());
}

TEST_F(Datagrams, C9_8_reserved_bits_are_ignored) {
    ROWS("C9-6", "C9-7", "C9-8");
    connect();
    accepted(peer, datagram().bits(Part::kExtension, 4, 0xFF));
    accepted(peer, datagram().bits(Part::kBth, 4, 0xFF));
    accepted(peer, datagram().bits(Part::kBth, 8, 0x7F, 0x7F));
}

TEST_F(Datagrams, C9_36_a_version_other_than_0_is_dropped) {
    ROWS("C9-36");
    connect();
    for (std::uint8_t version = 1; version < 16; ++version)
        dropped(peer, datagram().bits(Part::kBth, 1, version, 0x0F));
    accepted(peer, datagram());
}

TEST_F(Datagrams, C9_38_an_opcode_of_another_service_is_dropped) {
    ROWS("C9-38", "C9-39", "C9-47.2.1");
    connect();
    for (std::uint8_t service = 0; service < 8; ++service) {
        if (service == 3) continue;
        dropped(peer, datagram().bits(Part::kBth, 0, static_cast<std::uint8_t>(service << 5), 0xE0));
    }
    accepted(peer, datagram());
}

TEST_F(Datagrams, C9_37_a_queue_pair_in_reset_init_or_error_takes_nothing) {
    ROWS("C9-37", "C9-39");
    connect(QpState::kInit);
    dropped(peer, datagram());
    peer.moves_to(QpState::kRtr);
    accepted(peer, datagram());
    peer.forgets();  // the communication event
    peer.moves_to(QpState::kReset);
    dropped(peer, datagram());
    peer.moves_to(QpState::kError);
    peer.sends(datagram());
}

TEST_F(Datagrams, C9_43_a_foreign_p_key_is_dropped) {
    ROWS("C9-43");
    peer.parameters().pkey = 0x8123;
    connect();
    dropped(peer, datagram().with([](net::Packet& packet) { packet.bth.pkey = 0xFFFF; }));
    dropped(peer, datagram().with([](net::Packet& packet) { packet.bth.pkey = 0x8122; }));
    accepted(peer, datagram().with([](net::Packet& packet) { packet.bth.pkey = 0x0123; }));
}

TEST_F(Datagrams, C9_43_1_2_a_grh_may_be_there_or_not) {
    ROWS("C9-43.1.2", "C9-46");
    connect();
    accepted(peer, datagram());
    accepted(peer, datagram().with([](net::Packet& packet) {
        packet.has_grh = true;
        packet.grh.sgid = {0x20, 1, 2, 3};  // of nobody
        packet.grh.dgid = {0x20, 4, 5, 6};  // neither
    }));
}

TEST_F(Datagrams, C9_44_a_grh_of_another_protocol_or_version_is_dropped) {
    ROWS("C9-44", "C9-45");
    connect();
    const auto with_grh = [] { return datagram().with([](net::Packet& packet) { packet.has_grh = true; }); };
    dropped(peer, with_grh().bits(Part::kGrh, 6, 0x11));
    dropped(peer, with_grh().bits(Part::kGrh, 0, 0x40, 0xF0));
    accepted(peer, with_grh());
}

// The SLID is none of UD's checks (C9-54), a multicast LID there neither.
TEST_F(Datagrams, C9_53_unicast_lids_are_not_checked) {
    ROWS("C9-53", "C9-54");
    connect();
    accepted(peer, datagram().with([](net::Packet& packet) { packet.lrh.slid = 0x4321; }));
    accepted(peer, datagram().with([](net::Packet& packet) { packet.lrh.dlid = 0x10; }));
}

TEST_F(Datagrams, C9_55_the_permissive_lid_is_valid_for_qp0_alone) {
    ROWS("C9-55");
    const auto permissive = [] {
        return datagram().with([](net::Packet& packet) { packet.lrh.dlid = net::kPermissiveLid; });
    };
    connect();
    dropped(peer, permissive());
    accepted(peer, datagram());
    Peer qp0(transport::Service::kUd, 0);
    qp0.connect();
    accepted(qp0, permissive());
}

TEST_F(Datagrams, C9_41_qp0_checks_neither_p_key_nor_q_key) {
    ROWS("C9-41", "C9-48");
    Peer qp0(transport::Service::kUd, 0);
    qp0.connect();
    for (const std::uint16_t pkey : {0xFFFF, 0x8001, 0x0001, 0x0000})
        accepted(qp0, datagram().with([=](net::Packet& packet) { packet.bth.pkey = pkey; }));
    for (const std::uint32_t qkey : {0U, 1U, kWellKnownQkey}) accepted(qp0, send_only(0, 100).deth(qkey, 0));
}

TEST_F(Datagrams, C9_49_qp1_has_the_well_known_q_key) {
    ROWS("C9-49");
    Peer qp1(transport::Service::kUd, 1);
    qp1.connect();
    for (const std::uint32_t qkey : {0U, kQkey, 0x10000U, 0x80010001U})
        dropped(qp1, send_only(0, 100).deth(qkey, 1));
    accepted(qp1, send_only(0, 100).deth(kWellKnownQkey, 1));
}

TEST_F(Datagrams, C9_42_qp1_takes_any_p_key_of_its_port) {
    ROWS("C9-42");
    static constexpr std::uint16_t kTable[] = {0xFFFF, 0x8005, 0x0007, 0x0000};  // the last is empty
    Peer qp1(transport::Service::kUd, 1);
    qp1.machine().port.pkeys = kTable;
    qp1.connect();
    const auto with_pkey = [](std::uint16_t pkey) {
        return send_only(0, 100).deth(kWellKnownQkey, 1).with([=](net::Packet& packet) {
            packet.bth.pkey = pkey;
        });
    };
    for (const std::uint16_t pkey : {0xFFFF, 0x7FFF, 0x8005, 0x0005, 0x8007}) accepted(qp1, with_pkey(pkey));
    for (const std::uint16_t pkey : {0x8006, 0x0006, 0x0007, 0x8000, 0x0000}) dropped(qp1, with_pkey(pkey));
}

}  // namespace
}  // namespace uib::conformance
