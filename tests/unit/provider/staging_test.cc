// Staged payloads: which requests are staged and with what bytes, and that every block comes back.
#include "provider/staging.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "provider/cq.h"
#include "provider/memory.h"
#include "provider/pd.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "provider/waiting.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

constexpr std::uint32_t kGranule = StagingPool::kGranule;
constexpr std::uint32_t kPoolGranules = StagingPool::kBytes / kGranule;
constexpr std::uint32_t kLong = StagingPool::kMaxPayload;

class Staging : public ::testing::Test {
  protected:
    Staging() : pd(opened.make_pd()), cq(opened.make_cq(64)), buffer(std::size_t{2} * kLong) {
        for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<std::uint8_t>(i * 131 >> 3);
        mr = reg_mr(pd, buffer.data(), buffer.size(), address(0), IBV_ACCESS_LOCAL_WRITE);
        qp = opened.make_qp(pd, cq, IBV_QPT_RC, 32, nullptr, IBV_QP_EX_WITH_SEND);
        opened.move_to(qp, IBV_QPS_RTS);
    }

    std::uint64_t address(std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(buffer.data() + offset);
    }
    ibv_sge sge(std::size_t offset, std::uint32_t length) const {
        return {address(offset), length, mr->lkey};
    }
    void post(ibv_wr_opcode opcode, std::vector<ibv_sge> list, unsigned flags = 0) {
        ibv_send_wr wr{};
        wr.sg_list = list.data();
        wr.num_sge = static_cast<int>(list.size());
        wr.opcode = opcode;
        wr.send_flags = flags;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(post_send(qp, &wr, &bad), 0);
    }
    bool staged(std::uint32_t index) {
        return (opened.engine.send_wqe(index)->flags & ipc::kWorkStaged) != 0;
    }
    const std::uint8_t* payload(std::uint32_t index) {
        return opened.engine.at<std::uint8_t>(opened.engine.staging) +
               std::size_t{opened.engine.send_wqe(index)->staging_offset} * ipc::kStagingUnit;
    }
    std::uint32_t used() { return opened.context->staging().used(); }
    int poll() {
        ibv_wc wc{};
        return poll_cq(cq, 1, &wc);
    }
    long times_asked() {
        const auto& seen = opened.engine.operations;
        return std::count(seen.begin(), seen.end(), ipc::Operation::kAllocStaging);
    }

    OpenedContext opened;
    ibv_pd* pd;
    ibv_cq* cq;
    std::vector<std::uint8_t> buffer;
    ibv_mr* mr = nullptr;
    ibv_qp* qp = nullptr;
};

TEST_F(Staging, blocks_fill_the_pool_and_never_overlap) {
    StagingPool& pool = opened.context->staging();
    std::vector<bool> taken(kPoolGranules);
    std::vector<StagedBlock> blocks;
    for (std::uint32_t i = 0;; ++i) {
        const StagedBlock block = pool.take(1 + i * 7919 % (20 * kGranule));
        if (!block) break;
        for (std::uint32_t g = block.first; g < std::uint32_t{block.first} + block.count; ++g) {
            ASSERT_LT(g, kPoolGranules);
            ASSERT_FALSE(taken[g]) << g;
            taken[g] = true;
        }
        blocks.push_back(block);
    }
    EXPECT_GT(pool.used(), kPoolGranules - 20);
    for (const StagedBlock& block : blocks) pool.give_back(block);
    EXPECT_EQ(pool.used(), 0U);
}

TEST_F(Staging, a_long_run_needs_neighbours) {
    StagingPool& pool = opened.context->staging();
    std::vector<StagedBlock> blocks;
    while (const StagedBlock block = pool.take(1)) blocks.push_back(block);
    ASSERT_EQ(blocks.size(), kPoolGranules);
    for (std::size_t i = 0; i < blocks.size(); i += 2) pool.give_back(blocks[i]);
    EXPECT_FALSE(pool.take(kGranule + 1));  // every other granule is free
    // A run across the borders of the bitmap's words.
    for (std::size_t i = 61; i < 131; i += 2) pool.give_back(blocks[i]);
    const StagedBlock run = pool.take(70 * kGranule);
    EXPECT_EQ(run.count, 70);
    EXPECT_EQ(run.first, blocks[60].first);
    EXPECT_EQ(pool.take(1).first, blocks[0].first);
    EXPECT_FALSE(pool.take(2 * kGranule));
}

TEST_F(Staging, long_payloads_are_copied_into_the_pool) {
    post(IBV_WR_SEND, {sge(100, 5000), sge(70000, 300)}, IBV_SEND_SIGNALED);
    post(IBV_WR_RDMA_WRITE_WITH_IMM, {{0, 0, 0}, sge(0, kLong)});
    const ipc::SendWqe* wqe = opened.engine.send_wqe(0);
    EXPECT_EQ(wqe->flags, ipc::kWorkStaged | ipc::kWorkSignaled);
    EXPECT_EQ(wqe->inline_length, 5300U);
    EXPECT_EQ(wqe->sge_count, 0);
    EXPECT_EQ(std::memcmp(payload(0), &buffer[100], 5000), 0);
    EXPECT_EQ(std::memcmp(payload(0) + 5000, &buffer[70000], 300), 0);
    EXPECT_EQ(opened.engine.send_wqe(1)->inline_length, kLong);
    EXPECT_EQ(std::memcmp(payload(1), buffer.data(), kLong), 0);
    EXPECT_EQ(used(), 2 + kLong / kGranule);
    EXPECT_EQ(times_asked(), 1);
}

