// Path migration as the client sees it: what Modify QP takes, what Query QP shows, which events come.
#include <algorithm>
#include <array>

#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {
namespace {

constexpr std::uint8_t kAlternateSl = 3;
constexpr std::uint8_t kAlternateTimeout = 9;
constexpr std::uint16_t kNowhere = 0x55;

class PathMigrationTest : public AdapterTest {
  protected:
    void SetUp() override {
        cq_ = make_cq(64);
        a_ = make_qp(cq_);
        b_ = make_qp(cq_);
        connect(a_, b_);
        connect(b_, a_);
        region_ =
            register_memory(memory_.data(), memory_.size(), ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite);
    }
    static ipc::QpAttributes alternate() {
        ipc::QpAttributes attributes{};
        attributes.alternate_path.dlid = 1;
        attributes.alternate_path.port = 1;
        attributes.alternate_path.sl = kAlternateSl;
        attributes.alternate_port = 1;
        attributes.alternate_timeout = kAlternateTimeout;
        attributes.path_migration_state = IBV_MIG_REARM;
        return attributes;
    }
    int modify_running(const TestQp& qp, std::uint32_t mask, const ipc::QpAttributes& attributes) {
        ipc::ModifyQpRequest request{};
        request.handle = qp.reply.handle;
        request.mask = mask;
        request.attributes = attributes;
        return context_->modify_qp(request);
    }
    ipc::QpAttributes query(const TestQp& qp) {
        ipc::QueryQpReply reply{};
        EXPECT_EQ(context_->query_qp(qp.reply.handle, reply), 0);
        return reply.attributes;
    }
    /// One RDMA WRITE from `qp`; its status.
    std::uint8_t write(TestQp& qp) {
        ipc::SendWqe wqe{};
        wqe.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kRdmaWrite);
        wqe.rkey = region_.rkey;
        wqe.remote_address = reinterpret_cast<std::uint64_t>(memory_.data() + 4096);
        post_send(qp, wqe, memory_.data(), 64, region_.lkey);
        return wait(cq_).status;
    }
    /// `theirs`: what b has for an alternate path.
    void arm(const ipc::QpAttributes& theirs = alternate()) {
        ASSERT_EQ(modify_running(a_, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, alternate()), 0);
        ASSERT_EQ(modify_running(b_, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, theirs), 0);
        // Both ends learn of each other's state from the packets they get.
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(write(a_), 0);
            ASSERT_EQ(write(b_), 0);
        }
        ASSERT_EQ(query(a_).path_migration_state, IBV_MIG_ARMED);
        ASSERT_EQ(query(b_).path_migration_state, IBV_MIG_ARMED);
    }
    std::ptrdiff_t events_of(std::uint32_t type) {
        const std::vector<ipc::AsyncEvent> events = take_events();
        return std::count_if(events.begin(), events.end(),
                             [&](const auto& event) { return event.type == type; });
    }
    static void expect_swapped(const ipc::QpAttributes& now) {
        EXPECT_EQ(now.path.sl, kAlternateSl);
        EXPECT_EQ(now.timeout, kAlternateTimeout);
        EXPECT_EQ(now.alternate_path.sl, 0);
        EXPECT_EQ(now.alternate_timeout, 14);
        EXPECT_EQ(now.path_migration_state, IBV_MIG_MIGRATED);
    }

    TestCq cq_;
    TestQp a_, b_;
    ipc::RegMrReply region_{};
    std::array<std::uint8_t, 8192> memory_{};
};

TEST_F(PathMigrationTest, QueryShowsTheAlternatePathAsLoaded) {
    EXPECT_EQ(query(a_).path_migration_state, IBV_MIG_MIGRATED);
    ASSERT_EQ(modify_running(a_, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, alternate()), 0);
    const ipc::QpAttributes now = query(a_);
    EXPECT_EQ(now.alternate_path.sl, kAlternateSl);
    EXPECT_EQ(now.alternate_path.dlid, 1);
    EXPECT_EQ(now.alternate_port, 1);
    EXPECT_EQ(now.alternate_pkey_index, 0);
    EXPECT_EQ(now.alternate_timeout, kAlternateTimeout);
    EXPECT_EQ(now.path_migration_state, IBV_MIG_REARM);
}

