// Automatic path migration: MigReq, arming, the three causes of a migration, refusals (IBA 17.2.8, o9-82,
// o9-86, o9-152, C9-47.1.1).
#include <gtest/gtest.h>

#include "engine/transport/aeth.h"
#include "engine/transport/rnr_timer.h"
#include "tests/unit/transport/station.h"

namespace uib::transport::testing {
namespace {

using ipc::WorkOpcode;
using net::Operation;

constexpr std::uint16_t kAlternatePkey = 0x8005;
constexpr std::uint8_t kAlternateTimeout = 16;

/// The alternate path of stations 0x11 and 0x12 has the LIDs 0x111 and 0x112.
void load_alternate(Station& station, MigrationState state) {
    QpParameters& to = station.parameters;
    to.alternate.slid = to.path.slid + 0x100;
    to.alternate.dlid = to.path.dlid + 0x100;
    to.alternate_pkey = kAlternatePkey;
    to.alternate_timeout = kAlternateTimeout;
    to.alternate_loaded = true;
    to.migration = state;
    station.qp->apply(station.qp->state(), to, false);
    to.migration.reset();
}

net::Packet on_alternate(net::Packet packet) {
    packet.lrh.slid += 0x100;
    packet.lrh.dlid += 0x100;
    packet.bth.pkey = kAlternatePkey;
    return packet;
}

struct Migration : ::testing::Test {
    static constexpr std::uint32_t kPsn = 0x1100;
    Migration() : a(Service::kRc, 0x11) { a.connect(0x12); }
    void write() {
        Work work;
        work.opcode = WorkOpcode::kRdmaWrite;
        work.entries = {a.entry(0, 10)};
        a.post(work);
    }
    SentPacket sent() {
        a.run();
        EXPECT_EQ(a.out.size(), 1U);
        return a.take_out().at(0);
    }
    net::Packet ack(std::uint32_t psn, bool mig_req = false) {
        net::Packet packet = response_for(a, Operation::kAcknowledge, kPsn + psn, 0x1F);
        packet.bth.mig_req = mig_req;
        return packet;
    }
    void expect_swapped() {
        EXPECT_EQ(a.qp->migration(), MigrationState::kMigrated);
        EXPECT_EQ(a.qp->migrations(), 1U);
        EXPECT_EQ(a.qp->parameters().path.dlid, 0x112);
        EXPECT_EQ(a.qp->parameters().path.slid, 0x111);
        EXPECT_EQ(a.qp->parameters().pkey, kAlternatePkey);
        EXPECT_EQ(a.qp->parameters().timeout, kAlternateTimeout);
        EXPECT_FALSE(a.qp->parameters().alternate_loaded);
        EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kPathMigrated});
        EXPECT_EQ(a.count().path_migrations, 1U);
    }
    Station a;
};

TEST_F(Migration, without_an_alternate_path_all_packets_say_migrated) {
    EXPECT_EQ(a.qp->migration(), MigrationState::kMigrated);
    write();
    EXPECT_TRUE(sent().packet.bth.mig_req);
    a.parameters.migration = MigrationState::kRearm;  // nothing to arm
    a.qp->apply(QpState::kRts, a.parameters, false);
    EXPECT_EQ(a.qp->migration(), MigrationState::kMigrated);
}

TEST_F(Migration, rearm_becomes_armed_when_the_peer_shows_it) {
    load_alternate(a, MigrationState::kRearm);
    write();
    EXPECT_FALSE(sent().packet.bth.mig_req);
    a.deliver(ack(0, true));  // the peer is not ready
    EXPECT_EQ(a.qp->migration(), MigrationState::kRearm);
    write();
    EXPECT_FALSE(sent().packet.bth.mig_req);
    a.deliver(ack(1));
    EXPECT_EQ(a.qp->migration(), MigrationState::kArmed);
    write();
    EXPECT_FALSE(sent().packet.bth.mig_req);
    EXPECT_TRUE(a.events.empty());
    EXPECT_EQ(a.sends.size(), 2U);
}

