// Polling: sequence numbers, wrap, void entries, inline payloads, slot accounting, both interfaces.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "provider/cq.h"
#include "provider/memory.h"
#include "provider/post_recv.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "provider/srq.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

class Completions : public ::testing::Test {
  protected:
    Completions() : pd(opened.make_pd()), cq(opened.make_cq(4)), buffer(64) {
        mr = reg_mr(pd, buffer.data(), buffer.size(), reinterpret_cast<std::uint64_t>(buffer.data()),
                    IBV_ACCESS_LOCAL_WRITE);
        qp = opened.make_qp(pd, cq);
        opened.move_to(qp, IBV_QPS_RTS);
    }

    ibv_sge sge(std::size_t offset, std::uint32_t length) {
        return {reinterpret_cast<std::uint64_t>(buffer.data() + offset), length, mr->lkey};
    }
    void post_one(std::uint64_t wr_id = 0) {
        ibv_sge list = sge(0, 4);
        ibv_send_wr wr{};
        wr.wr_id = wr_id;
        wr.sg_list = &list;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(post_send(qp, &wr, &bad), 0);
    }
    void post_receive(std::uint64_t wr_id, std::vector<ibv_sge> list) {
        ibv_recv_wr wr{wr_id, nullptr, list.data(), static_cast<int>(list.size())};
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(post_recv(qp, &wr, &bad), 0);
    }
    /// Leaves 0, 1, 2, ... in a receive slot, as the engine does.
    void fill(const ipc::QueueLocation& queue, std::uint32_t slot, std::uint32_t bytes) {
        auto* payload = reinterpret_cast<std::uint8_t*>(opened.engine.receive_slot(queue, slot)) +
                        ipc::receive_inline_offset(queue.max_sge);
        std::iota(payload, payload + bytes, std::uint8_t{1});
    }

    OpenedContext opened;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_mr* mr = nullptr;
    ibv_qp* qp = nullptr;
    std::vector<std::uint8_t> buffer;
    ibv_wc wc[8]{};
};

TEST_F(Completions, many_times_round_the_ring) {
    for (std::uint32_t i = 0; i < 50; ++i) {
        EXPECT_EQ(poll_cq(cq, 8, wc), 0);
        post_one();
        opened.engine.complete_send(i, 1000 + i);
        ASSERT_EQ(poll_cq(cq, 8, wc), 1);
        EXPECT_EQ(wc[0].wr_id, 1000U + i);
        EXPECT_EQ(wc[0].opcode, IBV_WC_SEND);
        EXPECT_EQ(wc[0].qp_num, qp->qp_num);
        EXPECT_EQ(opened.engine.at<ipc::CqControl>(opened.engine.cq.control)->consumer.load(), i + 1);
    }
}

TEST_F(Completions, one_completion_frees_the_unsignaled_before_it) {
    for (int i = 0; i < 4; ++i) post_one();
    EXPECT_FALSE(Qp::of(qp).sq.has_room());
    opened.engine.complete_send(2, 7);
    EXPECT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_EQ(Qp::of(qp).sq.outstanding(), 1U);
}

TEST_F(Completions, inline_payload_is_scattered_over_the_list) {
    post_receive(3, {sge(8, 3), sge(32, 8)});
    fill(opened.engine.qp.receive, 0, 7);
    opened.engine.complete_receive(0, 3, ipc::kCqeInline, 7);
    ASSERT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc[0].opcode, IBV_WC_RECV);
    EXPECT_EQ(wc[0].byte_len, 7U);
    EXPECT_EQ(buffer[8], 1);
    EXPECT_EQ(buffer[10], 3);
    EXPECT_EQ(buffer[11], 0);
    EXPECT_EQ(buffer[32], 4);
    EXPECT_EQ(buffer[35], 7);
    EXPECT_EQ(buffer[36], 0);
    EXPECT_EQ(Qp::of(qp).rq.outstanding(), 0U);
}

