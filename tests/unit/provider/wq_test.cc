// Work queues, indirection tables and queue pairs with a hash: what the engine is asked for, what a work
// queue's posts and completions do, what is refused.
#include "provider/wq.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "provider/cq.h"
#include "provider/device.h"
#include "provider/flow.h"
#include "provider/memory.h"
#include "provider/post_recv.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

class WorkQueue : public ::testing::Test {
  protected:
    WorkQueue() : pd(opened.make_pd()), cq(opened.make_cq(16)) {
        mr = reg_mr(pd, memory, sizeof memory, reinterpret_cast<std::uint64_t>(memory),
                    IBV_ACCESS_LOCAL_WRITE);
        for (unsigned i = 0; i < sizeof key; ++i) key[i] = static_cast<std::uint8_t>(i + 1);
    }
    ibv_wq_init_attr wish() const {
        ibv_wq_init_attr attributes{};
        attributes.wq_type = IBV_WQT_RQ;
        attributes.max_wr = 3;
        attributes.max_sge = 1;
        attributes.pd = pd;
        attributes.cq = cq;
        return attributes;
    }
    ibv_wq* make() {
        ibv_wq_init_attr attributes = wish();
        ibv_wq* wq = create_wq(opened.verbs(), &attributes);
        if (wq == nullptr) return nullptr;
        EXPECT_EQ(attributes.max_wr, 4U) << "what it really takes";
        // What libibverbs does after the call.
        ::pthread_mutex_init(&wq->mutex, nullptr);
        ::pthread_cond_init(&wq->cond, nullptr);
        return wq;
    }
    static int move(ibv_wq* wq, ibv_wq_state state) {
        ibv_wq_attr attributes{};
        attributes.attr_mask = IBV_WQ_ATTR_STATE;
        attributes.wq_state = state;
        return modify_wq(wq, &attributes);
    }
    int post(ibv_wq* wq, std::uint64_t wr_id) {
        ibv_sge list{reinterpret_cast<std::uint64_t>(memory), sizeof memory, mr->lkey};
        ibv_recv_wr wr{};
        wr.wr_id = wr_id;
        wr.sg_list = &list;
        wr.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        const int error = ibv_post_wq_recv(wq, &wr, &bad);
        EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
        return error;
    }
    ibv_rwq_ind_table* make_table(ibv_wq* first, ibv_wq* second) {
        ibv_wq* entries[] = {first, second};
        ibv_rwq_ind_table_init_attr attributes{1, entries, 0};
        return create_rwq_ind_table(opened.verbs(), &attributes);
    }
    ibv_qp_init_attr_ex hash_wish(ibv_rwq_ind_table* table) {
        ibv_qp_init_attr_ex attributes{};
        attributes.qp_type = IBV_QPT_RAW_PACKET;
        attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_IND_TABLE |
                               IBV_QP_INIT_ATTR_CREATE_FLAGS;
        attributes.pd = pd;
        attributes.rwq_ind_tbl = table;
        attributes.rx_hash_conf = {IBV_RX_HASH_FUNC_TOEPLITZ, sizeof key, key,
                                   IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_PORT_UDP};
        return attributes;
    }
    int refused(const ibv_qp_init_attr_ex& attributes) {
        ibv_qp_init_attr_ex copy = attributes;
        errno = 0;
        EXPECT_EQ(create_qp_ex(opened.verbs(), &copy), nullptr);
        return errno;
    }

    OpenedContext opened;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_mr* mr = nullptr;
    std::uint8_t memory[256]{};
    std::uint8_t key[40];
};

TEST_F(WorkQueue, the_device_says_what_it_can_do) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(query_device_ex(opened.verbs(), nullptr, &attributes, sizeof attributes), 0);
    EXPECT_EQ(attributes.max_wq_type_rq, 8U);
    EXPECT_EQ(attributes.rss_caps.supported_qpts, 1U << IBV_QPT_RAW_PACKET);
    EXPECT_EQ(attributes.rss_caps.max_rwq_indirection_tables, 4U);
    EXPECT_EQ(attributes.rss_caps.max_rwq_indirection_table_size, 16U);
    EXPECT_EQ(attributes.rss_caps.rx_hash_fields_mask, 0xFFU);
    EXPECT_EQ(attributes.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
    EXPECT_EQ(attributes.raw_packet_caps, 0U);
}

TEST_F(WorkQueue, receives_are_posted_and_complete) {
    ibv_wq* wq = make();
    ASSERT_NE(wq, nullptr);
    EXPECT_EQ(wq->wq_num, opened.engine.qp.qp_number);
    EXPECT_EQ(wq->state, IBV_WQS_RESET);
    EXPECT_EQ(post(wq, 1), EINVAL);
    ASSERT_EQ(move(wq, IBV_WQS_RDY), 0);
    EXPECT_EQ(wq->state, IBV_WQS_RDY);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(post(wq, 10 + i), 0);
    EXPECT_EQ(post(wq, 14), ENOMEM);

    // A short frame comes in the slot.
    const ipc::QueueLocation& queue = opened.engine.qp.receive;
    std::memset(opened.engine.receive_slot(queue, 0) + ipc::receive_inline_offset(queue.max_sge), 7, 60);
    opened.engine.complete_receive(0, 10, ipc::kCqeInline, 60);
    ibv_wc wc{};
    ASSERT_EQ(poll_cq(cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 10U);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.qp_num, wq->wq_num);
    EXPECT_EQ(memory[0], 7);
    EXPECT_EQ(memory[59], 7);
    EXPECT_EQ(memory[60], 0);
    EXPECT_EQ(post(wq, 14), 0) << "the slot is free again";

    ASSERT_EQ(move(wq, IBV_WQS_RESET), 0);
    EXPECT_EQ(post(wq, 15), EINVAL);
    EXPECT_EQ(destroy_wq(wq), 0);
}