TEST_F(Migration, two_ends_arm_each_other_and_one_takes_the_other_along) {
    Pair pair;
    pair.connect();
    load_alternate(pair.a, MigrationState::kRearm);
    load_alternate(pair.b, MigrationState::kRearm);
    Work work;
    work.opcode = WorkOpcode::kRdmaWrite;
    work.entries = {pair.a.entry(0, 300)};
    work.remote_address = Station::kBase;
    work.rkey = pair.b.region->key();
    pair.a.post(work);
    pair.settle();
    EXPECT_EQ(pair.a.qp->migration(), MigrationState::kArmed);
    EXPECT_EQ(pair.b.qp->migration(), MigrationState::kArmed);
    pair.a.parameters.migration = MigrationState::kMigrated;
    pair.a.qp->apply(QpState::kRts, pair.a.parameters, false);
    EXPECT_EQ(pair.b.qp->migrations(), 0U);
    pair.seen.clear();
    pair.a.post(work);
    pair.settle();
    ASSERT_EQ(pair.a.sends.size(), 2U);
    EXPECT_EQ(pair.a.sends[1].status, Status::kSuccess);
    for (Station* station : {&pair.a, &pair.b}) {
        EXPECT_EQ(station->qp->migration(), MigrationState::kMigrated);
        EXPECT_EQ(station->qp->migrations(), 1U);
        EXPECT_EQ(station->events, std::vector<QpEvent>{QpEvent::kPathMigrated});
    }
    for (const SentPacket& sent : pair.seen) {
        EXPECT_TRUE(sent.packet.bth.mig_req);
        EXPECT_GT(sent.packet.lrh.dlid, 0x100U);
        EXPECT_EQ(sent.packet.bth.pkey, kAlternatePkey);
    }
}

TEST_F(Migration, client_migrates_at_once_when_armed) {
    load_alternate(a, MigrationState::kArmed);
    a.parameters.migration = MigrationState::kMigrated;
    a.qp->apply(QpState::kRts, a.parameters, false);
    expect_swapped();
    write();
    const SentPacket packet = sent();
    EXPECT_EQ(packet.packet.lrh.dlid, 0x112);
    EXPECT_EQ(packet.packet.lrh.slid, 0x111);
    EXPECT_EQ(packet.packet.bth.pkey, kAlternatePkey);
    EXPECT_TRUE(packet.packet.bth.mig_req);
    a.deliver(ack(0, true));  // the old path is not ours any more
    EXPECT_EQ(a.count().dropped_lid, 1U);
    a.deliver(on_alternate(ack(0, true)));
    EXPECT_EQ(a.sends.size(), 1U);
}

TEST_F(Migration, client_takes_a_rearm_back) {
    load_alternate(a, MigrationState::kRearm);
    a.parameters.migration = MigrationState::kMigrated;
    a.qp->apply(QpState::kRts, a.parameters, false);
    EXPECT_EQ(a.qp->migration(), MigrationState::kMigrated);
    EXPECT_EQ(a.qp->migrations(), 0U);
    EXPECT_EQ(a.qp->parameters().path.dlid, 0x12);
}

TEST_F(Migration, timeouts_beyond_the_retry_counter_migrate_and_start_over) {
    load_alternate(a, MigrationState::kArmed);
    write();
    EXPECT_EQ(sent().packet.lrh.dlid, 0x12);
    for (std::uint8_t i = 0; i < a.parameters.retry_count; ++i) {
        a.advance(ack_timeout(a.parameters.timeout));
        EXPECT_EQ(sent().packet.lrh.dlid, 0x12);
    }
    EXPECT_EQ(a.qp->migrations(), 0U);
    a.advance(ack_timeout(a.parameters.timeout));
    expect_swapped();
    for (int i = 0; i <= a.parameters.retry_count; ++i) {
        EXPECT_EQ(sent().packet.lrh.dlid, 0x112) << i;
        a.advance(ack_timeout(kAlternateTimeout));
    }
    a.run();
    EXPECT_TRUE(a.out.empty());
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kRetryExceeded);
}

TEST_F(Migration, sequence_naks_beyond_the_retry_counter_migrate) {
    a.parameters.retry_count = 1;
    load_alternate(a, MigrationState::kArmed);
    write();
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(sent().packet.lrh.dlid, 0x12);
        net::Packet nak = ack(0);
        nak.aeth.syndrome = kNakSequence;
        a.deliver(nak);
    }
    expect_swapped();
    EXPECT_EQ(sent().packet.lrh.dlid, 0x112);
    a.deliver(on_alternate(ack(0, true)));
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);
}

TEST_F(Migration, starvation_is_no_fault_of_the_path) {
    a.parameters.rnr_retry = 0;
    load_alternate(a, MigrationState::kArmed);
    write();
    sent();
    net::Packet nak = ack(0);
    nak.aeth.syndrome = kRnrNak | 1;
    a.deliver(nak);
    EXPECT_EQ(a.qp->migrations(), 0U);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kRnrRetryExceeded);
}

