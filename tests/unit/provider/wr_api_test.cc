// The ibv_wr_* interface: what lands in the slots, and that errors come at wr_complete and publish nothing.
#include <gtest/gtest.h>

#include "provider/ah.h"
#include "provider/memory.h"
#include "provider/qp.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

constexpr std::uint64_t kAllOps = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                                  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

class WrApi : public ::testing::Test {
  protected:
    WrApi() : pd(opened.make_pd()), cq(opened.make_cq(16)) {
        qp = opened.make_qp(pd, cq, IBV_QPT_RC, 4, nullptr, kAllOps);
        ex = ibv_qp_to_qp_ex(qp);
        opened.move_to(qp, IBV_QPS_RTS);
    }
    std::uint32_t producer() {
        return opened.engine.at<ipc::QueueControl>(opened.engine.qp.send.control)->producer.load();
    }
    OpenedContext opened;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_qp* qp;
    ibv_qp_ex* ex = nullptr;
};

TEST_F(WrApi, a_batch_becomes_visible_at_once) {
    ASSERT_NE(ex, nullptr);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(ex, 77, 0x5000);
    ibv_wr_set_sge(ex, 9, 0x100, 300);
    ex->wr_id = 2;
    ex->wr_flags = 0;
    char text[] = "hello";
    ibv_wr_send_imm(ex, 0x1234);
    ibv_wr_set_inline_data(ex, text, 5);
    EXPECT_EQ(producer(), 0U);
    ASSERT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(producer(), 2U);
    const ipc::SendWqe* write = opened.engine.send_wqe(0);
    EXPECT_EQ(write->opcode, static_cast<std::uint8_t>(ipc::WorkOpcode::kRdmaWrite));
    EXPECT_EQ(write->rkey, 77U);
    EXPECT_EQ(write->remote_address, 0x5000U);
    EXPECT_EQ(write->flags, ipc::kWorkSignaled);
    EXPECT_EQ(write->sge_count, 1);
    const ipc::SendWqe* send = opened.engine.send_wqe(1);
    EXPECT_EQ(send->wr_id, 2U);
    EXPECT_EQ(send->immediate, 0x1234U);
    EXPECT_EQ(send->inline_length, 5U);
}

TEST_F(WrApi, errors_are_told_at_the_end_and_publish_nothing) {
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, 9, 0, 1);
    const ibv_sge list[3] = {};
    ibv_wr_send(ex);
    ibv_wr_set_sge_list(ex, 3, list);
    ibv_wr_send(ex);
    EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
    EXPECT_EQ(producer(), 0U);
    ibv_wr_start(ex);
    for (int i = 0; i < 5; ++i) ibv_wr_send(ex);
    EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
    EXPECT_EQ(producer(), 0U);
}

TEST_F(WrApi, abort_forgets_the_batch) {
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_abort(ex);
    ibv_wr_start(ex);
    ex->wr_id = 3;
    ibv_wr_local_inv(ex, 0x99);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(producer(), 1U);
    EXPECT_EQ(opened.engine.send_wqe(0)->immediate, 0x99U);
}

TEST_F(WrApi, atomics_and_windows) {
    ibv_mw mw{opened.verbs(), pd, 0x100, 6, IBV_MW_TYPE_2};
    ibv_mr mr{};
    mr.lkey = 8;
    const ibv_mw_bind_info info{&mr, 0x10, 0x20, IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_start(ex);
    ibv_wr_atomic_cmp_swp(ex, 1, 2, 3, 4);
    ibv_wr_set_sge(ex, 9, 0, 8);
    ibv_wr_bind_mw(ex, &mw, 0x101, &info);
    ASSERT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->compare_add, 3U);
    EXPECT_EQ(opened.engine.send_wqe(0)->swap, 4U);
    const ipc::SendWqe* bind = opened.engine.send_wqe(1);
    EXPECT_EQ(bind->rkey, 0x101U);
    EXPECT_EQ(bind->bind_window_type, 2);
    EXPECT_EQ(bind->compare_add, 0x20U);
}

TEST_F(WrApi, datagram_without_an_address_is_refused) {
    ibv_qp* ud = opened.make_qp(pd, cq, IBV_QPT_UD, 4, nullptr, IBV_QP_EX_WITH_SEND);
    opened.move_to(ud, IBV_QPS_RTS);
    ibv_qp_ex* udx = ibv_qp_to_qp_ex(ud);
    ibv_wr_start(udx);
    ibv_wr_send(udx);
    EXPECT_EQ(ibv_wr_complete(udx), EINVAL);
    ibv_ah_attr path{};
    path.port_num = 1;
    ibv_ah* ah = create_ah(pd, &path);
    ibv_wr_start(udx);
    ibv_wr_send(udx);
    ibv_wr_set_ud_addr(udx, ah, 5, 6);
    EXPECT_EQ(ibv_wr_complete(udx), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->remote_qkey, 6U);
    destroy_ah(ah);
}

TEST_F(WrApi, operations_that_the_service_lacks_are_refused_at_creation) {
    EXPECT_EQ(opened.make_qp(pd, cq, IBV_QPT_UC, 4, nullptr, IBV_QP_EX_WITH_RDMA_READ), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(opened.make_qp(pd, cq, IBV_QPT_RC, 4, nullptr, IBV_QP_EX_WITH_TSO), nullptr);
    EXPECT_EQ(opened.make_qp(pd, cq, IBV_QPT_DRIVER), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(WrApi, state_is_checked) {
    opened.move_to(qp, IBV_QPS_INIT);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
}

}  // namespace
}  // namespace uib::provider::test