TEST_F(WorkQueue, the_state_that_the_program_believes_in_is_checked) {
    ibv_wq* wq = make();
    ibv_wq_attr attributes{};
    attributes.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
    attributes.curr_wq_state = IBV_WQS_RDY;
    attributes.wq_state = IBV_WQS_ERR;
    EXPECT_EQ(modify_wq(wq, &attributes), EINVAL);
    attributes.attr_mask = IBV_WQ_ATTR_FLAGS;
    EXPECT_EQ(modify_wq(wq, &attributes), EOPNOTSUPP);
    opened.engine.refuse = [](ipc::Operation operation, const std::byte*) {
        return operation == ipc::Operation::kModifyWq ? EINVAL : 0;
    };
    EXPECT_EQ(move(wq, IBV_WQS_RDY), EINVAL);
    EXPECT_EQ(wq->state, IBV_WQS_RESET);
    EXPECT_EQ(destroy_wq(wq), 0);
}

TEST_F(WorkQueue, offloads_are_refused) {
    ibv_wq_init_attr attributes = wish();
    attributes.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    attributes.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
    EXPECT_EQ(create_wq(opened.verbs(), &attributes), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    attributes = wish();
    attributes.cq = nullptr;
    EXPECT_EQ(create_wq(opened.verbs(), &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(WorkQueue, a_hash_queue_pair_is_made_over_a_table) {
    ibv_wq *first = make(), *second = make();
    ibv_rwq_ind_table* table = make_table(first, second);
    ASSERT_NE(table, nullptr);
    EXPECT_EQ(opened.engine.rwq_table.entries, 2U);
    EXPECT_EQ(opened.engine.rwq_table.wqs[0], first->handle);
    EXPECT_EQ(opened.engine.rwq_table.wqs[1], second->handle);
    ibv_qp_init_attr_ex attributes = hash_wish(table);
    ibv_qp* qp = create_qp_ex(opened.verbs(), &attributes);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(qp->qp_num, 0x300U);
    EXPECT_EQ(opened.engine.hash_qp.table, static_cast<std::uint32_t>(table->ind_tbl_handle));
    EXPECT_EQ(opened.engine.hash_qp.fields, ipc::kHashSourceIpv4 | ipc::kHashDestinationUdpPort);
    EXPECT_EQ(std::memcmp(opened.engine.hash_qp.key, key, sizeof key), 0);
    ibv_recv_wr receive{};
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(post_recv(qp, &receive, &bad_receive), EINVAL);
    EXPECT_EQ(destroy_qp(qp), 0);
    EXPECT_EQ(destroy_rwq_ind_table(table), 0);
    EXPECT_EQ(destroy_wq(first), 0);
    EXPECT_EQ(destroy_wq(second), 0);
}

TEST_F(WorkQueue, a_table_larger_than_the_device_takes_is_refused) {
    ibv_rwq_ind_table_init_attr attributes{5, nullptr, 0};
    EXPECT_EQ(create_rwq_ind_table(opened.verbs(), &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
    attributes.log_ind_tbl_size = 32;
    EXPECT_EQ(create_rwq_ind_table(opened.verbs(), &attributes), nullptr);
    EXPECT_EQ(errno, EINVAL);
}

TEST_F(WorkQueue, what_a_hash_queue_pair_cannot_have_is_refused) {
    ibv_wq* wq = make();
    ibv_rwq_ind_table* table = make_table(wq, wq);
    const ibv_qp_init_attr_ex good = hash_wish(table);
    ibv_qp_init_attr_ex bad = good;
    bad.qp_type = IBV_QPT_UD;
    EXPECT_EQ(refused(bad), EOPNOTSUPP);
    bad = good;
    bad.comp_mask &= ~std::uint32_t{IBV_QP_INIT_ATTR_RX_HASH};
    EXPECT_EQ(refused(bad), EINVAL);
    bad = good;
    bad.recv_cq = cq;
    EXPECT_EQ(refused(bad), EINVAL);
    bad = good;
    bad.cap.max_send_wr = 1;
    EXPECT_EQ(refused(bad), EINVAL);
    bad = good;
    bad.rx_hash_conf.rx_hash_function = 2;
    EXPECT_EQ(refused(bad), EOPNOTSUPP);
    bad = good;
    bad.rx_hash_conf.rx_hash_key_len = 39;
    EXPECT_EQ(refused(bad), EINVAL);
    bad = good;
    bad.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_IPSEC_SPI;
    EXPECT_EQ(refused(bad), EOPNOTSUPP);
    EXPECT_EQ(destroy_rwq_ind_table(table), 0);
    EXPECT_EQ(destroy_wq(wq), 0);
}

}  // namespace
}  // namespace uib::provider::test
