// Three processes and an XRC domain: a target QP outlives the process that made it as long as another holds
// it.
//
// The maker opens the domain by an inherited file, makes a target QP and is killed. The holder, which opened
// the QP before, still sends through it to its own SRQ; when it gives the QP up, the QP is gone. Which
// session is left to the engine is seen by a second domain of which the maker was the only holder. Exits with
// 1 and a line of text if anything is otherwise.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "examples/kit/memory.h"
#include "examples/kit/verbs.h"

namespace {

using namespace uib::kit;

using Domain = std::unique_ptr<ibv_xrcd, Closer<ibv_close_xrcd>>;
using SharedReceives = std::unique_ptr<ibv_srq, Closer<ibv_destroy_srq>>;

constexpr std::size_t kBytes = 5000;
constexpr std::uint32_t kPsn = 0xFFFFF0;

void require(bool good, const char* what) {
    if (!good) throw Error(what);
}

int temporary_file() {
    char path[] = "/tmp/uib-xrc-XXXXXX";
    const int file = ::mkstemp(path);
    require(file >= 0, "no temporary file");
    ::unlink(path);
    return file;
}

ibv_xrcd* try_domain(ibv_context& context, int file, int flags) {
    ibv_xrcd_init_attr wish{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, file, flags};
    return ibv_open_xrcd(&context, &wish);
}

Domain open_domain(ibv_context& context, int file, int flags) {
    Domain domain(try_domain(context, file, flags));
    if (domain == nullptr) fail("ibv_open_xrcd", errno);
    return domain;
}

template <typename T>
void put(int pipe, const T& value) {
    require(::write(pipe, &value, sizeof value) == static_cast<ssize_t>(sizeof value),
            "cannot write to the pipe");
}

template <typename T>
T get(int pipe) {
    T value{};
    require(::read(pipe, &value, sizeof value) == static_cast<ssize_t>(sizeof value),
            "the other process is gone");
    return value;
}

ibv_qp_attr path_to(ibv_context& context, std::uint32_t qp_number) {
    ibv_port_attr port{};
    check(ibv_query_port(&context, 1, &port), "ibv_query_port");
    ibv_qp_attr attributes{};
    attributes.port_num = 1;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.ah_attr.dlid = port.lid;
    attributes.ah_attr.port_num = 1;
    attributes.dest_qp_num = qp_number;
    attributes.rq_psn = attributes.sq_psn = kPsn;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 1;
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    return attributes;
}

void move(ibv_qp& qp, ibv_qp_attr attributes, ibv_qp_state state, int mask) {
    attributes.qp_state = state;
    check(ibv_modify_qp(&qp, &attributes, IBV_QP_STATE | mask), "ibv_modify_qp");
}

constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kReceive = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

/// Makes the target and waits to be killed.
[[noreturn]] void make_target(const std::string& device, int file, int only_mine, int from, int to) {
    const Context context = open_device(device);
    const Domain domain = open_domain(*context, file, O_CREAT);
    const Domain mine = open_domain(*context, only_mine, O_CREAT);
    ibv_qp_init_attr_ex wish{};
    wish.qp_type = IBV_QPT_XRC_RECV;
    wish.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    wish.xrcd = domain.get();
    const QueuePair target(ibv_create_qp_ex(context.get(), &wish));
    if (target == nullptr) fail("ibv_create_qp_ex", errno);
    const ibv_qp_attr attributes = path_to(*context, get<std::uint32_t>(from));
    move(*target, attributes, IBV_QPS_INIT, kInit);
    move(*target, attributes, IBV_QPS_RTR, kReceive | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    put(to, target->qp_num);
    while (true) ::pause();
}

SharedReceives make_srq(ibv_context& context, ibv_pd& pd, ibv_xrcd& domain, ibv_cq& cq) {
    ibv_srq_init_attr_ex wish{};
    wish.attr.max_wr = 4;
    wish.attr.max_sge = 1;
    wish.comp_mask =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    wish.srq_type = IBV_SRQT_XRC;
    wish.pd = &pd;
    wish.xrcd = &domain;
    wish.cq = &cq;
    SharedReceives srq(ibv_create_srq_ex(&context, &wish));
    if (srq == nullptr) fail("ibv_create_srq_ex", errno);
    return srq;
}

QueuePair make_initiator(ibv_context& context, ibv_pd& pd, ibv_cq& cq) {
    ibv_qp_init_attr_ex wish{};
    wish.qp_type = IBV_QPT_XRC_SEND;
    wish.comp_mask = IBV_QP_INIT_ATTR_PD;
    wish.pd = &pd;
    wish.send_cq = &cq;
    wish.cap.max_send_wr = 4;
    wish.cap.max_send_sge = 1;
    QueuePair qp(ibv_create_qp_ex(&context, &wish));
    if (qp == nullptr) fail("ibv_create_qp_ex", errno);
    return qp;
}

ibv_qp* try_target(ibv_context& context, ibv_xrcd& domain, std::uint32_t number) {
    ibv_qp_open_attr wish{};
    wish.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    wish.qp_num = number;
    wish.xrcd = &domain;
    wish.qp_type = IBV_QPT_XRC_RECV;
    return ibv_open_qp(&context, &wish);
}

ibv_wc next(ibv_cq& cq) {
    const std::time_t limit = std::time(nullptr) + 20;
    ibv_wc wc{};
    while (ibv_poll_cq(&cq, 1, &wc) == 0) require(std::time(nullptr) < limit, "no completion");
    if (wc.status != IBV_WC_SUCCESS) throw Error(ibv_wc_status_str(wc.status));
    return wc;
}

void await_end_of_maker(ibv_context& context, int only_its) {
    const std::time_t limit = std::time(nullptr) + 20;
    while (ibv_xrcd* domain = try_domain(context, only_its, 0)) {
        ibv_close_xrcd(domain);
        require(std::time(nullptr) < limit, "the engine keeps the dead process's domain");
    }
    require(errno == ENOENT, "the domain of a dead process is refused with another error than ENOENT");
}

void hold_target(const std::string& device, int file, int only_its, pid_t maker, int from, int to) {
    const Context context = open_device(device);
    const Domain domain = open_domain(*context, file, O_CREAT);
    const ProtectionDomain pd = make_pd(*context);
    const CompletionQueue sent = make_cq(*context, 4), received = make_cq(*context, 4);
    const SharedReceives srq = make_srq(*context, *pd, *domain, *received);
    const QueuePair initiator = make_initiator(*context, *pd, *sent);
    put(to, initiator->qp_num);
    const auto number = get<std::uint32_t>(from);
    QueuePair target(try_target(*context, *domain, number));
    if (target == nullptr) fail("ibv_open_qp", errno);
    ::kill(maker, SIGKILL);
    ::waitpid(maker, nullptr, 0);
    await_end_of_maker(*context, only_its);

    const ibv_qp_attr attributes = path_to(*context, number);
    move(*initiator, attributes, IBV_QPS_INIT, kInit);
    move(*initiator, attributes, IBV_QPS_RTR, kReceive);
    move(*initiator, attributes, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    Buffer buffer(MemoryKind::kPrivate, 2 * kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) buffer.data()[i] = static_cast<std::byte>(i * 7);
    const Region region = register_memory(*pd, buffer.data(), 2 * kBytes, kAllAccess);
    ibv_sge in{reinterpret_cast<std::uint64_t>(buffer.data() + kBytes), kBytes, region->lkey};
    ibv_recv_wr receive{1, nullptr, &in, 1}, *bad_receive = nullptr;
    check(ibv_post_srq_recv(srq.get(), &receive, &bad_receive), "ibv_post_srq_recv");
    ibv_sge out{reinterpret_cast<std::uint64_t>(buffer.data()), kBytes, region->lkey};
    ibv_send_wr send{}, *bad_send = nullptr;
    send.sg_list = &out;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    check(ibv_get_srq_num(srq.get(), &send.qp_type.xrc.remote_srqn), "ibv_get_srq_num");
    check(ibv_post_send(initiator.get(), &send, &bad_send), "ibv_post_send");
    require(next(*received).qp_num == number, "the receive names another QP than the target");
    next(*sent);
    require(std::memcmp(buffer.data(), buffer.data() + kBytes, kBytes) == 0, "other bytes arrived");

    target.reset();
    require(try_target(*context, *domain, number) == nullptr, "the target outlives its last holder");
    require(errno == EINVAL, "a target that is gone is refused with another error than EINVAL");
}

}  // namespace

int main(int argc, char** argv) {
    const std::string device = argc > 1 ? argv[1] : "";
    try {
        const int file = temporary_file(), only_makers = temporary_file();
        int down[2], up[2];
        require(::pipe(down) == 0 && ::pipe(up) == 0, "no pipe");
        const pid_t maker = ::fork();
        if (maker == 0) make_target(device, file, only_makers, down[0], up[1]);
        ::close(up[1]);
        hold_target(device, file, only_makers, maker, up[0], down[1]);
    } catch (const std::exception& error) {
        std::printf("xrc_lifetime: %s\n", error.what());
        return 1;
    }
    std::printf("the target QP outlived its maker, and not its last holder\n");
    return 0;
}