TEST_F(Completions, inline_payload_for_a_vanished_region_is_an_error_and_no_crash) {
    post_receive(3, {sge(0, 8)});
    fill(opened.engine.qp.receive, 0, 8);
    ASSERT_EQ(dereg_mr(reinterpret_cast<abi::VerbsMr*>(mr)), 0);
    opened.engine.complete_receive(0, 3, ipc::kCqeInline, 8);
    ASSERT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_EQ(wc[0].status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(buffer[0], 0);
}

TEST_F(Completions, inline_payload_reaches_on_demand_memory_or_fails_without_a_fault) {
    ibv_mr* all = reg_mr(pd, nullptr, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
    ibv_sge good = sge(0, 4);
    good.lkey = all->lkey;
    post_receive(1, {good});
    post_receive(2, {{16, 4, all->lkey}});
    fill(opened.engine.qp.receive, 0, 4);
    fill(opened.engine.qp.receive, 1, 4);
    opened.engine.complete_receive(0, 1, ipc::kCqeInline, 4);
    opened.engine.complete_receive(1, 2, ipc::kCqeInline, 4);
    ASSERT_EQ(poll_cq(cq, 8, wc), 2);
    EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(buffer[3], 4);
    EXPECT_EQ(wc[1].status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(Completions, flags_are_translated) {
    post_receive(1, {sge(0, 8)});
    opened.engine.complete_receive(0, 1, ipc::kCqeGrh | ipc::kCqeImmediate, 40);
    ASSERT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_EQ(wc[0].wc_flags, unsigned{IBV_WC_GRH} | unsigned{IBV_WC_WITH_IMM});
}

TEST_F(Completions, a_destroyed_qp_leaves_no_completions) {
    ibv_qp* other = opened.make_qp(pd, cq);
    const std::uint32_t number = other->qp_num;
    opened.engine.complete_send(0, 1);
    opened.engine.complete([&](ipc::Cqe& cqe) {
        cqe.qp_number = qp->qp_num;
        cqe.qp_slot = Qp::of(qp).slot;
        cqe.wr_id = 2;
    });
    ASSERT_EQ(destroy_qp(other), 0);
    ASSERT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_NE(wc[0].qp_num, number);
    EXPECT_EQ(wc[0].wr_id, 2U);
}

TEST_F(Completions, reset_voids_completions_and_frees_all_slots) {
    for (int i = 0; i < 4; ++i) post_one();
    opened.engine.complete_send(0, 1);
    opened.move_to(qp, IBV_QPS_RESET);
    EXPECT_EQ(poll_cq(cq, 8, wc), 0);
    EXPECT_EQ(Qp::of(qp).sq.outstanding(), 0U);
    EXPECT_EQ(opened.engine.at<ipc::QueueControl>(opened.engine.qp.send.control)->producer.load(), 0U);
}

TEST_F(Completions, shared_receive_slots_come_back) {
    ibv_srq_init_attr wish{};
    wish.attr = {2, 2, 0};
    ibv_srq* srq = create_srq(pd, &wish);
    srq->context = opened.verbs();  // as libibverbs does
    qp = opened.make_qp(pd, cq, IBV_QPT_RC, 4, srq);
    ibv_sge list = sge(0, 8);
    ibv_recv_wr wr{11, nullptr, &list, 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(post_srq_recv(srq, &wr, &bad), 0);
    ASSERT_EQ(post_srq_recv(srq, &wr, &bad), 0);
    ASSERT_EQ(post_srq_recv(srq, &wr, &bad), ENOMEM);
    fill(opened.engine.srq.queue, 1, 4);
    opened.engine.complete_receive(1, 11, ipc::kCqeInline | ipc::kCqeSrq, 4);
    ASSERT_EQ(poll_cq(cq, 8, wc), 1);
    EXPECT_EQ(buffer[3], 4);
    EXPECT_EQ(post_srq_recv(srq, &wr, &bad), 0);
    auto* available = opened.engine.at<std::uint32_t>(opened.engine.srq.available);
    EXPECT_EQ(available[0], 1U);  // third post, in a ring of two
}

TEST_F(Completions, overrun_is_an_error) {
    opened.engine.at<ipc::CqControl>(opened.engine.cq.control)->overrun = 1;
    EXPECT_LT(poll_cq(cq, 8, wc), 0);
}

TEST_F(Completions, arming_is_never_weakened) {
    auto* control = opened.engine.at<ipc::CqControl>(opened.engine.cq.control);
    req_notify_cq(cq, 1);
    EXPECT_EQ(control->armed.load(), std::uint32_t{ipc::kArmSolicited});
    req_notify_cq(cq, 0);
    req_notify_cq(cq, 1);
    EXPECT_EQ(control->armed.load(), std::uint32_t{ipc::kArmAll});
}

TEST_F(Completions, extended_interface_reads_every_field) {
    ibv_cq_init_attr_ex wish{};
    wish.cqe = 4;
    wish.wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS & ~static_cast<unsigned>(IBV_WC_EX_WITH_TM_INFO);
    ibv_cq_ex* ex = create_cq_ex(opened.verbs(), &wish);
    ASSERT_NE(ex, nullptr);
    ibv_cq_ex_to_cq(ex)->context = opened.verbs();
    opened.make_qp(pd, ibv_cq_ex_to_cq(ex));
    ibv_poll_cq_attr none{};
    EXPECT_EQ(ibv_start_poll(ex, &none), ENOENT);
    opened.engine.complete([](ipc::Cqe& cqe) {
        cqe.wr_id = 5;
        cqe.timestamp_ns = 123456;
        cqe.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kFetchAdd);
        cqe.byte_len = 8;
        cqe.sl = 3;
    });
    opened.engine.complete_send(1, 6);
    ASSERT_EQ(ibv_start_poll(ex, &none), 0);
    EXPECT_EQ(ex->wr_id, 5U);
    EXPECT_EQ(ex->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(ex), IBV_WC_FETCH_ADD);
    EXPECT_EQ(ibv_wc_read_completion_ts(ex), 123456U);
    EXPECT_EQ(ibv_wc_read_byte_len(ex), 8U);
    EXPECT_EQ(ibv_wc_read_sl(ex), 3);
    EXPECT_EQ(ibv_wc_read_cvlan(ex), 0);
    EXPECT_EQ(ibv_next_poll(ex), 0);
    EXPECT_EQ(ex->wr_id, 6U);
    EXPECT_EQ(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    wish.wc_flags = IBV_WC_EX_WITH_TM_INFO;
    EXPECT_EQ(create_cq_ex(opened.verbs(), &wish), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace uib::provider::test
