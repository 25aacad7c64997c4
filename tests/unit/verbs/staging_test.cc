// Staged payloads over real rings: the bytes of the pool arrive, and what lies outside it fails the request.
#include <array>
#include <cerrno>

#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {
namespace {

constexpr std::uint32_t kPoolBytes = 64 * 1024;

class StagedTest : public AdapterTest {
  protected:
    void SetUp() override {
        cq_ = make_cq(64);
        a_ = make_qp(cq_);
        b_ = make_qp(cq_);
        connect(a_, b_);
        connect(b_, a_);
        region_ = register_memory(memory_.data(), memory_.size(),
                                  ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead);
    }
    void make_pool() {
        ipc::AllocStagingReply reply{};
        ASSERT_EQ(client_->alloc_staging({kPoolBytes}, reply), 0);
        ASSERT_EQ(reply.bytes, kPoolBytes);
        pool_ = reinterpret_cast<std::uint8_t*>(chunks_->at(reply.memory));
        for (std::uint32_t i = 0; i < kPoolBytes; ++i) pool_[i] = static_cast<std::uint8_t>(i * 37 >> 2);
    }
    /// Posts a staged request; `offset` in units of kStagingUnit.
    void post_staged(ipc::WorkOpcode opcode, std::uint32_t offset, std::uint32_t length,
                     std::uint8_t flags = 0) {
        ipc::SendWqe wqe{};
        wqe.opcode = static_cast<std::uint8_t>(opcode);
        wqe.flags = static_cast<std::uint8_t>(ipc::kWorkStaged | ipc::kWorkSignaled | flags);
        wqe.wr_id = 22;
        wqe.rkey = region_.rkey;
        wqe.remote_address = reinterpret_cast<std::uint64_t>(memory_.data());
        wqe.staging_offset = offset;
        wqe.inline_length = length;
        std::byte* slot = a_.send_slots + (a_.sends % a_.reply.send.entries) * a_.reply.send.stride;
        std::memcpy(slot, &wqe, sizeof wqe);
        publish_send(a_, a_.sends + 1);
    }
    bool arrived(std::uint32_t offset, std::uint32_t length) {
        return std::memcmp(memory_.data(), pool_ + std::size_t{offset} * ipc::kStagingUnit, length) == 0;
    }

    TestCq cq_;
    TestQp a_, b_;
    ipc::RegMrReply region_;
    std::uint8_t* pool_ = nullptr;
    std::array<std::uint8_t, kPoolBytes> memory_{};
};

TEST_F(StagedTest, SendArrives) {
    make_pool();
    post_receive(b_, 11, memory_.data(), 30000, region_.lkey);
    post_staged(ipc::WorkOpcode::kSend, 3, 20001);
    const Entry first = wait(cq_), second = wait(cq_);
    const Entry& receive = (first.flags & ipc::kCqeReceive) != 0 ? first : second;
    const Entry& send = &receive == &first ? second : first;
    EXPECT_EQ(receive.status, IBV_WC_SUCCESS);
    EXPECT_EQ(receive.byte_len, 20001U);
    EXPECT_EQ(send.status, IBV_WC_SUCCESS);
    EXPECT_EQ(send.wr_id, 22U);
    EXPECT_TRUE(arrived(3, 20001));
}

TEST_F(StagedTest, WriteOfTheWholePoolArrives) {
    make_pool();
    post_staged(ipc::WorkOpcode::kRdmaWrite, 0, kPoolBytes);
    EXPECT_EQ(wait(cq_).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(arrived(0, kPoolBytes));
}

TEST_F(StagedTest, UnreliableWriteArrives) {
    make_pool();
    a_ = make_qp(cq_, ipc::Service::kUc);
    b_ = make_qp(cq_, ipc::Service::kUc);
    ipc::QpAttributes attributes{};
    attributes.port = 1;
    attributes.access = IBV_ACCESS_REMOTE_WRITE;
    for (const auto& [qp, peer] : {std::pair(&a_, &b_), std::pair(&b_, &a_)}) {
        ASSERT_EQ(
            modify(*qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, attributes), 0);
        attributes.path.dlid = 1;
        attributes.path.port = 1;
        attributes.path_mtu = IBV_MTU_1024;
        attributes.dest_qp_number = peer->reply.qp_number;
        ASSERT_EQ(modify(*qp, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                         attributes),
                  0);
        ASSERT_EQ(modify(*qp, IBV_QPS_RTS, IBV_QP_SQ_PSN, attributes), 0);
    }
    post_staged(ipc::WorkOpcode::kRdmaWrite, 1, 10000);
    EXPECT_EQ(wait(cq_).status, IBV_WC_SUCCESS);
    turn(3);
    EXPECT_TRUE(arrived(1, 10000));
}

struct Bad {
    const char* name;
    ipc::WorkOpcode opcode;
    std::uint32_t offset;
    std::uint32_t length;
    std::uint8_t flags;
};

class BadStagedTest : public StagedTest, public ::testing::WithParamInterface<Bad> {};

TEST_P(BadStagedTest, IsALocalError) {
    make_pool();
    post_staged(GetParam().opcode, GetParam().offset, GetParam().length, GetParam().flags);
    EXPECT_EQ(wait(cq_).status, IBV_WC_LOC_QP_OP_ERR);
    EXPECT_EQ(client_->condemned(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadStagedTest,
    ::testing::Values(Bad{"OneByteTooLong", ipc::WorkOpcode::kRdmaWrite, 1, kPoolBytes - 63, 0},
                      Bad{"BehindThePool", ipc::WorkOpcode::kSend, kPoolBytes / 64 + 1, 0, 0},
                      Bad{"FarAway", ipc::WorkOpcode::kSend, 0xFFFFFFFF, 64, 0},
                      Bad{"LengthThatWraps", ipc::WorkOpcode::kSend, 1, 0xFFFFFFFF, 0},
                      Bad{"AlsoInline", ipc::WorkOpcode::kSend, 0, 64, ipc::kWorkInline},
                      Bad{"Read", ipc::WorkOpcode::kRdmaRead, 0, 64, 0},
                      Bad{"Atomic", ipc::WorkOpcode::kFetchAdd, 0, 8, 0}),
    [](const auto& bad) { return std::string(bad.param.name); });

TEST_F(StagedTest, WithoutAPoolNothingIsStaged) {
    post_staged(ipc::WorkOpcode::kRdmaWrite, 0, 1);
    EXPECT_EQ(wait(cq_).status, IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(StagedTest, PoolsThatCannotBeAreRefused) {
    ipc::AllocStagingReply reply{};
    EXPECT_EQ(client_->alloc_staging({0}, reply), EINVAL);
    EXPECT_EQ(client_->alloc_staging({4097}, reply), EINVAL);
    EXPECT_EQ(client_->alloc_staging({ipc::kMaxStagingBytes + 4096}, reply), EINVAL);
    EXPECT_EQ(client_->alloc_staging({~std::uint64_t{4095}}, reply), EINVAL);
    EXPECT_EQ(client_->alloc_staging({8192}, reply), 0);
    EXPECT_EQ(client_->alloc_staging({8192}, reply), EEXIST);
}

}  // namespace
}  // namespace uib::verbs
