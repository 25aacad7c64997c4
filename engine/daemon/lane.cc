#include "engine/daemon/lane.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "engine/ipc/usable_cpus.h"

namespace uib::daemon {

namespace {

/// Spinning before the first sleep. A wake-up across CPUs costs 25 to 60 us, so anything that a busy client
/// might do within this time is worth waiting for; an idle engine pays it once per burst of work.
constexpr transport::Time kSpinTime = 500'000;
/// A timer due within this time is waited for without sleeping.
constexpr transport::Time kShortTimer = 100'000;
/// A nap is this part of the time without work, and no longer than that: what a packet waits for the lane is
/// little beside the pause before it, and a nap (a wake-up and a turn) costs an idle engine some
/// microseconds.
constexpr transport::Time kNapPart = 16;
constexpr transport::Time kLongestNap = 500'000;

void signal_eventfd(int fd) {
    const std::uint64_t one = 1;
    // A full counter means that the wake-up is pending already.
    [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

}  // namespace

Lane::Lane(verbs::Adapter& adapter, Baton& baton, EnginePage& page, int attention_fd)
    : adapter_(adapter),
      baton_(baton),
      page_(page),
      attention_fd_(attention_fd),
      polls_before_yield_(ipc::polls_before_yield(ipc::usable_cpus())),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      nudge_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_ || !nudge_ || !watch(nudge_.get()))
        throw std::system_error(errno, std::generic_category(), "the lane's descriptors");
}

Lane::~Lane() {
    stop();
}

void Lane::start() {
    for (const int descriptor : adapter_.wake_descriptors()) watch(descriptor);
    // Signals are the main thread's business.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Lane::stop() {
    if (!thread_.joinable()) return;
    stopping_.store(true);
    signal_eventfd(nudge_.get());
    thread_.join();
}

bool Lane::watch(int eventfd) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.fd = eventfd;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, eventfd, &event) == 0;
}

void Lane::unwatch(int eventfd) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, eventfd, nullptr);
}

void Lane::nudge() {
    if (page_->sleeping.load(std::memory_order_seq_cst) != 0) signal_eventfd(nudge_.get());
}

void Lane::run() {
    pthread_setname_np(pthread_self(), "uib-lane");
    baton_.take();
    while (!stopping_.load(std::memory_order_relaxed)) {
        const bool busy = adapter_.turn();
        if (adapter_.take_attention()) signal_eventfd(attention_fd_);
        if (baton_.wanted()) baton_.hand_over();
        if (busy) {
            last_busy_ = adapter_.now();
            empty_turns_ = 0;
        } else {
            wait_without_work();
        }
    }
    baton_.give();
}

void Lane::wait_without_work() {
    const transport::Time now = adapter_.now();
    const transport::Time deadline = adapter_.next_deadline();
    const bool timer_soon = deadline < now + kShortTimer;
    if (now - last_busy_ > kSpinTime && !timer_soon && adapter_.quiet()) {
        sleep();
        return;
    }
    if (polls_before_yield_ == 0 || ++empty_turns_ < polls_before_yield_) return;
    empty_turns_ = 0;
    baton_.give();
    ::sched_yield();
    baton_.take();
}

transport::Time Lane::alarm(transport::Time now) const {
    const transport::Time deadline = adapter_.next_deadline();
    if (!adapter_.must_poll()) return deadline;
    return std::min(deadline, now + std::min((now - last_busy_) / kNapPart, kLongestNap));
}

void Lane::sleep() {
    const bool nap = adapter_.must_poll();
    page_->sleeping.store(1, std::memory_order_seq_cst);
    // The second look of doorbell.h: whoever rang before it saw the flag is found by quiet(). What came from
    // outside before the ports were watched is found by another turn; a nap is over soon enough for both.
    if (!nap) adapter_.watch_outside(true);
    const bool busy = !nap && adapter_.has_outside() && adapter_.turn();
    if (!busy && adapter_.quiet() && !baton_.wanted()) {
        const transport::Time now = verbs::monotonic_now();
        const transport::Time end = alarm(now);
        timespec timeout{};
        if (end != transport::kNever && end > now) {
            timeout.tv_sec = static_cast<time_t>((end - now) / 1'000'000'000);
            timeout.tv_nsec = static_cast<long>((end - now) % 1'000'000'000);
        }
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        baton_.give();
        epoll_event events[16];
        const int woken =
            ::epoll_pwait2(epoll_.get(), events, 16, end == transport::kNever ? nullptr : &timeout, nullptr);
        baton_.take();
        if (!nap || woken > 0) last_busy_ = verbs::monotonic_now();
    }
    if (!nap) adapter_.watch_outside(false);
    page_->sleeping.store(0, std::memory_order_seq_cst);
}

}  // namespace uib::daemon
