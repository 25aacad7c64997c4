#include "tests/unit/verbs/adapter_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace uib::verbs {

ChunkMap::~ChunkMap() {
    for (const Mapping& chunk : chunks_) ::munmap(chunk.memory, chunk.size);
}

std::byte* ChunkMap::at(const ipc::Location& location) {
    for (const int fd : client_.arena().take_new_chunks()) {
        struct stat status {};
        EXPECT_EQ(::fstat(fd, &status), 0);
        const auto size = static_cast<std::size_t>(status.st_size);
        void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        EXPECT_NE(memory, MAP_FAILED);
        chunks_.push_back({static_cast<std::byte*>(memory), size});
    }
    EXPECT_LT(location.chunk, chunks_.size());
    return chunks_[location.chunk].memory + location.offset;
}

AdapterTest::AdapterTest(const std::vector<DeviceConfig>& devices, const std::vector<SubnetConfig>& subnets)
    : adapter_(devices, subnets) {
    EXPECT_EQ(::pipe2(async_pipe_, O_CLOEXEC | O_NONBLOCK), 0);
    client_ =
        std::make_unique<Client>(1, ::getpid(), memory::MappedSpace::Credentials{::getuid(), ::getgid()},
                                 ipc::UniqueFd(::dup(async_pipe_[1])));
    EXPECT_EQ(client_->start(), 0);
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    client_->set_space(std::make_shared<memory::ProcessSpace>(::getpid(), ipc::UniqueFd(pidfd)));
    context_ = std::make_unique<Context>(adapter_, *adapter_.devices()[0], 1);
    chunks_ = std::make_unique<ChunkMap>(*client_);
    adapter_.add_client(*client_);
    EXPECT_EQ(context_->alloc_pd(*client_, pd_), 0);
}

AdapterTest::~AdapterTest() {
    context_->remove_client(*client_);
    const ObjectCounts counts = context_->counts();
    EXPECT_EQ(counts.pd + counts.mr + counts.mw + counts.cq + counts.qp + counts.srq + counts.channel +
                  counts.dm + counts.xrcd + counts.wq + counts.rwq_table,
              0U);
    adapter_.remove_client(*client_);
    ::close(async_pipe_[0]);
    ::close(async_pipe_[1]);
}

TestCq AdapterTest::make_cq(std::uint32_t entries, std::uint32_t channel) {
    TestCq cq;
    ipc::CreateCqRequest request{};
    request.user_handle = 0xC0;
    request.entries = entries;
    request.channel = channel;
    EXPECT_EQ(context_->create_cq(*client_, request, cq.reply), 0);
    cq.control = reinterpret_cast<ipc::CqControl*>(chunks_->at(cq.reply.control));
    cq.ring = reinterpret_cast<ipc::Cqe*>(chunks_->at(cq.reply.ring));
    return cq;
}

TestQp AdapterTest::make_qp(const TestCq& cq, ipc::Service service, std::uint32_t srq) {
    TestQp qp;
    ipc::CreateQpRequest request{};
    request.user_handle = 0xA0;
    request.pd = pd_;
    request.send_cq = request.recv_cq = cq.reply.handle;
    request.srq = srq;
    request.service = static_cast<std::uint32_t>(service);
    request.max_send_wr = request.max_recv_wr = 16;
    request.max_send_sge = request.max_recv_sge = 2;
    EXPECT_EQ(context_->create_qp(*client_, request, qp.reply), 0);
    qp.send_control = reinterpret_cast<ipc::QueueControl*>(chunks_->at(qp.reply.send.control));
    qp.send_slots = chunks_->at(qp.reply.send.slots);
    if (qp.reply.receive.entries != 0) {
        qp.receive_control = reinterpret_cast<ipc::QueueControl*>(chunks_->at(qp.reply.receive.control));
        qp.receive_slots = chunks_->at(qp.reply.receive.slots);
    }
    return qp;
}

int AdapterTest::modify(const TestQp& qp, std::uint8_t state, std::uint32_t mask,
                        ipc::QpAttributes attributes) {
    ipc::ModifyQpRequest request{};
    request.handle = qp.reply.handle;
    request.mask = mask | IBV_QP_STATE;
    request.attributes = attributes;
    request.attributes.state = state;
    return context_->modify_qp(request);
}

