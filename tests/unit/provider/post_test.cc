// Posting: what is refused, what goes into the slot, when a payload is copied in.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "provider/ah.h"
#include "provider/memory.h"
#include "provider/post_recv.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

class Post : public ::testing::Test {
  protected:
    Post() : pd(opened.make_pd()), cq(opened.make_cq(16)), buffer(512) {
        std::iota(buffer.begin(), buffer.end(), std::uint8_t{0});
        mr = reg_mr(pd, buffer.data(), buffer.size(), reinterpret_cast<std::uint64_t>(buffer.data()),
                    IBV_ACCESS_LOCAL_WRITE);
        qp = opened.make_qp(pd, cq);
        opened.move_to(qp, IBV_QPS_RTS);
    }

    ibv_sge sge(std::size_t offset, std::uint32_t length) {
        return {reinterpret_cast<std::uint64_t>(buffer.data() + offset), length, mr->lkey};
    }
    int post(ibv_qp* on, ibv_wr_opcode opcode, std::vector<ibv_sge> list, unsigned flags = 0) {
        ibv_send_wr wr{};
        wr.wr_id = 42;
        wr.sg_list = list.data();
        wr.num_sge = static_cast<int>(list.size());
        wr.opcode = opcode;
        wr.send_flags = flags;
        bad = nullptr;
        const int error = post_send(on, &wr, &bad);
        EXPECT_EQ(bad == &wr, error != 0);
        return error;
    }

    OpenedContext opened;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_mr* mr = nullptr;
    ibv_qp* qp = nullptr;
    std::vector<std::uint8_t> buffer;
    ibv_send_wr* bad = nullptr;
};

TEST_F(Post, short_payload_is_copied_into_the_slot) {
    ASSERT_EQ(post(qp, IBV_WR_SEND, {sge(10, 5), sge(100, 3)}, IBV_SEND_SIGNALED), 0);
    ipc::SendWqe* wqe = opened.engine.send_wqe(0);
    EXPECT_EQ(wqe->flags, ipc::kWorkInline | ipc::kWorkSignaled);
    EXPECT_EQ(wqe->inline_length, 8U);
    EXPECT_EQ(wqe->sge_count, 0);
    const auto* payload = reinterpret_cast<std::uint8_t*>(wqe) + ipc::kSendPayloadOffset;
    EXPECT_EQ(payload[0], 10);
    EXPECT_EQ(payload[5], 100);
    EXPECT_EQ(wqe->wr_id, 42U);
}

TEST_F(Post, doorbell_is_rung) {
    ASSERT_EQ(post(qp, IBV_WR_SEND, {sge(0, 5)}), 0);
    auto* map = opened.engine.at<ipc::DoorbellMap>({0, 0, 0});
    EXPECT_EQ(map->leaf[0].load(), 1U);
    EXPECT_EQ(opened.engine.at<ipc::QueueControl>(opened.engine.qp.send.control)->producer.load(), 1U);
}

TEST_F(Post, long_fenced_payload_goes_as_a_list) {
    ASSERT_EQ(post(qp, IBV_WR_SEND, {sge(0, ipc::kAutoInlineBytes + 1)}, IBV_SEND_FENCE), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->flags, ipc::kWorkFence);
    EXPECT_EQ(opened.engine.send_wqe(0)->sge_count, 1);
}

TEST_F(Post, unknown_key_or_range_is_left_to_the_engine) {
    ibv_sge wrong_key = sge(0, 8);
    wrong_key.lkey ^= 1;
    ASSERT_EQ(post(qp, IBV_WR_SEND, {wrong_key}), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->sge_count, 1);
    ASSERT_EQ(post(qp, IBV_WR_SEND, {sge(510, 3)}), 0);
    EXPECT_EQ(opened.engine.send_wqe(1)->sge_count, 1);
}

TEST_F(Post, key_of_another_protection_domain_is_left_to_the_engine) {
    ibv_mr* other =
        reg_mr(opened.make_pd(), buffer.data(), 16, reinterpret_cast<std::uint64_t>(buffer.data()), 0);
    ibv_sge entry = sge(0, 8);
    entry.lkey = other->lkey;
    ASSERT_EQ(post(qp, IBV_WR_SEND, {entry}), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->sge_count, 1);
}

