#include "tests/unit/provider/fake_engine.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <bit>
#include <cstring>

#include "provider/cq.h"
#include "provider/pd.h"
#include "provider/qp.h"

namespace uib::provider::test {
namespace {

constexpr std::size_t kArenaBytes = 16 << 20;
constexpr std::uint32_t kMtuCode = IBV_MTU_1024;

UniqueFd make_file(std::size_t bytes) {
    UniqueFd fd(::memfd_create("uib-test", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    return fd;
}

std::uint64_t cookie_of(int socket) {
    std::uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    EXPECT_EQ(::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size), 0);
    return cookie;
}

}  // namespace

FakeEngine::FakeEngine()
    : arena_file_(make_file(kArenaBytes)),
      page_file_(make_file(sizeof(ipc::EnginePage))),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    client_.reset(pair[0]);
    server_.reset(pair[1]);
    start();
}

FakeEngine::FakeEngine(UniqueFd server)
    : server_(std::move(server)),
      arena_file_(make_file(kArenaBytes)),
      page_file_(make_file(sizeof(ipc::EnginePage))),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
    start();
}

void FakeEngine::start() {
    EXPECT_TRUE(arena_.map(arena_file_.get(), PROT_READ | PROT_WRITE));
    allocate(sizeof(ipc::DoorbellMap));
    thread_ = std::thread([this] { serve(); });
}

FakeEngine::~FakeEngine() {
    die();
}

void FakeEngine::die() {
    if (!thread_.joinable()) return;
    ::shutdown(server_.get(), SHUT_RDWR);
    thread_.join();
    server_.reset();
}

void FakeEngine::serve() {
    while (true) {
        alignas(16) std::byte buffer[ipc::kMaxMessageBytes];
        alignas(cmsghdr) char space[CMSG_SPACE(ipc::kMaxMessageFds * sizeof(int))];
        iovec part{buffer, sizeof buffer};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        const ssize_t got = ::recvmsg(server_.get(), &message, MSG_CMSG_CLOEXEC);
        if (got <= 0) return;
        std::vector<UniqueFd> fds;
        if (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr) {
            const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(control) + i * sizeof fd, sizeof fd);
                fds.emplace_back(fd);
            }
        }
        if (!answer(buffer, static_cast<std::size_t>(got), std::move(fds))) return;
    }
}