void AdapterTest::connect(const TestQp& qp, const TestQp& peer, std::uint16_t dlid) {
    ipc::QpAttributes a{};
    a.port = 1;
    a.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ASSERT_EQ(modify(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, a), 0);
    a.path.dlid = dlid;
    a.path.port = 1;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_number = peer.reply.qp_number;
    a.rq_psn = a.sq_psn = 0xFFFFF0;
    a.max_rd_atomic = a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 1;
    a.timeout = 14;
    a.retry_count = a.rnr_retry = 7;
    ASSERT_EQ(modify(qp, IBV_QPS_RTR,
                     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                     a),
              0);
    ASSERT_EQ(
        modify(qp, IBV_QPS_RTS,
               IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
               a),
        0);
}

ipc::RegMrReply AdapterTest::register_memory(void* address, std::size_t length, std::uint32_t access) {
    ipc::RegMrRequest request{};
    request.pd = pd_;
    request.access = access;
    request.address = request.iova = reinterpret_cast<std::uint64_t>(address);
    request.length = length;
    ipc::RegMrReply reply{};
    EXPECT_EQ(context_->reg_mr(*client_, request, -1, reply), 0);
    return reply;
}

void AdapterTest::post_receive(TestQp& qp, std::uint64_t wr_id, void* address, std::uint32_t length,
                               std::uint32_t lkey) {
    std::byte* slot = qp.receive_slots + (qp.receives % qp.reply.receive.entries) * qp.reply.receive.stride;
    const ipc::ReceiveWqe wqe{wr_id, 1, 0};
    const ipc::ScatterGatherEntry entry{reinterpret_cast<std::uint64_t>(address), length, lkey};
    std::memcpy(slot, &wqe, sizeof wqe);
    std::memcpy(slot + ipc::kReceiveSgeOffset, &entry, sizeof entry);
    if (ipc::publish(*qp.receive_control, ++qp.receives)) client_->doorbells().ring(qp.reply.slot);
}

void AdapterTest::post_send(TestQp& qp, ipc::SendWqe wqe, void* address, std::uint32_t length,
                            std::uint32_t lkey) {
    std::byte* slot = qp.send_slots + (qp.sends % qp.reply.send.entries) * qp.reply.send.stride;
    const ipc::ScatterGatherEntry entry{reinterpret_cast<std::uint64_t>(address), length, lkey};
    wqe.flags |= ipc::kWorkSignaled;
    wqe.sge_count = 1;
    std::memcpy(slot, &wqe, sizeof wqe);
    std::memcpy(slot + ipc::kSendPayloadOffset, &entry, sizeof entry);
    publish_send(qp, qp.sends + 1);
}

void AdapterTest::publish_send(TestQp& qp, std::uint32_t producer) {
    qp.sends = producer;
    if (ipc::publish(*qp.send_control, producer)) client_->doorbells().ring(qp.reply.slot);
}

std::optional<Entry> AdapterTest::poll(TestCq& cq) {
    const ipc::Cqe& cqe = cq.ring[cq.polled % cq.reply.entries];
    if (cqe.sequence.load(std::memory_order_acquire) != cq.polled + 1) return std::nullopt;
    const Entry entry{cqe.wr_id,   cqe.timestamp_ns, cqe.byte_len, cqe.immediate, cqe.qp_number,
                      cqe.qp_slot, cqe.wqe_index,    cqe.flags,    cqe.status,    cqe.opcode};
    cq.control->consumer.store(++cq.polled, std::memory_order_release);
    return entry;
}

Entry AdapterTest::wait(TestCq& cq) {
    const transport::Time limit = monotonic_now() + 5'000'000'000;
    while (monotonic_now() < limit) {
        adapter_.turn();
        if (const auto entry = poll(cq)) return *entry;
    }
    ADD_FAILURE() << "no completion";
    return {};
}

void AdapterTest::turn(unsigned times) {
    for (unsigned i = 0; i < times; ++i) adapter_.turn();
}

std::vector<ipc::AsyncEvent> AdapterTest::take_events() {
    std::vector<ipc::AsyncEvent> events;
    ipc::AsyncEvent event{};
    while (::read(async_pipe_[0], &event, sizeof event) == static_cast<ssize_t>(sizeof event))
        events.push_back(event);
    return events;
}

}  // namespace uib::verbs
