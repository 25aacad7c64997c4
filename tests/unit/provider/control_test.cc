// The control path: errors, objects' fields, domains, channels, regions, events owed at destruction.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "provider/ah.h"
#include "provider/cq.h"
#include "provider/device.h"
#include "provider/memory.h"
#include "provider/pd.h"
#include "provider/post_send.h"
#include "provider/qp.h"
#include "tests/unit/provider/fake_engine.h"

namespace uib::provider::test {
namespace {

bool asked(const FakeEngine& engine, ipc::Operation operation) {
    return std::count(engine.operations.begin(), engine.operations.end(), operation) != 0;
}

TEST(Control, refusals_come_back_as_errno) {
    OpenedContext opened;
    opened.engine.refuse = [](ipc::Operation, const std::byte*) { return EBUSY; };
    EXPECT_EQ(opened.make_pd(), nullptr);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_TRUE(opened.context->alive());
}

TEST(Control, device_attributes_are_filled_as_far_as_the_program_knows_them) {
    OpenedContext opened;
    ibv_device_attr_ex all;
    std::memset(&all, 0xee, sizeof all);
    ASSERT_EQ(query_device_ex(opened.verbs(), nullptr, &all, sizeof all.orig_attr), 0);
    EXPECT_EQ(all.orig_attr.max_cqe, 1024);
    EXPECT_EQ(all.comp_mask, 0xeeeeeeeeU);
    ASSERT_EQ(query_device_ex(opened.verbs(), nullptr, &all, sizeof all), 0);
    EXPECT_EQ(all.comp_mask, 0U);
    EXPECT_EQ(all.hca_core_clock, 1'000'000U);
    const ibv_query_device_ex_input input{1};
    EXPECT_EQ(query_device_ex(opened.verbs(), &input, &all, sizeof all), EINVAL);
}

TEST(Control, raw_clock_is_in_the_unit_of_completion_timestamps) {
    OpenedContext opened;
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    timespec before{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    ASSERT_EQ(query_rt_values(opened.verbs(), &values), 0);
    EXPECT_EQ(values.comp_mask, std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK});
    EXPECT_EQ(values.raw_clock.tv_sec, 0);
    EXPECT_GE(values.raw_clock.tv_nsec, before.tv_sec * 1'000'000'000 + before.tv_nsec);
    values.comp_mask = IBV_VALUES_MASK_RESERVED;
    EXPECT_EQ(query_rt_values(opened.verbs(), &values), EINVAL);
}

TEST(Control, queue_pair_has_all_its_fields) {
    OpenedContext opened;
    ibv_pd* pd = opened.make_pd();
    ibv_cq* cq = opened.make_cq(3);
    EXPECT_EQ(cq->cqe, 4);
    ibv_qp_init_attr wish{};
    int tag = 0;
    wish.qp_context = &tag;
    wish.send_cq = wish.recv_cq = cq;
    wish.cap = {3, 3, 2, 2, 0};
    wish.qp_type = IBV_QPT_RC;
    ibv_qp* qp = create_qp(pd, &wish);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(qp->context, opened.verbs());
    EXPECT_EQ(qp->qp_context, &tag);
    EXPECT_EQ(qp->pd, pd);
    EXPECT_EQ(qp->send_cq, cq);
    EXPECT_EQ(qp->state, IBV_QPS_RESET);
    EXPECT_EQ(wish.cap.max_send_wr, 4U);
    EXPECT_EQ(wish.cap.max_inline_data, ipc::kAutoInlineBytes);
    EXPECT_EQ(ibv_qp_to_qp_ex(qp), nullptr);
    EXPECT_EQ(destroy_qp(qp), 0);
}

TEST(Control, only_named_attributes_are_sent) {
    OpenedContext opened;
    ibv_qp* qp = opened.make_qp(opened.make_pd(), opened.make_cq(4));
    ibv_qp_attr attributes;
    std::memset(&attributes, 0x5a, sizeof attributes);
    attributes.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(modify_qp(qp, &attributes, IBV_QP_STATE), 0);
    EXPECT_EQ(opened.engine.modified.state, IBV_QPS_INIT);
    EXPECT_EQ(opened.engine.modified.qkey, 0U);
    EXPECT_EQ(opened.engine.modified.path.dlid, 0);
}

TEST(Control, parent_domain_stands_for_its_domain) {
    OpenedContext opened;
    ibv_pd* pd = opened.make_pd();
    ibv_td_init_attr td_wish{};
    ibv_td* td = alloc_td(opened.verbs(), &td_wish);
    ibv_parent_domain_init_attr wish{};
    wish.pd = pd;
    wish.td = td;
    ibv_pd* parent = alloc_parent_domain(opened.verbs(), &wish);
    ASSERT_NE(parent, nullptr);
    EXPECT_EQ(parent->handle, pd->handle);
    EXPECT_EQ(dealloc_pd(pd), EBUSY);
    EXPECT_EQ(dealloc_td(td), EBUSY);
    EXPECT_EQ(dealloc_pd(parent), 0);
    EXPECT_FALSE(asked(opened.engine, ipc::Operation::kDeallocPd));
    EXPECT_EQ(dealloc_td(td), 0);
    EXPECT_EQ(dealloc_pd(pd), 0);
    EXPECT_TRUE(asked(opened.engine, ipc::Operation::kDeallocPd));
    wish.pd = nullptr;
    EXPECT_EQ(alloc_parent_domain(opened.verbs(), &wish), nullptr);
}

TEST(Control, region_that_is_refused_as_shared_becomes_private) {
    OpenedContext opened;
    const UniqueFd fd(::memfd_create("region", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), 8192), 0);
    void* base = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ibv_pd* pd = opened.make_pd();
    const auto iova = reinterpret_cast<std::uint64_t>(base);
    ASSERT_NE(reg_mr(pd, base, 8192, iova, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(opened.engine.registered.kind, static_cast<std::uint32_t>(ipc::RegionKind::kShared));
    opened.engine.refuse = [](ipc::Operation operation, const std::byte* body) {
        ipc::RegMrRequest request{};
        std::memcpy(&request, body, sizeof request);
        return operation == ipc::Operation::kRegMr && request.kind != 0 ? EACCES : 0;
    };
    ASSERT_NE(reg_mr(pd, base, 8192, iova, IBV_ACCESS_LOCAL_WRITE), nullptr);
    EXPECT_EQ(opened.engine.registered.kind, static_cast<std::uint32_t>(ipc::RegionKind::kPrivate));
    ::munmap(base, 8192);
}

TEST(Control, region_access_is_checked) {
    OpenedContext opened;
    ibv_pd* pd = opened.make_pd();
    char bytes[8];
    EXPECT_EQ(reg_mr(pd, bytes, 8, 0, IBV_ACCESS_REMOTE_WRITE), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(reg_mr(pd, nullptr, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE), nullptr);
    ASSERT_NE(reg_mr(pd, bytes, 8, 0, IBV_ACCESS_RELAXED_ORDERING | int{IBV_ACCESS_OPTIONAL_RANGE}), nullptr);
    EXPECT_EQ(opened.engine.registered.access, ipc::kAccessRelaxedOrdering);
}

TEST(Control, prefetch_wants_on_demand_regions) {
    OpenedContext opened;
    ibv_pd* pd = opened.make_pd();
    char bytes[8];
    const auto address = reinterpret_cast<std::uint64_t>(bytes);
    ibv_mr* plain = reg_mr(pd, bytes, 8, address, 0);
    ibv_mr* on_demand = reg_mr(pd, bytes, 8, address, IBV_ACCESS_ON_DEMAND);
    ibv_sge entry{address, 8, plain->lkey};
    constexpr auto kPrefetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
    EXPECT_EQ(advise_mr(pd, kPrefetch, 0, &entry, 1), EINVAL);
    entry.lkey = on_demand->lkey;
    EXPECT_EQ(advise_mr(pd, kPrefetch, IBV_ADVISE_MR_FLAG_FLUSH, &entry, 1), 0);
    EXPECT_EQ(advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &entry, 1), EPERM);
    EXPECT_EQ(advise_mr(pd, kPrefetch, 8, &entry, 1), EINVAL);
    entry.length = 9;
    EXPECT_EQ(advise_mr(pd, kPrefetch, 0, &entry, 1), EFAULT);
}

int make_channel(OpenedContext& opened) {
    std::uint32_t fd = 0;
    struct {
        ib_uverbs_cmd_hdr header;
        ib_uverbs_create_comp_channel request;
    } message{};
    message.header.command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL;
    message.request.response = reinterpret_cast<std::uint64_t>(&fd);
    EXPECT_EQ(opened.context->channels().on_write(&message, sizeof message),
              static_cast<int>(sizeof message));
    return static_cast<int>(fd);
}

TEST(Control, channel_is_a_pipe_between_engine_and_program) {
    OpenedContext opened;
    ibv_comp_channel channel{opened.verbs(), make_channel(opened), 0};
    ASSERT_EQ(opened.engine.channels.size(), 1U);
    ASSERT_NE(opened.make_cq(4, &channel), nullptr);
    const std::uint64_t event = 5;
    ASSERT_EQ(::write(opened.engine.channels[0].get(), &event, 8), 8);
    std::uint64_t got = 0;
    ASSERT_EQ(::read(channel.fd, &got, 8), 8);
    EXPECT_EQ(got, 5U);
    ::close(channel.fd);
    // The number comes again: the old channel is forgotten.
    EXPECT_EQ(make_channel(opened), channel.fd);
    EXPECT_TRUE(asked(opened.engine, ipc::Operation::kDestroyChannel));
    ::close(channel.fd);
    ib_uverbs_cmd_hdr other[2]{};
    EXPECT_EQ(opened.context->channels().on_write(other, sizeof other), -1);
    EXPECT_EQ(errno, ENOSYS);
}

TEST(Control, destroying_a_cq_purges_its_events_and_waits_for_the_others) {
    OpenedContext opened;
    ibv_comp_channel channel{opened.verbs(), make_channel(opened), 0};
    ibv_cq* cq = opened.make_cq(4, &channel);
    const auto event = reinterpret_cast<std::uint64_t>(cq);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(::write(opened.engine.channels[0].get(), &event, 8), 8);
    std::uint64_t got = 0;
    ASSERT_EQ(::read(channel.fd, &got, 8), 8);  // one was read and is not acknowledged
    opened.engine.owed = {3, 0};
    std::atomic<bool> destroyed{false};
    std::thread destroyer([&] {
        EXPECT_EQ(destroy_cq(cq), 0);
        destroyed = true;
    });
    ::usleep(50'000);
    EXPECT_FALSE(destroyed);
    ibv_ack_cq_events(cq, 1);
    destroyer.join();
    ASSERT_EQ(::fcntl(channel.fd, F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(::read(channel.fd, &got, 8), -1);
    ::close(channel.fd);
}

}  // namespace
}  // namespace uib::provider::test
