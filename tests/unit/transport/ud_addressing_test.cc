// Where datagrams go and whom they reach: the keys of the management QPs, multicast, permissive LIDs, path
// bits and GIDs of the port (IBA 9.6.1, Table 63).
#include <gtest/gtest.h>

#include "tests/conformance/rows.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using net::Operation;

struct UdAddressing : ::testing::Test {
    static constexpr std::uint32_t kGeneralQkey = 0x80010000;
    /// How many datagrams of `packet`'s kind a station takes: 0 or 1.
    static std::size_t taken(Station& station, const net::Packet& packet) {
        const std::size_t before = station.receives.size();
        station.post_receive(1, 0, 200);
        station.deliver(packet);
        station.receive_queue.posted.clear();
        return station.receives.size() - before;
    }
};

TEST_F(UdAddressing, subnet_management_qp_checks_no_key) {
    Station qp0(Service::kUd, 0);
    qp0.connect(0x12);
    net::Packet packet = packet_for(qp0, Operation::kSendOnly, 0);
    packet.bth.pkey = 0x1234;
    packet.deth.qkey = 0x99;
    EXPECT_EQ(taken(qp0, packet), 1U);
    packet.lrh.dlid = net::kPermissiveLid;
    packet.lrh.slid = net::kPermissiveLid;
    EXPECT_EQ(taken(qp0, packet), 1U);
}

TEST_F(UdAddressing, general_services_qp_takes_any_key_of_the_port_and_the_well_known_qkey) {
    const std::vector<std::uint16_t> pkeys = {0xFFFF, 0x8005, 0x0007};
    Station qp1(Service::kUd, 1);
    qp1.port.pkeys = pkeys;
    qp1.parameters.pkey = 0x8005;
    qp1.connect(0x12);
    net::Packet packet = packet_for(qp1, Operation::kSendOnly, 0);
    packet.deth.qkey = kGeneralQkey;
    const std::pair<std::uint16_t, std::size_t> cases[] = {{0xFFFF, 1}, {0x7FFF, 1}, {0x8005, 1}, {0x0005, 1},
                                                           {0x8007, 1}, {0x0007, 0},  // two limited members
                                                           {0x8006, 0}, {0x8000, 0}};
    for (const auto& [pkey, expected] : cases) {
        packet.bth.pkey = pkey;
        EXPECT_EQ(taken(qp1, packet), expected) << pkey;
    }
    EXPECT_EQ(qp1.count().dropped_pkey, 3U);
    packet.bth.pkey = 0xFFFF;
    packet.deth.qkey = qp1.parameters.qkey;
    EXPECT_EQ(taken(qp1, packet), 0U);
    EXPECT_EQ(qp1.count().dropped_qkey, 1U);
}

TEST_F(UdAddressing, other_qps_take_their_own_key_only) {
    const std::vector<std::uint16_t> pkeys = {0xFFFF, 0x8005};
    Station ud(Service::kUd, 0x11);
    ud.port.pkeys = pkeys;
    ud.connect(0x12);
    net::Packet packet = packet_for(ud, Operation::kSendOnly, 0);
    EXPECT_EQ(taken(ud, packet), 1U);
    packet.bth.pkey = 0x8005;
    EXPECT_EQ(taken(ud, packet), 0U);
    packet.bth.pkey = 0xFFFF;
    packet.deth.qkey = kGeneralQkey;
    EXPECT_EQ(taken(ud, packet), 0U);
}

TEST_F(UdAddressing, permissive_lid_reaches_the_subnet_management_qp_only) {
    for (const std::uint32_t number : {1U, 0x11U}) {
        Station ud(Service::kUd, number);
        ud.parameters.qkey = kGeneralQkey;
        ud.connect(0x12);
        net::Packet packet = packet_for(ud, Operation::kSendOnly, 0);
        packet.lrh.dlid = net::kPermissiveLid;
        EXPECT_EQ(taken(ud, packet), 0U);
        EXPECT_EQ(ud.count().dropped_lid, 1U);
    }
}

TEST_F(UdAddressing, no_other_lid_and_no_gid_is_checked) {
    Station ud(Service::kUd, 0x11);
    ud.connect(0x12);
    net::Packet packet = packet_for(ud, Operation::kSendOnly, 0);
    packet.lrh.dlid = 0x77;
    packet.lrh.slid = 0x78;
    EXPECT_EQ(taken(ud, packet), 1U);
    packet.has_grh = true;
    packet.grh.sgid[0] = 0xFF;
    EXPECT_EQ(taken(ud, packet), 1U);
}

