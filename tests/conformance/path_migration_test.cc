// Automatic path migration as the requester's last resort (IBA 9.7.6.1.2, 9.7.6.1.3, 9.9.2.1.1), and what it
// changes in the checks of 9.6.
#include "engine/transport/rnr_timer.h"
#include "tests/conformance/conformance.h"

namespace uib::conformance {
namespace {

constexpr net::Lid kAlternateOwn = 0x111;
constexpr net::Lid kAlternatePeer = 0x112;
constexpr std::uint8_t kTimeout = 14;
constexpr Time kDetected = transport::ack_timeout(kTimeout);

class PathMigration : public Requester {
  protected:
    /// Connected and ARMED; both paths have the same timeout and P_Key.
    void connect_armed() {
        transport::QpParameters& parameters = peer.parameters();
        connect();
        parameters.alternate.slid = kAlternateOwn;
        parameters.alternate.dlid = kAlternatePeer;
        parameters.alternate_timeout = kTimeout;
        parameters.alternate_loaded = true;
        parameters.migration = transport::MigrationState::kArmed;
        peer.moves_to(QpState::kRts);
        parameters.migration.reset();
    }
    static Frame on_alternate(Frame frame) {
        return frame.with([](net::Packet& packet) {
            packet.lrh.slid = kAlternatePeer;
            packet.lrh.dlid = kAlternateOwn;
        });
    }
    void hears_on(net::Lid dlid, bool mig_req, Where where = Where::current()) {
        const Carried heard = peer.hears(where);
        EXPECT_EQ(heard.packet.lrh.dlid, dlid) << where.line();
        EXPECT_EQ(heard.packet.bth.mig_req, mig_req) << where.line();
        EXPECT_EQ(heard.packet.bth.psn, Wire::psn(0)) << where.line();
    }
};

TEST_P(PathMigration, o9_86_timeouts_lead_to_the_alternate_path_with_fresh_retries) {
    ROWS("o9-86", "o9-152");
    peer.parameters().retry_count = 2;
    connect_armed();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    for (int i = 0; i < 3; ++i) {
        hears_on(kPeerQp, false);
        peer.completes_nothing();
        peer.after(kDetected);
    }
    peer.raises(QpEvent::kPathMigrated);
    for (int i = 0; i < 3; ++i) {
        hears_on(kAlternatePeer, true);
        peer.completes_nothing();
        peer.after(kDetected);
    }
    peer.expects_nothing();
    peer.completes(Status::kRetryExceeded);
    EXPECT_EQ(peer.state(), QpState::kError);
}

TEST_P(PathMigration, o9_82_sequence_naks_lead_to_the_alternate_path_with_fresh_retries) {
    ROWS("o9-82", "o9-152");
    peer.parameters().retry_count = 1;
    connect_armed();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    for (int i = 0; i < 2; ++i) {
        hears_on(kPeerQp, false);
        peer.sends(nak(transport::kNakSequence, 0).mig_req(false));
    }
    peer.raises(QpEvent::kPathMigrated);
    for (int i = 0; i < 2; ++i) {
        hears_on(kAlternatePeer, true);
        peer.completes_nothing();
        peer.sends(on_alternate(nak(transport::kNakSequence, 0)));
    }
    peer.expects_nothing();
    peer.completes(Status::kRetryExceeded);
}

TEST_P(PathMigration, o9_152_what_goes_through_on_the_alternate_path_was_no_error) {
    ROWS("o9-152", "o9-86");
    peer.parameters().retry_count = 0;
    connect_armed();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    hears_on(kPeerQp, false);
    peer.after(kDetected);
    peer.raises(QpEvent::kPathMigrated);
    hears_on(kAlternatePeer, true);
    peer.sends(ack(0));  // by the old path, which is none any more
    peer.completes_nothing();
    peer.sends(on_alternate(ack(0)));
    peer.completes();
}

TEST_P(PathMigration, C9_47_1_1_while_armed_both_paths_are_valid) {
    ROWS("C9-47.1.1", "C9-52");
    connect_armed();
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    peer.posts(WorkOpcode::kRdmaWrite, 10);
    EXPECT_EQ(peer.hears_all().size(), 2U);
    peer.sends(ack(0).mig_req(false).with([](net::Packet& packet) { packet.lrh.slid = kAlternatePeer; }));
    peer.completes_nothing();  // half of one path and half of the other
    peer.sends(on_alternate(ack(0)).mig_req(false));
    peer.completes();
    peer.sends(ack(1).mig_req(false));
    peer.completes();
    EXPECT_EQ(peer.machine().qp->migration(), transport::MigrationState::kArmed);
}

INSTANTIATE_TEST_SUITE_P(On, PathMigration,
                         ::testing::Values(transport::Service::kRc, transport::Service::kXrcInitiator),
                         service_name);

}  // namespace
}  // namespace uib::conformance