TEST_F(PathMigrationTest, RearmingNeedsAnAlternatePathAndArmedCannotBeAskedFor) {
    ipc::QpAttributes wish = alternate();
    EXPECT_EQ(modify_running(a_, IBV_QP_PATH_MIG_STATE, wish), EINVAL);
    wish.path_migration_state = IBV_MIG_ARMED;
    EXPECT_EQ(modify_running(a_, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE, wish), EINVAL);
    wish.path_migration_state = IBV_MIG_MIGRATED;
    EXPECT_EQ(modify_running(a_, IBV_QP_PATH_MIG_STATE, wish), 0);
    EXPECT_EQ(query(a_).alternate_timeout, 0) << "what is refused changes nothing";
}

TEST_F(PathMigrationTest, ARequestedMigrationMovesBothEnds) {
    arm();
    ipc::QpAttributes wish{};
    wish.path_migration_state = IBV_MIG_MIGRATED;
    ASSERT_EQ(modify_running(a_, IBV_QP_PATH_MIG_STATE, wish), 0);
    expect_swapped(query(a_));
    ASSERT_EQ(write(a_), 0);
    expect_swapped(query(b_));
    EXPECT_EQ(events_of(IBV_EVENT_PATH_MIG), 2);
    ASSERT_EQ(write(b_), 0);
    wish.path_migration_state = IBV_MIG_REARM;
    EXPECT_EQ(modify_running(a_, IBV_QP_PATH_MIG_STATE, wish), EINVAL)
        << "the old path must be loaded anew to serve again";
}

TEST_F(PathMigrationTest, AMigrationThatDoesNotFitTheAlternatePathIsReportedOnceAndNotFollowed) {
    ipc::QpAttributes elsewhere = alternate();
    elsewhere.alternate_path.dlid = 2;
    arm(elsewhere);
    ipc::QpAttributes wish{};
    wish.path_migration_state = IBV_MIG_MIGRATED;
    ASSERT_EQ(modify_running(a_, IBV_QP_PATH_MIG_STATE, wish), 0);
    ASSERT_EQ(write(a_), 0);
    const std::vector<ipc::AsyncEvent> events = take_events();
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].type, IBV_EVENT_PATH_MIG);
    EXPECT_EQ(events[1].type, IBV_EVENT_PATH_MIG_ERR);
    EXPECT_EQ(query(b_).path_migration_state, IBV_MIG_ARMED);
    EXPECT_EQ(query(b_).path.sl, 0);
    ASSERT_EQ(write(a_), 0);
    EXPECT_TRUE(take_events().empty());
    ipc::EventsReply owed{};
    ASSERT_EQ(context_->destroy_qp(b_.reply.handle, owed), 0);
    EXPECT_EQ(owed.async_events, 1U);
}

TEST_F(PathMigrationTest, ADeadPathIsLeftForTheAlternateWithoutAnError) {
    arm();
    ipc::QpAttributes broken{};
    ASSERT_EQ(modify(a_, IBV_QPS_SQD, 0, broken), 0);
    broken.path.dlid = kNowhere;
    broken.path.port = 1;
    broken.timeout = 1;
    broken.retry_count = 1;
    ASSERT_EQ(modify_running(a_, IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, broken), 0);
    ASSERT_EQ(modify(a_, IBV_QPS_RTS, 0, broken), 0);
    EXPECT_EQ(write(a_), 0);
    const ipc::QpAttributes now = query(a_);
    EXPECT_EQ(now.path.dlid, 1);
    EXPECT_EQ(now.alternate_path.dlid, kNowhere);
    EXPECT_EQ(now.path_migration_state, IBV_MIG_MIGRATED);
    EXPECT_GE(events_of(IBV_EVENT_PATH_MIG), 1);
}

}  // namespace
}  // namespace uib::verbs