TEST_F(Post, deregistered_key_is_left_to_the_engine) {
    const ibv_sge entry = sge(0, 8);
    ASSERT_EQ(dereg_mr(reinterpret_cast<abi::VerbsMr*>(mr)), 0);
    ASSERT_EQ(post(qp, IBV_WR_SEND, {entry}), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->sge_count, 1);
}

TEST_F(Post, rdma_read_and_atomics_are_never_copied) {
    ASSERT_EQ(post(qp, IBV_WR_RDMA_READ, {sge(0, 8)}), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->sge_count, 1);
    ASSERT_EQ(post(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, {sge(0, 8)}), 0);
    EXPECT_EQ(opened.engine.send_wqe(1)->sge_count, 1);
    EXPECT_EQ(post(qp, IBV_WR_RDMA_READ, {sge(0, 8)}, IBV_SEND_INLINE), EINVAL);
}

// A READ before it may still be filling the bytes.
TEST_F(Post, fenced_payload_is_not_copied_at_post_time) {
    ASSERT_EQ(post(qp, IBV_WR_SEND, {sge(0, 8)}, IBV_SEND_FENCE), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->flags & ipc::kWorkInline, 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->sge_count, 1);
}

TEST_F(Post, inline_ignores_the_key_and_has_a_limit) {
    ibv_sge entry = sge(0, 16);
    entry.lkey = 0;
    ASSERT_EQ(post(qp, IBV_WR_SEND, {entry}, IBV_SEND_INLINE), 0);
    EXPECT_EQ(opened.engine.send_wqe(0)->inline_length, 16U);
    entry.length = ipc::kAutoInlineBytes + 1;
    EXPECT_EQ(post(qp, IBV_WR_SEND, {entry}, IBV_SEND_INLINE), EINVAL);
}