template <typename Body>
void FakeEngine::reply(const ipc::RequestHeader& to, const Body& body, std::vector<int> fds,
                       std::uint32_t chunks) {
    ipc::ReplyHeader header{ipc::kProtocolMagic,
                            ipc::kProtocolVersion,
                            to.operation,
                            static_cast<std::uint32_t>(sizeof header + sizeof body),
                            to.tag,
                            0,
                            chunks};
    iovec parts[2] = {{&header, sizeof header}, {const_cast<Body*>(&body), sizeof body}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    alignas(cmsghdr) char space[CMSG_SPACE(ipc::kMaxMessageFds * sizeof(int))]{};
    if (!fds.empty()) {
        message.msg_control = space;
        message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
        cmsghdr* control = CMSG_FIRSTHDR(&message);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        std::memcpy(CMSG_DATA(control), fds.data(), fds.size() * sizeof(int));
    }
    ::sendmsg(server_.get(), &message, MSG_NOSIGNAL);
}

void FakeEngine::refuse_with(const ipc::RequestHeader& to, int status) {
    const ipc::ReplyHeader header{
        ipc::kProtocolMagic, ipc::kProtocolVersion, to.operation, sizeof header, to.tag, status, 0};
    ::send(server_.get(), &header, sizeof header, MSG_NOSIGNAL);
}

void FakeEngine::hello(const ipc::RequestHeader& to, std::vector<UniqueFd> fds) {
    EXPECT_EQ(fds.size(), 3U);
    client_cookie = cookie_of(fds[0].get());
    async_pipe = std::move(fds[1]);
    helper_ = std::move(fds[2]);
    ipc::HelloReply body{};
    body.memory_mode = static_cast<std::uint32_t>(ipc::MemoryMode::kHelper);
    const UniqueFd helper_staging = make_file(4096);
    reply(to, body, {arena_file_.get(), page_file_.get(), wake_.get(), helper_staging.get()}, 1);
}

template <typename Body>
Body body_of(const std::byte* bytes) {
    Body body{};
    std::memcpy(&body, bytes, sizeof body);
    return body;
}

bool FakeEngine::answer(const std::byte* message, std::size_t bytes, std::vector<UniqueFd> fds) {
    const auto header = body_of<ipc::RequestHeader>(message);
    if (header.magic != ipc::kProtocolMagic || header.length != bytes) return false;
    const std::byte* body = message + sizeof header;
    const auto operation = static_cast<ipc::Operation>(header.operation);
    operations.push_back(operation);
    const int status = refuse ? refuse(operation, body) : 0;
    if (status != 0) {
        refuse_with(header, status);
    } else if (operation == ipc::Operation::kHello) {
        hello(header, std::move(fds));
    } else if (!answer_query(header, operation, body, fds) &&
               !answer_creation(header, operation, body, fds)) {
        refuse_with(header, 0);  // done, and no body
    }
    return true;
}

bool FakeEngine::answer_query(const ipc::RequestHeader& header, ipc::Operation operation,
                              const std::byte* body, std::vector<UniqueFd>& fds) {
    if (operation == ipc::Operation::kQueryDevice) {
        ipc::DeviceLimits limits{};
        limits.max_cqe = 1024;
        limits.ports = 1;
        limits.max_wq = 8;
        limits.max_rwq_tables = 4;
        limits.max_rwq_table_entries = 16;
        limits.rx_hash_fields = ipc::kAllHashFields;
        reply(header, limits);
    } else if (operation == ipc::Operation::kImportContext) {
        joined_cookie = cookie_of(fds.at(0).get());
        reply(header, ipc::ImportContextReply{});
    } else if (operation == ipc::Operation::kQueryPort) {
        ipc::PortAttributes port{};
        port.active_mtu = kMtuCode;
        port.gid_table_length = 2;
        port.link_layer = IBV_LINK_LAYER_INFINIBAND;
        reply(header, port);
    } else if (operation == ipc::Operation::kDestroyQp || operation == ipc::Operation::kDestroyCq ||
               operation == ipc::Operation::kDestroySrq || operation == ipc::Operation::kDestroyWq) {
        if (operation == ipc::Operation::kDestroyQp) destroyed_qp = body_of<ipc::HandleBody>(body).handle;
        reply(header, owed);
    } else {
        return false;
    }
    return true;
}

bool FakeEngine::answer_creation(const ipc::RequestHeader& header, ipc::Operation operation,
                                 const std::byte* body, std::vector<UniqueFd>& fds) {
    const ipc::HandleBody made{next_handle_++, 0};
    switch (operation) {
        case ipc::Operation::kCreateChannel:
            channels.push_back(std::move(fds.at(0)));
            reply(header, made);
            return true;
        case ipc::Operation::kAllocPd:
        case ipc::Operation::kOpenXrcd:
            reply(header, made);
            return true;
        case ipc::Operation::kRegMr:
            registered = body_of<ipc::RegMrRequest>(body);
            reply(header, ipc::RegMrReply{made.handle, made.handle << 8 | 7, made.handle << 8 | 9, 0});
            return true;
        case ipc::Operation::kReregMr:
            reply(header, ipc::RegMrReply{made.handle, made.handle << 8 | 7, made.handle << 8 | 9, 0});
            return true;
        case ipc::Operation::kAllocStaging: {
            const std::uint64_t bytes = body_of<ipc::AllocStagingRequest>(body).bytes;
            staging = allocate(bytes);
            reply(header, ipc::AllocStagingReply{staging, bytes});
            return true;
        }
        case ipc::Operation::kCreateCq:
            produced_ = 0;
            reply(header, cq = make_cq(body_of<ipc::CreateCqRequest>(body).entries));
            return true;
        case ipc::Operation::kCreateQp:
            reply(header, qp = make_qp(body_of<ipc::CreateQpRequest>(body)));
            return true;
        case ipc::Operation::kOpenQp:
            reply(header, make_target(body_of<ipc::OpenQpRequest>(body).qp_number));
            return true;
        case ipc::Operation::kCreateSrq:
            reply(header, srq = make_srq(body_of<ipc::CreateSrqRequest>(body)));
            return true;
        case ipc::Operation::kCreateWq:
            reply(header, qp = make_wq(body_of<ipc::CreateWqRequest>(body)));
            return true;
        case ipc::Operation::kCreateRwqTable:
            rwq_table = body_of<ipc::CreateRwqTableRequest>(body);
            reply(header, made);
            return true;
        case ipc::Operation::kCreateHashQp:
            hash_qp = body_of<ipc::CreateHashQpRequest>(body);
            reply(header, make_target(0x300));
            return true;
        case ipc::Operation::kModifyQp:
            modified = body_of<ipc::ModifyQpRequest>(body).attributes;
            return false;
        default:
            return false;
    }
}

ipc::Location FakeEngine::allocate(std::size_t bytes) {
    const ipc::Location where{0, 0, used_};
    used_ += (bytes + ipc::kCacheLine - 1) / ipc::kCacheLine * ipc::kCacheLine;
    EXPECT_LE(used_, kArenaBytes);
    return where;
}

ipc::QueueLocation FakeEngine::make_queue(std::uint32_t entries, std::uint32_t max_sge,
                                          std::uint32_t stride) {
    const ipc::Location control = allocate(sizeof(ipc::QueueControl));
    at<ipc::QueueControl>(control)->need_doorbell = 1;
    return {control, allocate(std::size_t{entries} * stride), entries, stride, max_sge, 0};
}

ipc::CqReply FakeEngine::make_cq(std::uint32_t entries) {
    entries = std::bit_ceil(entries);
    const ipc::Location control = allocate(sizeof(ipc::CqControl));
    return {next_handle_++, entries, control, allocate(entries * sizeof(ipc::Cqe))};
}

ipc::QpReply FakeEngine::make_target(std::uint32_t number) {
    ipc::QpReply made{};
    made.handle = next_handle_++;
    made.qp_number = number;
    made.slot = ~std::uint32_t{0};
    return made;
}

ipc::QpReply FakeEngine::make_qp(const ipc::CreateQpRequest& request) {
    if (request.service == static_cast<std::uint32_t>(ipc::Service::kXrcReceive)) return make_target(0x200);
    const bool ud = request.service == static_cast<std::uint32_t>(ipc::Service::kUd);
    const std::uint32_t offset = ud ? ipc::kDatagramPayloadOffset : ipc::kSendPayloadOffset;
    const std::uint32_t stride = ipc::send_slot_stride(offset, request.max_send_sge, ipc::kAutoInlineBytes);
    ipc::QpReply made{next_handle_++, 0x100 + next_slot_, next_slot_, 0, {}, {}};
    ++next_slot_;
    made.send = make_queue(std::bit_ceil(request.max_send_wr), request.max_send_sge, stride);
    made.send.max_inline = ipc::kAutoInlineBytes;
    if (request.srq == 0 && request.max_recv_wr != 0)
        made.receive = make_queue(std::bit_ceil(request.max_recv_wr), request.max_recv_sge,
                                  ipc::receive_slot_stride(request.max_recv_sge));
    return made;
}

ipc::QpReply FakeEngine::make_wq(const ipc::CreateWqRequest& request) {
    ipc::QpReply made{next_handle_++, 0x100 + next_slot_, next_slot_, 0, {}, {}};
    ++next_slot_;
    made.receive =
        make_queue(std::bit_ceil(request.max_wr), request.max_sge, ipc::receive_slot_stride(request.max_sge));
    return made;
}

ipc::SrqReply FakeEngine::make_srq(const ipc::CreateSrqRequest& request) {
    const std::uint32_t entries = std::bit_ceil(request.max_wr);
    return {next_handle_++, 77,
            make_queue(entries, request.max_sge, ipc::receive_slot_stride(request.max_sge)),
            allocate(entries * sizeof(std::uint32_t))};
}

void FakeEngine::complete(const std::function<void(ipc::Cqe&)>& fill) {
    ipc::Cqe& cqe = at<ipc::Cqe>(cq.ring)[produced_ & (cq.entries - 1)];
    cqe.flags = 0;
    cqe.status = IBV_WC_SUCCESS;
    cqe.qp_number = qp.qp_number;
    cqe.qp_slot = qp.slot;
    fill(cqe);
    cqe.sequence.store(++produced_, std::memory_order_release);
}

void FakeEngine::complete_send(std::uint32_t index, std::uint64_t wr_id, ibv_wc_status status) {
    complete([&](ipc::Cqe& cqe) {
        cqe.opcode = static_cast<std::uint8_t>(ipc::WorkOpcode::kSend);
        cqe.wqe_index = index;
        cqe.wr_id = wr_id;
        cqe.status = static_cast<std::uint8_t>(status);
    });
}

void FakeEngine::complete_receive(std::uint32_t slot, std::uint64_t wr_id, std::uint16_t flags,
                                  std::uint32_t bytes) {
    complete([&](ipc::Cqe& cqe) {
        cqe.opcode = static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceive);
        cqe.flags = static_cast<std::uint16_t>(ipc::kCqeReceive | flags);
        cqe.wqe_index = slot;
        cqe.wr_id = wr_id;
        cqe.byte_len = bytes;
    });
}