TEST_F(Staging, short_and_too_long_payloads_are_not_staged) {
    post(IBV_WR_SEND, {sge(0, ipc::kAutoInlineBytes)});
    post(IBV_WR_SEND, {sge(0, kLong), sge(0, 1)});
    EXPECT_EQ(opened.engine.send_wqe(0)->flags, ipc::kWorkInline);
    EXPECT_EQ(opened.engine.send_wqe(1)->sge_count, 2);
    EXPECT_EQ(times_asked(), 0);
}

TEST_F(Staging, an_idle_queue_leaves_long_payloads_to_the_engine_where_cpus_are_few) {
    const bool few = yield_after_polls() != 0;
    post(IBV_WR_SEND, {sge(0, StagingPool::kMaxIdlePayload + 1)});
    EXPECT_EQ(staged(0), !few);
    post(IBV_WR_SEND, {sge(0, StagingPool::kMaxIdlePayload + 1)});
    EXPECT_TRUE(staged(1));
    opened.engine.complete_send(1, 0);
    ASSERT_EQ(poll(), 1);
    post(IBV_WR_SEND, {sge(0, StagingPool::kMaxIdlePayload)});
    EXPECT_TRUE(staged(2));
}

TEST_F(Staging, only_what_is_sent_and_settled_is_staged) {
    post(IBV_WR_SEND, {sge(0, 5000)}, IBV_SEND_FENCE);
    post(IBV_WR_RDMA_READ, {sge(0, 5000)});
    post(IBV_WR_ATOMIC_FETCH_AND_ADD, {sge(0, 8)});
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_FALSE(staged(i)) << i;
        EXPECT_EQ(opened.engine.send_wqe(i)->sge_count, 1) << i;
    }
    EXPECT_EQ(times_asked(), 0);
}

TEST_F(Staging, unknown_keys_and_ranges_are_left_to_the_engine) {
    ibv_sge wrong = sge(0, 5000);
    wrong.lkey ^= 1;
    post(IBV_WR_SEND, {sge(0, 5000), wrong});
    post(IBV_WR_SEND, {sge(buffer.size() - 10, 5000)});
    ibv_pd* other = opened.make_pd();
    const ibv_mr* foreign = reg_mr(other, buffer.data(), buffer.size(), address(0), 0);
    post(IBV_WR_SEND, {{address(0), 5000, foreign->lkey}});
    const ibv_mr* lazy = reg_mr(pd, buffer.data(), buffer.size(), address(0), IBV_ACCESS_ON_DEMAND);
    post(IBV_WR_SEND, {{address(0), 5000, lazy->lkey}});
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_FALSE(staged(i)) << i;
    EXPECT_EQ(used(), 0U);
}

