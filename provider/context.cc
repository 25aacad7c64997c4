#include "provider/context.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/ipc/control_cq.h"
#include "engine/ipc/socket_path.h"
#include "provider/abi_34.h"
#include "provider/cq.h"
#include "provider/driver.h"
#include "provider/fork.h"
#include "provider/qp.h"

namespace uib::provider {
namespace {

constexpr std::uint64_t kProbeValue = 0x756962207065656bULL;

/// Lets the process at the other end read this one's memory where Yama would forbid it.
void admit_engine(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0)
        (void)::prctl(PR_SET_PTRACER, static_cast<unsigned long>(peer.pid), 0, 0, 0);
}

void say_no_engine() {
    std::fprintf(stderr, "uib: no engine answers at %s; start one with `uibd` or run under `uib run`\n",
                 ipc::socket_path().c_str());
}

int duplicate_for_imported(void* context) {
    return static_cast<Context*>(context)->duplicate_async_fd();
}

verbs_context* make_context(ibv_device* device, int cmd_fd, bool import) {
    // Takes cmd_fd over, also when it fails.
    auto* shell = static_cast<ContextShell*>(
        abi::_verbs_init_and_alloc_context(device, cmd_fd, sizeof(ContextShell), nullptr, 0));
    if (shell == nullptr) return nullptr;
    auto context = std::make_unique<Context>(&shell->verbs.context);
    const int error = import ? context->start_imported(cmd_fd) : context->start();
    if (error != 0) {
        context->stop();
        context.reset();
        abi::verbs_uninit_context(&shell->verbs);
        std::free(shell);
        errno = error;
        return nullptr;
    }
    shell->context = context.release();
    abi::verbs_set_ops(&shell->verbs, &context_operations());
    return &shell->verbs;
}

}  // namespace

verbs_context* open_context(ibv_device* device, int cmd_fd, void*) {
    return make_context(device, cmd_fd, false);
}

verbs_context* import_context(ibv_device* device, int cmd_fd) {
    return make_context(device, cmd_fd, true);
}

void free_context(ibv_context* verbs) {
    auto* shell =
        reinterpret_cast<ContextShell*>(reinterpret_cast<char*>(verbs) - offsetof(verbs_context, context));
    std::unique_ptr<Context> context(shell->context);
    context->stop();
    // The destructor unmaps the arena; the child of a fork has only its own mappings to lose.
    context.reset();
    abi::verbs_uninit_context(&shell->verbs);
    std::free(shell);
}

Context& Context::of(ibv_context* verbs) {
    return *reinterpret_cast<ContextShell*>(reinterpret_cast<char*>(verbs) - offsetof(verbs_context, context))
                ->context;
}

Context::Context(ibv_context* verbs)
    : verbs_(verbs), staging_(std::make_unique<StagingPool>(control_)), channels_(control_) {}

Context::~Context() = default;

int Context::start() {
    control_.use(verbs_->cmd_fd);
    if (const int error = shake_hands(0); error != 0) {
        if (error == EIO) say_no_engine();
        return error;
    }
    verbs_->async_fd = async_.read_end.release();
    channels_.register_with_shim(verbs_->cmd_fd, nullptr, nullptr);
    return 0;
}

int Context::start_imported(int cmd_fd) {
    own_socket_ = connect_to_engine();
    if (!own_socket_) {
        const int why = errno;
        say_no_engine();
        return why;
    }
    control_.use(own_socket_.get());
    if (const int error = shake_hands(ipc::kHelloImport); error != 0) return error;
    if (const int error = join(cmd_fd); error != 0) return error;
    channels_.register_with_shim(cmd_fd, duplicate_for_imported, this);
    return 0;
}

int Context::shake_hands(std::uint32_t flags) {
    SessionEnds ends;
    if (const int error = say_hello(flags, ends); error != 0) return error;
    async_ = std::move(ends.async);
    if (const int error = learn_device(); error != 0) return error;
    enter_fork_registry(this);
    return watch(std::move(ends));
}

int Context::watch(SessionEnds ends) {
    return monitor_.start(control_.fd(), std::move(ends.helper), std::move(ends.staging),
                          [this] { on_engine_death(); });
}

/// Joins the context whose session has the socket `cmd_fd`.
int Context::join(int cmd_fd) {
    ipc::ImportContextReply joined{};
    const int fds[] = {cmd_fd};
    return control_.query(ipc::Operation::kImportContext, joined, fds);
}

int Context::say_hello(std::uint32_t flags, SessionEnds& ends) {
    admit_engine(control_.fd());
    if (!ends.async.open()) return errno;
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return errno;
    ends.helper.reset(pair[0]);
    UniqueFd engine_helper(pair[1]);

    ipc::HelloRequest request{};
    request.flags = flags;
    std::snprintf(request.device, sizeof request.device, "%s", verbs_->device->name);
    probe_ = {kProbeValue, 0};
    request.probe_address = reinterpret_cast<std::uint64_t>(probe_.data());
    request.probe_value = kProbeValue;
    const int fds[] = {control_.fd(), ends.async.write_end.get(), engine_helper.get()};
    ipc::HelloReply reply{};
    std::vector<UniqueFd> received;
    if (const int error = control_.call(ipc::Operation::kHello, request, reply, fds, &received); error != 0)
        return error;
    engine_helper.reset();
    if (reply.memory_mode == static_cast<std::uint32_t>(ipc::MemoryMode::kHelper)) {
        if (received.size() < 3) return EPROTO;
        ends.staging = std::move(received[2]);
    }
    return take_hello_reply(reply, std::move(received));
}