OpenedContext::OpenedContext() {
    std::strcpy(device.name, "uib_test");
    verbs()->device = &device;
    verbs()->cmd_fd = engine.client_fd();
    verbs()->async_fd = -1;
    context = std::make_unique<Context>(verbs());
    shell.context = context.get();
    EXPECT_EQ(context->start(), 0);
}

OpenedContext::~OpenedContext() {
    context->stop();
    ::close(verbs()->async_fd);
}

ibv_pd* OpenedContext::make_pd() {
    return alloc_pd(verbs());
}

ibv_cq* OpenedContext::make_cq(int entries, ibv_comp_channel* channel) {
    ibv_cq* cq = create_cq(verbs(), entries, channel, 0);
    if (cq == nullptr) return nullptr;
    // What libibverbs does after the call.
    cq->context = verbs();
    cq->channel = channel;
    ::pthread_mutex_init(&cq->mutex, nullptr);
    ::pthread_cond_init(&cq->cond, nullptr);
    return cq;
}

ibv_qp* OpenedContext::make_qp(ibv_pd* pd, ibv_cq* cq, ibv_qp_type type, std::uint32_t depth, ibv_srq* srq,
                               std::uint64_t send_ops) {
    ibv_qp_init_attr_ex wish{};
    wish.send_cq = wish.recv_cq = cq;
    wish.srq = srq;
    wish.cap = {depth, depth, 2, 2, 0};
    wish.qp_type = type;
    wish.comp_mask = IBV_QP_INIT_ATTR_PD | (send_ops != 0 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
    wish.pd = pd;
    wish.send_ops_flags = send_ops;
    return create_qp_ex(verbs(), &wish);
}

void OpenedContext::move_to(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    EXPECT_EQ(modify_qp(qp, &attributes, IBV_QP_STATE), 0);
}

}  // namespace uib::provider::test