TEST_F(Migration, request_of_the_peer_needs_the_alternate_path) {
    load_alternate(a, MigrationState::kArmed);
    a.post_receive(1, 0, 100);
    a.post_receive(2, 0, 100);
    a.post_receive(3, 0, 100);
    const std::uint32_t psn = a.parameters.rq_psn;
    net::Packet packet = packet_for(a, Operation::kSendOnly, psn);
    ASSERT_TRUE(packet.bth.mig_req);
    a.deliver(packet);  // on the primary path: refused, told once, and served
    EXPECT_EQ(a.events, std::vector<QpEvent>{QpEvent::kPathMigrationFailed});
    packet.bth.psn = psn + 1;
    a.deliver(packet);
    EXPECT_EQ(a.events.size(), 1U);
    EXPECT_EQ(a.count().path_migrations_refused, 1U);
    EXPECT_EQ(a.receives.size(), 2U);
    EXPECT_EQ(a.qp->migration(), MigrationState::kArmed);
    a.events.clear();
    a.deliver(on_alternate(packet_for(a, Operation::kSendOnly, psn + 2)));
    expect_swapped();
    EXPECT_EQ(a.receives.size(), 3U);
}

TEST_F(Migration, alternate_path_is_valid_unless_migrated) {
    a.post_receive(1, 0, 100);
    const std::uint32_t psn = a.parameters.rq_psn;
    net::Packet packet = on_alternate(packet_for(a, Operation::kSendOnly, psn));
    packet.bth.mig_req = false;
    a.deliver(packet);
    EXPECT_EQ(a.count().dropped_lid, 1U);
    load_alternate(a, MigrationState::kArmed);
    packet.bth.pkey = 0x8006;  // not the alternate path's key
    a.deliver(packet);
    EXPECT_TRUE(a.receives.empty());
    packet.bth.pkey = kAlternatePkey;
    a.deliver(packet);
    EXPECT_EQ(a.receives.size(), 1U);
    EXPECT_EQ(a.qp->migration(), MigrationState::kArmed);  // MigReq was clear
}

TEST_F(Migration, alternate_gids_are_checked_like_the_primary_ones) {
    Station global(Service::kRc, 0x11);
    global.parameters.path.global = true;
    global.parameters.path.grh.sgid = {0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xB};
    global.parameters.path.grh.dgid = {0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xA};
    global.connect(0x12);
    global.parameters.alternate.global = true;
    global.parameters.alternate.grh.sgid = {0x20, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xD};
    global.parameters.alternate.grh.dgid = {0x20, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xC};
    load_alternate(global, MigrationState::kArmed);
    global.post_receive(1, 0, 100);
    global.post_receive(2, 0, 100);
    net::Packet packet = on_alternate(packet_for(global, Operation::kSendOnly, global.parameters.rq_psn));
    packet.bth.mig_req = false;
    packet.has_grh = true;
    packet.grh.dgid = global.parameters.alternate.grh.sgid;
    packet.grh.sgid = global.parameters.path.grh.dgid;
    global.deliver(packet);
    EXPECT_EQ(global.count().dropped_gid, 1U);
    packet.grh.sgid = global.parameters.alternate.grh.dgid;
    global.deliver(packet);
    EXPECT_EQ(global.receives.size(), 1U);
    packet.bth.psn += 1;
    packet.grh.sgid = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xC};  // default prefix
    global.deliver(packet);
    EXPECT_EQ(global.receives.size(), 2U);
}

TEST_F(Migration, losing_the_alternate_path_or_reset_disarms) {
    load_alternate(a, MigrationState::kArmed);
    a.parameters.alternate_loaded = false;
    a.qp->apply(QpState::kRts, a.parameters, false);
    EXPECT_EQ(a.qp->migration(), MigrationState::kMigrated);
    load_alternate(a, MigrationState::kArmed);
    a.qp->apply(QpState::kReset, QpParameters{}, false);
    EXPECT_EQ(a.qp->migration(), MigrationState::kMigrated);
    EXPECT_TRUE(a.events.empty());
}

TEST_F(Migration, unreliable_connections_migrate_with_the_peer) {
    Station uc(Service::kUc, 0x11);
    uc.connect(0x12);
    load_alternate(uc, MigrationState::kArmed);
    uc.post_receive(1, 0, 100);
    uc.deliver(on_alternate(packet_for(uc, Operation::kSendOnly, 0x1200)));
    EXPECT_EQ(uc.qp->migrations(), 1U);
    EXPECT_EQ(uc.receives.size(), 1U);
    Work work;
    work.entries = {uc.entry(0, 10)};
    uc.post(work);
    uc.run();
    ASSERT_EQ(uc.out.size(), 1U);
    EXPECT_EQ(uc.out[0].packet.lrh.dlid, 0x112);
    EXPECT_TRUE(uc.out[0].packet.bth.mig_req);
}

}  // namespace
}  // namespace uib::transport::testing
