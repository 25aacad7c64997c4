// A requester on a link that can only hold so many packets (PortView::flight_limit).
#include "tests/unit/transport/rc_requester_script.h"

namespace uib::transport::testing {
namespace {

struct FlightLimit : RcRequesterScript {
    static constexpr std::uint32_t kMtu = 256;  // of a station
    void limit(std::uint32_t packets) {
        a.port.flight_limit = packets;
        connect();
        ack(0xFFFFFF);  // the peer generates no credits
    }
};

TEST_F(FlightLimit, SendsNoMorePacketsThanMayBeUnderWayAndGoesOnWithTheAcknowledges) {
    limit(4);
    post(WorkOpcode::kRdmaWrite, 10 * kMtu);
    EXPECT_EQ(psns(), (Psns{0, 1, 2, 3}));
    EXPECT_FALSE(a.qp->wants_run());
    ack(1);
    EXPECT_EQ(psns(), (Psns{4, 5}));
    ack(5);
    EXPECT_EQ(psns(), (Psns{6, 7, 8, 9}));
    ack(9);
    ASSERT_EQ(a.sends.size(), 1U);
    EXPECT_EQ(a.sends[0].status, Status::kSuccess);
}

TEST_F(FlightLimit, AsksForAcknowledgesBeforeItIsReached) {
    limit(4);
    post(WorkOpcode::kRdmaWrite, 10 * kMtu);
    a.run();
    unsigned asked = 0;
    for (const SentPacket& sent : a.take_out()) asked += sent.packet.bth.ack_req ? 1 : 0;
    EXPECT_GE(asked, 1U);
}

TEST_F(FlightLimit, CountsAcrossRequestsAndReadResponses) {
    limit(4);
    post(WorkOpcode::kRdmaRead, 3 * kMtu);
    post(WorkOpcode::kRdmaWrite, 3 * kMtu);
    EXPECT_EQ(psns(), (Psns{0, 3})) << "three responses and one packet";
}

TEST_F(FlightLimit, AReadLongerThanTheLimitGoesAlone) {
    limit(4);
    post(WorkOpcode::kRdmaRead, 9 * kMtu);
    post(WorkOpcode::kSend, 10);
    EXPECT_EQ(psns(), (Psns{0}));
}

TEST_F(FlightLimit, HoldsForWhatIsSentAgain) {
    limit(4);
    post(WorkOpcode::kRdmaWrite, 10 * kMtu);
    EXPECT_EQ(psns(), (Psns{0, 1, 2, 3}));
    ack(0, 0x60);
    EXPECT_EQ(psns(), (Psns{0, 1, 2, 3}));
}

}  // namespace
}  // namespace uib::transport::testing