TEST_F(Staging, memory_that_the_engine_maps_is_not_staged) {
    const UniqueFd file(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(file.get(), 65536), 0);
    Mapping shared;
    ASSERT_TRUE(shared.map(file.get(), PROT_READ | PROT_WRITE));
    const auto at = reinterpret_cast<std::uint64_t>(shared.base());
    ibv_mr* mapped = reg_mr(pd, shared.base(), 65536, at, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(opened.engine.registered.kind, static_cast<std::uint32_t>(ipc::RegionKind::kShared));
    post(IBV_WR_SEND, {{at, 5000, mapped->lkey}});
    EXPECT_FALSE(staged(0));
    // New rights change nothing about that.
    ASSERT_EQ(rereg_mr(&Mr::of(mapped).verbs, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
    post(IBV_WR_SEND, {{at, 5000, mapped->lkey}});
    EXPECT_FALSE(staged(1));
    // An engine that cannot map it reads it as private memory.
    opened.engine.refuse = [](ipc::Operation operation, const std::byte* body) {
        ipc::RegMrRequest request;
        std::memcpy(&request, body, sizeof request);
        const bool sharing = request.kind != static_cast<std::uint32_t>(ipc::RegionKind::kPrivate);
        return operation == ipc::Operation::kRegMr && sharing ? ENODEV : 0;
    };
    const ibv_mr* unmapped = reg_mr(pd, shared.base(), 65536, at, IBV_ACCESS_LOCAL_WRITE);
    post(IBV_WR_SEND, {{at, 5000, unmapped->lkey}});
    EXPECT_TRUE(staged(2));
}

TEST_F(Staging, a_full_pool_leaves_the_rest_to_the_engine) {
    const std::uint32_t fit = StagingPool::kBytes / kLong;
    post(IBV_WR_SEND, {sge(0, 1)});  // the queue is not idle
    for (std::uint32_t i = 0; i <= fit; ++i) post(IBV_WR_RDMA_WRITE, {sge(0, kLong)});
    for (std::uint32_t i = 1; i <= fit; ++i) EXPECT_TRUE(staged(i)) << i;
    EXPECT_FALSE(staged(fit + 1));
    EXPECT_EQ(opened.engine.send_wqe(fit + 1)->sge_count, 1);
    opened.engine.complete_send(1, 0);
    ASSERT_EQ(poll(), 1);
    post(IBV_WR_RDMA_WRITE, {sge(0, kLong)});
    EXPECT_TRUE(staged(fit + 2));
}

TEST_F(Staging, an_engine_without_a_pool_is_asked_once) {
    opened.engine.refuse = [](ipc::Operation operation, const std::byte*) {
        return operation == ipc::Operation::kAllocStaging ? ENOMEM : 0;
    };
    post(IBV_WR_SEND, {sge(0, 5000)});
    post(IBV_WR_SEND, {sge(0, 5000)});
    EXPECT_FALSE(staged(0) || staged(1));
    EXPECT_EQ(times_asked(), 1);
}

TEST_F(Staging, a_completion_gives_back_its_block_and_older_ones) {
    for (int i = 0; i < 4; ++i) post(IBV_WR_SEND, {sge(0, 2 * kGranule)});
    EXPECT_EQ(used(), 8U);
    opened.engine.complete_send(2, 0);
    EXPECT_EQ(used(), 8U);  // not before it is polled
    ASSERT_EQ(poll(), 1);
    EXPECT_EQ(used(), 2U);
    opened.engine.complete_send(3, 0, IBV_WC_RETRY_EXC_ERR);
    ASSERT_EQ(poll(), 1);
    EXPECT_EQ(used(), 0U);
}

TEST_F(Staging, blocks_come_back_around_the_ring) {
    for (std::uint32_t i = 0; i < 100; ++i) {
        buffer[0] = static_cast<std::uint8_t>(i);
        post(IBV_WR_SEND, {sge(0, 5 * kGranule)});
        EXPECT_EQ(*payload(i), static_cast<std::uint8_t>(i));
        if (i % 7 != 6) continue;
        opened.engine.complete_send(i, 0);
        ASSERT_EQ(poll(), 1);
        EXPECT_EQ(used(), 0U);
    }
}

TEST_F(Staging, reset_gives_back_everything) {
    for (int i = 0; i < 3; ++i) post(IBV_WR_SEND, {sge(0, 5000)});
    opened.engine.complete_send(0, 0);
    opened.move_to(qp, IBV_QPS_RESET);
    EXPECT_EQ(used(), 0U);
    EXPECT_EQ(poll(), 0);
}

TEST_F(Staging, destruction_gives_back_everything) {
    for (int i = 0; i < 3; ++i) post(IBV_WR_SEND, {sge(0, 5000)});
    EXPECT_EQ(used(), 6U);
    ASSERT_EQ(destroy_qp(qp), 0);
    EXPECT_EQ(used(), 0U);
}

TEST_F(Staging, the_flushes_of_a_dead_engine_give_back_everything) {
    for (int i = 0; i < 3; ++i) post(IBV_WR_SEND, {sge(0, 5000)});
    opened.engine.die();
    ipc::AsyncEvent event{};
    ASSERT_EQ(::read(opened.verbs()->async_fd, &event, sizeof event), static_cast<ssize_t>(sizeof event));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(poll(), 1);
    EXPECT_EQ(used(), 0U);
}

TEST_F(Staging, batches_that_come_to_nothing_give_back_their_blocks) {
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
    post(IBV_WR_SEND, {sge(0, kGranule)});
    const auto start = [&](unsigned requests) {
        ibv_wr_start(ex);
        ex->wr_flags = 0;
        for (unsigned i = 0; i < requests; ++i) {
            ibv_wr_send(ex);
            ibv_wr_set_sge(ex, mr->lkey, address(0), kGranule);
        }
    };
    start(3);
    EXPECT_EQ(used(), 4U);
    ibv_wr_abort(ex);
    EXPECT_EQ(used(), 1U);
    start(2);
    ex->wr_flags = IBV_SEND_IP_CSUM;
    ibv_wr_send(ex);
    EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
    EXPECT_EQ(used(), 1U);
    start(32);  // one more than there is room for: what is under way keeps its block
    EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
    EXPECT_EQ(used(), 1U);
    EXPECT_TRUE(staged(0));
    start(2);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(used(), 3U);
}

TEST_F(Staging, a_payload_set_twice_keeps_one_block) {
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(ex);
    ex->wr_flags = 0;
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, mr->lkey, address(0), kGranule);
    ibv_wr_set_sge(ex, mr->lkey, address(kGranule), 2 * kGranule);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(used(), 2U);
    EXPECT_EQ(std::memcmp(payload(0), &buffer[kGranule], std::size_t{2} * kGranule), 0);
}

}  // namespace
}  // namespace uib::provider::test