TEST_F(Post, iova_is_translated) {
    ibv_mr* moved = reg_mr(pd, buffer.data(), 64, 0x1000, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(post(qp, IBV_WR_SEND, {{0x1020, 4, moved->lkey}}), 0);
    const auto* wqe = reinterpret_cast<std::uint8_t*>(opened.engine.send_wqe(0));
    EXPECT_EQ(wqe[ipc::kSendPayloadOffset], 0x20);
}

TEST_F(Post, refuses_as_hardware_does) {
    EXPECT_EQ(post(qp, IBV_WR_SEND, {sge(0, 1), sge(0, 1), sge(0, 1)}), EINVAL);
    EXPECT_EQ(post(qp, IBV_WR_TSO, {sge(0, 1)}), EINVAL);
    EXPECT_EQ(post(qp, IBV_WR_SEND, {sge(0, 1)}, IBV_SEND_IP_CSUM), EINVAL);
    EXPECT_EQ(post(qp, IBV_WR_SEND, {{0, 0x80000000U, 1}, {0, 1, 1}}), EINVAL);
    opened.move_to(qp, IBV_QPS_RTR);
    EXPECT_EQ(post(qp, IBV_WR_SEND, {sge(0, 1)}), EINVAL);
    opened.move_to(qp, IBV_QPS_ERR);
    EXPECT_EQ(post(qp, IBV_WR_SEND, {sge(0, 1)}), 0);
}

TEST_F(Post, full_queue_is_out_of_memory_and_what_fitted_is_posted) {
    ibv_sge list = sge(0, 4);
    std::array<ibv_send_wr, 5> chain{};
    for (std::size_t i = 0; i < chain.size(); ++i) {
        chain[i].sg_list = &list;
        chain[i].num_sge = 1;
        chain[i].opcode = IBV_WR_SEND;
        chain[i].next = i + 1 < chain.size() ? &chain[i + 1] : nullptr;
    }
    EXPECT_EQ(post_send(qp, chain.data(), &bad), ENOMEM);
    EXPECT_EQ(bad, &chain[4]);
    EXPECT_EQ(opened.engine.at<ipc::QueueControl>(opened.engine.qp.send.control)->producer.load(), 4U);
}

TEST_F(Post, unreliable_services_lack_operations) {
    ibv_qp* uc = opened.make_qp(pd, cq, IBV_QPT_UC);
    opened.move_to(uc, IBV_QPS_RTS);
    EXPECT_EQ(post(uc, IBV_WR_RDMA_READ, {sge(0, 8)}), EINVAL);
    EXPECT_EQ(post(uc, IBV_WR_SEND_WITH_INV, {sge(0, 8)}), EINVAL);
    EXPECT_EQ(post(uc, IBV_WR_RDMA_WRITE, {sge(0, 8)}), 0);
}

TEST_F(Post, datagram_needs_an_address_of_its_domain_and_fits_the_mtu) {
    ibv_qp* ud = opened.make_qp(pd, cq, IBV_QPT_UD);
    opened.move_to(ud, IBV_QPS_RTS);
    EXPECT_EQ(post(ud, IBV_WR_SEND, {sge(0, 8)}), EINVAL);
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = 5;
    ibv_ah* ah = create_ah(([&] { return pd; })(), &path);
    ASSERT_NE(ah, nullptr);
    ibv_sge list{0, 1025, 3};
    ibv_send_wr wr{};
    wr.sg_list = &list;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = 9;
    EXPECT_EQ(post_send(ud, &wr, &bad), EINVAL);
    list.length = 1024;
    EXPECT_EQ(post_send(ud, &wr, &bad), 0);
    const auto* wqe = reinterpret_cast<const std::byte*>(opened.engine.send_wqe(0));
    const auto* address = reinterpret_cast<const ipc::AddressVector*>(wqe + ipc::kDatagramAddressOffset);
    EXPECT_EQ(address->dlid, 5);
    EXPECT_EQ(reinterpret_cast<const ipc::ScatterGatherEntry*>(wqe + ipc::kDatagramPayloadOffset)->length,
              1024U);
    ibv_ah* foreign = create_ah(opened.make_pd(), &path);
    wr.wr.ud.ah = foreign;
    EXPECT_EQ(post_send(ud, &wr, &bad), EINVAL);
    path.port_num = 2;
    EXPECT_EQ(create_ah(pd, &path), nullptr);
    destroy_ah(ah);
    destroy_ah(foreign);
}

TEST_F(Post, receive_is_refused_in_reset_and_when_full) {
    ibv_qp* fresh = opened.make_qp(pd, cq);
    ibv_sge list = sge(0, 8);
    ibv_recv_wr wr{1, nullptr, &list, 1};
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(post_recv(fresh, &wr, &bad_receive), EINVAL);
    opened.move_to(fresh, IBV_QPS_INIT);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(post_recv(fresh, &wr, &bad_receive), 0);
    EXPECT_EQ(post_recv(fresh, &wr, &bad_receive), ENOMEM);
    EXPECT_EQ(bad_receive, &wr);
    wr.num_sge = 3;
    EXPECT_EQ(post_recv(fresh, &wr, &bad_receive), ENOMEM);
}

TEST_F(Post, window_binding_counts_the_key_up) {
    ibv_mw mw{opened.verbs(), pd, 0x1234ff, 6, IBV_MW_TYPE_1};
    ibv_mw_bind bind{};
    bind.wr_id = 5;
    bind.bind_info = {mr, 0x10, 0x20, IBV_ACCESS_REMOTE_READ};
    ASSERT_EQ(bind_mw(qp, &mw, &bind), 0);
    EXPECT_EQ(mw.rkey, 0x123400U);
    const ipc::SendWqe* wqe = opened.engine.send_wqe(0);
    EXPECT_EQ(wqe->window_handle, 6U);
    EXPECT_EQ(wqe->rkey, mw.rkey);
    EXPECT_EQ(wqe->swap, mr->lkey | std::uint64_t{IBV_ACCESS_REMOTE_READ} << 32);
}

}  // namespace
}  // namespace uib::provider::test
