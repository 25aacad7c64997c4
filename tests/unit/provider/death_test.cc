// When the engine dies: one fatal event, everything outstanding is flushed, nothing hangs, everything can be
// destroyed.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "provider/cq.h"
#include "provider/memory.h"
#include "provider/pd.h"
#include "provider/post_recv.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "provider/srq.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

class Death : public ::testing::Test {
  protected:
    Death() {
        channel = {opened.verbs(), opened.context->channels().create(), 0};
        pd = opened.make_pd();
        cq = opened.make_cq(16, &channel);
        qp = opened.make_qp(pd, cq);
        opened.move_to(qp, IBV_QPS_RTS);
    }
    ~Death() override { ::close(channel.fd); }

    int send(std::uint64_t wr_id) {
        ibv_send_wr wr{};
        wr.wr_id = wr_id;
        wr.opcode = IBV_WR_RDMA_WRITE;
        ibv_send_wr* bad = nullptr;
        return post_send(qp, &wr, &bad);
    }
    int receive(std::uint64_t wr_id) {
        ibv_recv_wr wr{wr_id, nullptr, nullptr, 0};
        ibv_recv_wr* bad = nullptr;
        return post_recv(qp, &wr, &bad);
    }
    /// Kills the engine and waits until the program is told.
    void die() {
        opened.engine.die();
        ipc::AsyncEvent event{};
        ASSERT_EQ(::read(opened.verbs()->async_fd, &event, sizeof event), static_cast<ssize_t>(sizeof event));
        EXPECT_EQ(event.type, static_cast<std::uint32_t>(IBV_EVENT_DEVICE_FATAL));
    }
    bool readable(int fd) {
        pollfd waiting{fd, POLLIN, 0};
        return ::poll(&waiting, 1, 0) == 1;
    }

    OpenedContext opened;
    ibv_comp_channel channel{};
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
};

TEST_F(Death, outstanding_work_is_flushed_after_what_was_completed) {
    for (std::uint64_t id : {1, 2, 3}) ASSERT_EQ(send(id), 0);
    for (std::uint64_t id : {11, 12}) ASSERT_EQ(receive(id), 0);
    opened.engine.complete_send(0, 1);
    die();
    ibv_wc wc[8]{};
    ASSERT_EQ(poll_cq(cq, 8, wc), 5);
    EXPECT_EQ(wc[0].wr_id, 1U);
    EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
    std::map<std::uint64_t, ibv_wc> flushed;
    for (int i = 1; i < 5; ++i) {
        EXPECT_EQ(wc[i].status, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(wc[i].qp_num, qp->qp_num);
        flushed[wc[i].wr_id] = wc[i];
    }
    EXPECT_EQ(flushed.size(), 4U);
    EXPECT_EQ(flushed.count(2) + flushed.count(3) + flushed.count(11) + flushed.count(12), 4U);
    EXPECT_EQ(flushed[2].opcode, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(flushed[11].opcode, IBV_WC_RECV);
    EXPECT_EQ(poll_cq(cq, 8, wc), 0);
}

TEST_F(Death, shared_receives_are_flushed_once) {
    ibv_srq_init_attr wish{};
    wish.attr = {4, 1, 0};
    ibv_srq* srq = create_srq(pd, &wish);
    srq->context = opened.verbs();  // as libibverbs does
    opened.make_qp(pd, cq, IBV_QPT_RC, 4, srq);
    opened.make_qp(pd, cq, IBV_QPT_RC, 4, srq);
    ibv_recv_wr wr{21, nullptr, nullptr, 0};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(post_srq_recv(srq, &wr, &bad), 0);
    die();
    ibv_wc wc[8]{};
    ASSERT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_EQ(wc[0].wr_id, 21U);
    EXPECT_EQ(post_srq_recv(srq, &wr, &bad), EIO);
}

TEST_F(Death, everybody_who_waits_is_woken) {
    ASSERT_EQ(send(1), 0);
    ASSERT_EQ(req_notify_cq(cq, 0), 0);
    die();
    std::uint64_t event = 0;
    ASSERT_EQ(::read(channel.fd, &event, sizeof event), static_cast<ssize_t>(sizeof event));
    EXPECT_EQ(event, reinterpret_cast<std::uint64_t>(cq));
    // As long as there is something to flush, arming wakes at once; then no more.
    ASSERT_EQ(req_notify_cq(cq, 0), 0);
    EXPECT_TRUE(readable(channel.fd));
    ASSERT_EQ(::read(channel.fd, &event, sizeof event), static_cast<ssize_t>(sizeof event));
    ibv_wc wc{};
    ASSERT_EQ(poll_cq(cq, 1, &wc), 1);
    ASSERT_EQ(req_notify_cq(cq, 0), 0);
    EXPECT_FALSE(readable(channel.fd));
}

TEST_F(Death, calls_fail_and_destruction_succeeds) {
    char bytes[8];
    ibv_mr* mr = reg_mr(pd, bytes, 8, reinterpret_cast<std::uint64_t>(bytes), IBV_ACCESS_LOCAL_WRITE);
    die();
    EXPECT_EQ(send(1), EIO);
    EXPECT_EQ(receive(1), EIO);
    EXPECT_EQ(alloc_pd(opened.verbs()), nullptr);
    EXPECT_EQ(errno, EIO);
    ibv_qp_attr attributes{};
    EXPECT_EQ(modify_qp(qp, &attributes, IBV_QP_STATE), EIO);
    EXPECT_EQ(destroy_qp(qp), 0);
    EXPECT_EQ(destroy_cq(cq), 0);
    EXPECT_EQ(dereg_mr(reinterpret_cast<abi::VerbsMr*>(mr)), 0);
    EXPECT_EQ(dealloc_pd(pd), 0);
}

TEST_F(Death, only_one_fatal_event) {
    die();
    ::usleep(20'000);
    EXPECT_FALSE(readable(opened.verbs()->async_fd));
}

}  // namespace
}  // namespace uib::provider::test