TEST_F(UdAddressing, multicast_needs_a_grh_with_a_multicast_gid) {
    ROWS("o7-13.1.1/10", "o7-13.1.1/14", "o7-13.1.1/15");
    Station ud(Service::kUd, 0x11);
    ud.connect(0x12);
    net::Packet packet = packet_for(ud, Operation::kSendOnly, 0);
    packet.bth.dest_qp = net::kMulticastQp;
    packet.lrh.dlid = 0xC001;
    packet.grh.dgid[0] = 0xFF;
    EXPECT_EQ(taken(ud, packet), 0U);
    packet.has_grh = true;
    EXPECT_EQ(taken(ud, packet), 1U);
    packet.grh.dgid[0] = 0xFE;
    EXPECT_EQ(taken(ud, packet), 0U);
    EXPECT_EQ(ud.count().dropped_multicast, 2U);
    packet.grh.dgid[0] = 0xFF;
    packet.deth.qkey ^= 1;  // keys count for multicast, too
    EXPECT_EQ(taken(ud, packet), 0U);
    EXPECT_EQ(ud.count().dropped_qkey, 1U);
}

Work datagram(const Station& station) {
    Work work;
    work.entries = {station.entry(0, 10)};
    work.remote_qpn = 0x12;
    work.address_vector.dlid = 0x12;
    return work;
}

TEST_F(UdAddressing, path_bits_within_the_mask_go_into_the_source_lid) {
    for (const auto& [lmc, slid] : {std::pair<std::uint8_t, net::Lid>{0, 0x20}, {2, 0x23}, {7, 0x2B}}) {
        Station ud(Service::kUd, 0x20);
        ud.port.lmc = lmc;
        ud.connect(0x12);
        Work work = datagram(ud);
        work.address_vector.source_path_bits = 0xB;
        ud.post(work);
        ud.run();
        ASSERT_EQ(ud.out.size(), 1U);
        EXPECT_EQ(ud.out[0].packet.lrh.slid, slid) << int{lmc};
    }
}

TEST_F(UdAddressing, source_gid_is_that_of_the_address_vector) {
    ROWS("C8-10", "o7-13.1.1/11");
    std::vector<net::Gid> gids(3);
    gids[0][15] = 0xA;
    gids[1][15] = 0xB;  // and an unused entry
    Station ud(Service::kUd, 0x11);
    ud.port.gids = gids;
    ud.connect(0x12);
    Work work = datagram(ud);
    work.address_vector.is_global = 1;
    for (const std::uint8_t index : {0, 1}) {
        work.address_vector.sgid_index = index;
        ud.post(work);
        ud.run();
        ASSERT_EQ(ud.out.size(), index + 1U);
        EXPECT_EQ(ud.out[index].packet.grh.sgid, gids[index]);
    }
    for (const std::uint8_t index : {2, 3, 255}) {
        Station other(Service::kUd, 0x11);
        other.port.gids = gids;
        other.connect(0x12);
        work.entries = {other.entry(0, 10)};
        work.address_vector.sgid_index = index;
        other.post(work);
        other.run();
        EXPECT_TRUE(other.out.empty());
        ASSERT_EQ(other.sends.size(), 1U);
        EXPECT_EQ(other.sends[0].status, Status::kLocalQpOperation);
    }
}

// Class E of a shared receive queue (o9-161.2.1): the receive ends in error, the QP goes on.
TEST_F(UdAddressing, too_long_a_datagram_ends_a_shared_receive_in_error) {
    Station ud(Service::kUd, 0x11);
    ud.receive_queue.is_shared = true;
    ud.connect(0x12);
    const std::byte data[100] = {};
    ud.post_receive(1, 0, 100);
    ud.post_receive(2, 0, 200);
    for (int i = 0; i < 2; ++i) ud.deliver(packet_for(ud, Operation::kSendOnly, 0, data));
    ASSERT_EQ(ud.receives.size(), 2U);
    EXPECT_EQ(ud.receives[0].wr_id, 1U);
    EXPECT_EQ(ud.receives[0].status, Status::kLocalLength);
    EXPECT_EQ(ud.receives[1].status, Status::kSuccess);
    EXPECT_EQ(ud.qp->state(), QpState::kRts);
}

TEST_F(UdAddressing, a_shared_queue_in_error_ends_the_queue_pair) {
    Station ud(Service::kUd, 0x11);
    ud.receive_queue.is_shared = ud.receive_queue.is_failed = true;
    ud.connect(0x12);
    ud.deliver(packet_for(ud, Operation::kSendOnly, 0, {}));
    EXPECT_EQ(ud.qp->state(), QpState::kError);
    EXPECT_EQ(ud.events, std::vector{QpEvent::kFatal});
    EXPECT_EQ(ud.count().dropped_no_receive, 0U);
}

}  // namespace
}  // namespace uib::transport::testing
