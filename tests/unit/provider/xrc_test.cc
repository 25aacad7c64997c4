// XRC and atomic writes in the provider: what lands in the slots, what is refused, and completions of target
// QPs that this process does not know.
#include "provider/xrc.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "provider/cq.h"
#include "provider/device.h"
#include "provider/memory.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "provider/srq.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

constexpr std::uint32_t kForeignTarget = 0xABC;  // no QP of this process

class Xrc : public ::testing::Test {
  protected:
    Xrc() : pd(opened.make_pd()), cq(opened.make_cq(16)) {
        mr = reg_mr(pd, memory, sizeof memory, reinterpret_cast<std::uint64_t>(memory),
                    IBV_ACCESS_LOCAL_WRITE);
        ibv_xrcd_init_attr wish{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
        xrcd = open_xrcd(opened.verbs(), &wish);
    }
    ibv_srq* make_xrc_srq() {
        ibv_srq_init_attr_ex wish{};
        wish.attr.max_wr = 4;
        wish.attr.max_sge = 1;
        wish.comp_mask =
            IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        wish.srq_type = IBV_SRQT_XRC;
        wish.pd = pd;
        wish.xrcd = xrcd;
        wish.cq = cq;
        return create_srq_ex(opened.verbs(), &wish);
    }
    ibv_qp* make_target() {
        ibv_qp_init_attr_ex wish{};
        wish.qp_type = IBV_QPT_XRC_RECV;
        wish.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        wish.xrcd = xrcd;
        return create_qp_ex(opened.verbs(), &wish);
    }
    ibv_sge entry(std::uint32_t length) const {
        return {reinterpret_cast<std::uint64_t>(memory), length, mr->lkey};
    }
    int post(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t length, unsigned flags = 0) {
        ibv_sge list = entry(length);
        ibv_send_wr wr{};
        wr.sg_list = &list;
        wr.num_sge = 1;
        wr.opcode = opcode;
        wr.send_flags = flags;
        wr.wr.rdma.remote_addr = 0x5000;
        wr.wr.rdma.rkey = 9;
        wr.qp_type.xrc.remote_srqn = 0x123;
        ibv_send_wr* bad = nullptr;
        return post_send(qp, &wr, &bad);
    }

    OpenedContext opened;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_mr* mr = nullptr;
    ibv_xrcd* xrcd = nullptr;
    std::uint8_t memory[64]{1, 2, 3, 4, 5, 6, 7, 8};
};

TEST_F(Xrc, the_device_says_what_it_can_do) {
    constexpr std::uint64_t kAtomicWrite = std::uint64_t{1} << 40;  // IB_UVERBS_DEVICE_ATOMIC_WRITE
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(query_device_ex(opened.verbs(), nullptr, &attributes, sizeof attributes), 0);
    EXPECT_NE(attributes.orig_attr.device_cap_flags & IBV_DEVICE_XRC, 0U);
    EXPECT_NE(attributes.orig_attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG, 0U);
    EXPECT_NE(attributes.device_cap_flags_ex & kAtomicWrite, 0U);
    EXPECT_NE(attributes.xrc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV, 0U);
}

TEST_F(Xrc, a_domain_needs_file_and_flags) {
    ASSERT_NE(xrcd, nullptr);
    EXPECT_EQ(close_xrcd(xrcd), 0);
    ibv_xrcd_init_attr wish{IBV_XRCD_INIT_ATTR_FD, -1, 0};
    EXPECT_EQ(open_xrcd(opened.verbs(), &wish), nullptr);
    EXPECT_EQ(errno, EINVAL);
    opened.engine.refuse = [](ipc::Operation operation, const std::byte*) {
        return operation == ipc::Operation::kOpenXrcd ? ENOENT : 0;
    };
    wish.comp_mask |= IBV_XRCD_INIT_ATTR_OFLAGS;
    EXPECT_EQ(open_xrcd(opened.verbs(), &wish), nullptr);
    EXPECT_EQ(errno, ENOENT);
}

TEST_F(Xrc, an_initiator_names_the_srq_in_each_request) {
    ibv_qp* qp = opened.make_qp(pd, cq, IBV_QPT_XRC_SEND);
    ASSERT_NE(qp, nullptr);
    opened.move_to(qp, IBV_QPS_RTS);
    ASSERT_EQ(post(qp, IBV_WR_SEND, 8), 0);
    ASSERT_EQ(post(qp, IBV_WR_RDMA_WRITE, 8), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->remote_qpn, 0x123U);
    EXPECT_EQ(opened.engine.send_wqe(1)->remote_qpn, 0x123U);
    EXPECT_EQ(opened.engine.send_wqe(1)->remote_address, 0x5000U);
}

TEST_F(Xrc, the_extended_interface_wants_the_srq_number) {
    ibv_qp* qp =
        opened.make_qp(pd, cq, IBV_QPT_XRC_SEND, 4, nullptr, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV);
    ASSERT_NE(qp, nullptr);
    opened.move_to(qp, IBV_QPS_RTS);
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
    ibv_wr_start(ex);
    ibv_wr_local_inv(ex, 7);
    ibv_wr_send(ex);
    ibv_wr_set_xrc_srqn(ex, 0x77);
    ibv_wr_set_sge(ex, mr->lkey, entry(8).addr, 8);
    ASSERT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(opened.engine.send_wqe(1)->remote_qpn, 0x77U);
}

TEST_F(Xrc, a_target_posts_nothing_and_has_no_queues) {
    ibv_qp* target = make_target();
    ASSERT_NE(target, nullptr);
    EXPECT_EQ(target->send_cq, nullptr);
    opened.move_to(target, IBV_QPS_RTS);
    EXPECT_EQ(post(target, IBV_WR_SEND, 8), EINVAL);
    EXPECT_EQ(destroy_qp(target), 0);
}

TEST_F(Xrc, a_known_target_can_be_opened) {
    ibv_qp_open_attr wish{};
    wish.comp_mask =
        IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
    wish.qp_num = kForeignTarget;
    wish.xrcd = xrcd;
    wish.qp_context = this;
    wish.qp_type = IBV_QPT_XRC_RECV;
    ibv_qp* qp = open_qp(opened.verbs(), &wish);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(qp->qp_num, kForeignTarget);
    EXPECT_EQ(qp->qp_context, this);
    EXPECT_EQ(destroy_qp(qp), 0);
    wish.qp_type = IBV_QPT_RC;
    EXPECT_EQ(open_qp(opened.verbs(), &wish), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(Xrc, a_receive_of_somebody_elses_target_comes_from_the_srq) {
    ibv_srq* srq = make_xrc_srq();
    ASSERT_NE(srq, nullptr);
    std::uint32_t number = 0;
    ASSERT_EQ(get_srq_num(srq, &number), 0);
    EXPECT_EQ(number, opened.engine.srq.srq_number);
    std::uint8_t to[16]{};
    ibv_mr* target = reg_mr(pd, to, sizeof to, reinterpret_cast<std::uint64_t>(to), IBV_ACCESS_LOCAL_WRITE);
    ibv_sge list{reinterpret_cast<std::uint64_t>(to), sizeof to, target->lkey};
    ibv_recv_wr wr{5, nullptr, &list, 1};
    ibv_recv_wr* bad = nullptr;
    for (int i = 0; i < 4; ++i) ASSERT_EQ(post_srq_recv(srq, &wr, &bad), 0);
    EXPECT_EQ(post_srq_recv(srq, &wr, &bad), ENOMEM);
    const std::uint32_t slot = *opened.engine.at<std::uint32_t>(opened.engine.srq.available);
    std::memcpy(opened.engine.receive_slot(opened.engine.srq.queue, slot) +
                    ipc::receive_inline_offset(opened.engine.srq.queue.max_sge),
                memory, 8);
    opened.engine.complete([&](ipc::Cqe& cqe) {
        cqe.opcode = static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceive);
        cqe.flags = ipc::kCqeReceive | ipc::kCqeXrcSrq | ipc::kCqeInline;
        cqe.qp_number = kForeignTarget;
        cqe.qp_slot = number;
        cqe.wqe_index = slot;
        cqe.wr_id = 5;
        cqe.byte_len = 8;
    });
    ibv_wc wc{};
    ASSERT_EQ(poll_cq(cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 5U);
    EXPECT_EQ(wc.qp_num, kForeignTarget);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(to, memory, 8), 0);
    EXPECT_EQ(post_srq_recv(srq, &wr, &bad), 0) << "the slot is free again";
}

TEST_F(Xrc, completions_of_a_destroyed_srq_are_gone) {
    ibv_srq* srq = make_xrc_srq();
    ASSERT_NE(srq, nullptr);
    opened.engine.complete([&](ipc::Cqe& cqe) {
        cqe.opcode = static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceive);
        cqe.flags = ipc::kCqeReceive | ipc::kCqeXrcSrq;
        cqe.qp_number = kForeignTarget;
        cqe.qp_slot = opened.engine.srq.srq_number;
    });
    ASSERT_EQ(destroy_srq(srq), 0);
    ibv_wc wc{};
    EXPECT_EQ(poll_cq(cq, 1, &wc), 0);
}

TEST_F(Xrc, srq_attributes_must_be_whole) {
    ibv_srq_init_attr_ex wish{};
    wish.attr.max_wr = 4;
    wish.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD;
    wish.srq_type = IBV_SRQT_XRC;
    wish.pd = pd;
    wish.xrcd = xrcd;
    EXPECT_EQ(create_srq_ex(opened.verbs(), &wish), nullptr);
    EXPECT_EQ(errno, EINVAL);
    wish.srq_type = IBV_SRQT_TM;
    EXPECT_EQ(create_srq_ex(opened.verbs(), &wish), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(Xrc, atomic_write_carries_eight_bytes_in_the_request) {
    ibv_qp* qp = opened.make_qp(pd, cq, IBV_QPT_RC, 4, nullptr, IBV_QP_EX_WITH_ATOMIC_WRITE);
    ASSERT_NE(qp, nullptr);
    opened.move_to(qp, IBV_QPS_RTS);
    EXPECT_EQ(post(qp, IBV_WR_ATOMIC_WRITE, 4), EINVAL);
    EXPECT_EQ(post(qp, IBV_WR_ATOMIC_WRITE, 16, IBV_SEND_INLINE), EINVAL);
    ASSERT_EQ(post(qp, IBV_WR_ATOMIC_WRITE, 8), 0);
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_write(ex, 10, 0x6000, memory);
    ASSERT_EQ(ibv_wr_complete(ex), 0);
    for (std::uint32_t i = 0; i < 2; ++i) {
        const ipc::SendWqe* wqe = opened.engine.send_wqe(i);
        EXPECT_EQ(wqe->opcode, static_cast<std::uint8_t>(ipc::WorkOpcode::kAtomicWrite));
        EXPECT_EQ(wqe->rkey, 9U + i);
        EXPECT_EQ(wqe->remote_address, 0x5000U + 0x1000 * i);
        ASSERT_EQ(wqe->inline_length, 8U);
        EXPECT_EQ(std::memcmp(reinterpret_cast<const std::byte*>(wqe) + ipc::kSendPayloadOffset, memory, 8),
                  0);
    }
    opened.engine.complete([](ipc::Cqe& cqe) {
        cqe.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kAtomicWrite);
        cqe.wqe_index = 1;
    });
    ibv_wc wc{};
    ASSERT_EQ(poll_cq(cq, 1, &wc), 1);
    EXPECT_EQ(wc.opcode, IBV_WC_ATOMIC_WRITE);
    ibv_qp* uc = opened.make_qp(pd, cq, IBV_QPT_UC);
    opened.move_to(uc, IBV_QPS_RTS);
    EXPECT_EQ(post(uc, IBV_WR_ATOMIC_WRITE, 8), EINVAL);
}

}  // namespace
}  // namespace uib::provider::test
