#include "provider/fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include "provider/context.h"
#include "provider/cq.h"
#include "provider/qp.h"

namespace uib::provider {
namespace {

// Every context of the process.
struct Registry {
    std::mutex mutex;
    std::vector<Context*> contexts;
};
Registry& registry() {
    static auto* instance = new Registry;  // outlives every thread that may still fork at exit
    return *instance;
}

void before_fork() {
    registry().mutex.lock();
    for (Context* context : registry().contexts) context->before_fork();
}

void after_fork_in_parent() {
    for (Context* context : registry().contexts) context->after_fork_in_parent();
    registry().mutex.unlock();
}

void after_fork_in_child() {
    for (Context* context : registry().contexts) context->after_fork_in_child();
    registry().mutex.unlock();
}

/// Are both ends of one pipe?
bool same_pipe(int one, int other) {
    struct stat a {
    }, b{};
    return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

void enter_fork_registry(Context* context) {
    static std::once_flag once;
    std::call_once(once, [] { ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); });
    const std::lock_guard lock(registry().mutex);
    registry().contexts.push_back(context);
}

void leave_fork_registry(Context* context) {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().contexts, context);
}

void Context::before_fork() {
    objects_mutex_.lock();
    control_.before_fork();
    channels_.before_fork();
    lkeys_.before_fork();
}

void Context::after_fork_in_parent() {
    lkeys_.after_fork_in_parent();
    channels_.after_fork_in_parent();
    control_.after_fork_in_parent();
    objects_mutex_.unlock();
}

void Context::after_fork_in_child() {
    ++generation_;
    monitor_.forget();
    for (Qp* qp : qps_) {
        qp->sq_lock.unlock();
        qp->rq_lock.unlock();
    }
    for (Cq* cq : cqs_) cq->lock.unlock();
    // Slots and channel numbers of the session to come mean other objects.
    qps_.clear();
    cqs_.clear();
    for (const std::unique_ptr<QpPage>& page : qp_page_owners_)
        for (std::atomic<Qp*>& place : *page) place.store(nullptr, std::memory_order_relaxed);
    staging_ = std::make_unique<StagingPool>(control_);
    lkeys_.after_fork_in_child();
    channels_.after_fork_in_child();
    control_.after_fork_in_child([this] { return open_session_after_fork(); });
    objects_mutex_.unlock();
}

int Context::open_session_after_fork() {
    UniqueFd socket = connect_to_engine();
    if (!socket) {
        if (errno == ECONNREFUSED || errno == ENOENT) control_.end_foreign(Liveness::kDead);
        return EIO;
    }
    const int inherited_fd = control_.fd();
    control_.start_over(socket.get());
    const int error = enter_session_after_fork(inherited_fd);
    if (error != 0) {
        control_.start_over(inherited_fd);
        // Its parent's session is gone, and with it the context.
        if (error == EBADF) control_.end_foreign(Liveness::kDead);
        return EIO;
    }
    own_socket_ = std::move(socket);
    return 0;
}

int Context::enter_session_after_fork(int inherited_fd) {
    SessionEnds ends;
    if (const int error = say_hello(ipc::kHelloImport, ends); error != 0) return error;
    if (const int error = join(inherited_fd); error != 0) return error;
    take_async_pipe_after_fork(std::move(ends.async));
    // First, as the monitor may find the engine dead at once.
    control_.end_foreign(Liveness::kAlive);
    const int error = watch(std::move(ends));
    if (error != 0) control_.end_foreign(Liveness::kForeign);
    return error;
}

/// Events of this process's objects come by its own pipe: they name objects by address. The program knows the
/// pipe by the number of its parent's.
void Context::take_async_pipe_after_fork(EventPipe pipe) {
    const int known = verbs_->async_fd;
    const bool replace = known >= 0 && same_pipe(known, async_.write_end.get());
    const int flags = replace ? ::fcntl(known, F_GETFL) : -1;
    async_ = std::move(pipe);
    if (!replace || ::dup3(async_.read_end.get(), known, O_CLOEXEC) < 0) return;
    if (flags >= 0) (void)::fcntl(known, F_SETFL, flags);
    async_.read_end.reset();
}

}  // namespace uib::provider