int Context::take_hello_reply(const ipc::HelloReply& reply, std::vector<UniqueFd> fds) {
    if (fds.size() < 2) return EPROTO;
    if (!engine_page_.map(fds[0].get(), PROT_READ)) return errno;
    if (engine_page_.size() < sizeof(ipc::EnginePage)) return EPROTO;
    wake_ = std::move(fds[1]);
    doorbells_ = control_.resolve_array<ipc::DoorbellMap>(reply.doorbells);
    return doorbells_ == nullptr ? EPROTO : 0;
}

int Context::learn_device() {
    if (const int error = control_.query(ipc::Operation::kQueryDevice, limits_); error != 0) return error;
    ports_ = std::make_unique<PortFacts[]>(limits_.ports + 1U);
    ipc::PortAttributes attributes{};
    for (std::uint32_t port = 1; port <= limits_.ports; ++port)
        if (const int error = query_port(port, attributes); error != 0) return error;
    verbs_->num_comp_vectors = 1;
    return 0;
}

void Context::stop() {
    leave_fork_registry(this);
    channels_.unregister_from_shim();
    monitor_.stop();
}

void Context::ring(std::uint32_t slot) {
    if (!doorbells_->ring(slot)) return;
    const auto* page = reinterpret_cast<const ipc::EnginePage*>(engine_page_.base());
    if (page->sleeping.load(std::memory_order_seq_cst) == 0) return;
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

int Context::query_port(std::uint32_t number, ipc::PortAttributes& attributes) {
    if (!has_port(number)) return EINVAL;
    const int error = control_.call(ipc::Operation::kQueryPort, ipc::QueryPortRequest{number, 0}, attributes);
    if (error != 0) return error;
    PortFacts& facts = ports_[number];
    facts.mtu_bytes.store(128U << std::min(attributes.active_mtu, 5U), std::memory_order_relaxed);
    facts.gid_count.store(attributes.gid_table_length, std::memory_order_relaxed);
    facts.link_layer.store(attributes.link_layer, std::memory_order_relaxed);
    return 0;
}

void Context::add_qp(Qp* qp) {
    const std::lock_guard lock(objects_mutex_);
    qps_.push_back(qp);
    if (qp->slot >= ipc::kDoorbellSlots) return;  // an XRC target: no completion asks for it
    std::atomic<QpPage*>& place = qp_pages_[qp->slot / kQpsPerPage];
    QpPage* page = place.load(std::memory_order_relaxed);
    if (page == nullptr) {
        qp_page_owners_.push_back(std::make_unique<QpPage>());
        page = qp_page_owners_.back().get();
        place.store(page, std::memory_order_release);
    }
    (*page)[qp->slot % kQpsPerPage].store(qp, std::memory_order_release);
}

void Context::remove_qp(Qp* qp) {
    const std::lock_guard lock(objects_mutex_);
    std::erase(qps_, qp);
    if (qp->slot >= ipc::kDoorbellSlots) return;
    QpPage* page = qp_pages_[qp->slot / kQpsPerPage].load(std::memory_order_relaxed);
    // The engine may have given the slot to a new QP already.
    Qp* expected = qp;
    if (page != nullptr) (*page)[qp->slot % kQpsPerPage].compare_exchange_strong(expected, nullptr);
}

Qp* Context::find_qp(std::uint32_t slot) const {
    if (slot >= ipc::kDoorbellSlots) return nullptr;
    const QpPage* page = qp_pages_[slot / kQpsPerPage].load(std::memory_order_acquire);
    return page == nullptr ? nullptr : (*page)[slot % kQpsPerPage].load(std::memory_order_acquire);
}

void Context::add_cq(Cq* cq) {
    const std::lock_guard lock(objects_mutex_);
    cqs_.push_back(cq);
}

void Context::remove_cq(Cq* cq) {
    const std::lock_guard lock(objects_mutex_);
    std::erase(cqs_, cq);
}

int Context::async_read_fd() const {
    return async_.read_end ? async_.read_end.get() : verbs_->async_fd;
}

int Context::duplicate_async_fd() const {
    return ::fcntl(async_read_fd(), F_DUPFD_CLOEXEC, 0);
}

void Context::on_engine_death() {
    control_.declare_dead();
    if (!dead()) return;
    const ipc::AsyncEvent fatal{0, IBV_EVENT_DEVICE_FATAL, 0};
    write_event(async_write_fd(), &fatal, sizeof fatal);
    const std::lock_guard lock(objects_mutex_);
    for (Cq* cq : cqs_) cq->write_own_event();
}

}  // namespace uib::provider
