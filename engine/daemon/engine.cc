#include "engine/daemon/engine.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "engine/daemon/log.h"
#include "engine/daemon/status.h"
#include "engine/ipc/socket_path.h"

namespace uib::daemon {

namespace {

// What an epoll event is about: kind in the low bits, session id above.
enum Kind : std::uint64_t {
    kListener = 0,
    kSignal = 1,
    kAttention = 2,
    kSessionSocket = 3,
    kSessionDeath = 4
};
constexpr unsigned kKindBits = 3;

constexpr std::uint64_t tag_of(Kind kind, std::uint32_t session = 0) {
    return kind | std::uint64_t{session} << kKindBits;
}

constexpr int kHousekeepingMs = 250;
/// Between two looks at what the tree's counters should show: every one that has changed is a file to be
/// made, some milliseconds of a CPU for a busy engine.
constexpr std::uint64_t kCountersNs = 1'000'000'000;
constexpr int kBacklogRetryMs = 2;
constexpr int kCaptureMs = 10;  ///< between two looks into its buffer
/// Looks for another request before sleeping: clients make objects in rows, and each wake-up of a sleeper
/// costs tens of microseconds, several times what a request takes.
constexpr int kPollsAfterRequest = 200;

void drain(int eventfd) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(eventfd, &count, sizeof count);
}

}  // namespace

Engine::Engine(const Config& config) : Engine(config, open_links(config)) {}

Engine::Engine(const Config& config, OpenedLinks links)
    : socket_path_(config.socket),
      started_(verbs::monotonic_now()),
      listener_(config.socket),
      adapter_(links.devices, config.subnets, std::move(links.trunks)),
      attention_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      lane_(adapter_, baton_, page_, attention_.get()),
      tree_(config.socket),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!attention_ || !epoll_ || !watch(listener_.fd(), tag_of(kListener), EPOLLIN) ||
        !watch(attention_.get(), tag_of(kAttention), EPOLLIN))
        throw std::system_error(errno, std::generic_category(), "the control thread's descriptors");
    open_uplinks(adapter_, config.devices);
    publish_tree();
    lane_.start();
}

Engine::~Engine() {
    page_->stopping.store(1, std::memory_order_release);
    capture_.reset();
    sessions_.clear();
    lane_.stop();
}

bool Engine::watch(int fd, std::uint64_t tag, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

int Engine::wait(std::span<epoll_event> events) {
    const auto room = static_cast<int>(events.size());
    for (int polls = 0; expecting_ && polls < kPollsAfterRequest; ++polls) {
        if (const int count = ::epoll_wait(epoll_.get(), events.data(), room, 0); count != 0) return count;
        ::sched_yield();
    }
    expecting_ = false;
    const bool capturing = capture_ != nullptr && capture_->busy();
    const int patience = backlog_ ? kBacklogRetryMs : capturing ? kCaptureMs : kHousekeepingMs;
    return ::epoll_wait(epoll_.get(), events.data(), room, patience);
}

void Engine::run(int signal_fd) {
    if (!watch(signal_fd, tag_of(kSignal), EPOLLIN))
        throw std::system_error(errno, std::generic_category(), "watching for signals");
    std::uint64_t next_housekeeping = verbs::monotonic_now();
    std::uint64_t next_counters = next_housekeeping;
    std::uint64_t next_capture = 0;
    while (true) {
        epoll_event events[64];
        const int count = wait(events);
        bool look = backlog_;
        for (int i = 0; i < count; ++i) {
            const std::uint64_t tag = events[i].data.u64;
            switch (tag & ((1U << kKindBits) - 1)) {
                case kListener:
                    accept_all();
                    break;
                case kSignal:
                    return;
                case kAttention:
                    drain(attention_.get());
                    look = true;
                    break;
                default:
                    on_session_event(tag);
            }
        }
        if (capture_ != nullptr && verbs::monotonic_now() >= next_capture) {
            capture_->tick();
            next_capture = verbs::monotonic_now() + std::uint64_t{kCaptureMs} * 1'000'000;
        }
        if (verbs::monotonic_now() >= next_housekeeping) {
            next_housekeeping = verbs::monotonic_now() + std::uint64_t{kHousekeepingMs} * 1'000'000;
            look = true;
        }
        if (verbs::monotonic_now() >= next_counters) {
            next_counters = verbs::monotonic_now() + kCountersNs;
            update_counters();
        }
        if (!look) continue;
        follow_ports();
        look_after_clients();
    }
}

void Engine::accept_all() {
    while (true) {
        ipc::UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) {
            if (errno == EMFILE || errno == ENFILE)
                log_error("no descriptors left for a new client; raise the limit (ulimit -n)");
            return;
        }
        try {
            admit(std::move(socket));
        } catch (const std::exception& error) {
            // No memory for one more: its connection is closed, and the engine lives on.
            log_error("a new client is turned away: {}", error.what());
        }
    }
}

void Engine::admit(ipc::UniqueFd socket) {
    const std::uint32_t id = next_session_++;
    auto session = std::make_unique<Session>(*this, id, std::move(socket));
    const bool watched =
        watch(session->socket(), tag_of(kSessionSocket, id), EPOLLIN | EPOLLRDHUP) &&
        (session->pidfd() < 0 || watch(session->pidfd(), tag_of(kSessionDeath, id), EPOLLIN));
    if (!watched) {
        log_error("cannot watch a new client: {}", std::strerror(errno));
        return;
    }
    sessions_.emplace(id, std::move(session));
}

void Engine::on_session_event(std::uint64_t tag) {
    const auto id = static_cast<std::uint32_t>(tag >> kKindBits);
    const auto found = sessions_.find(id);
    expecting_ = true;
    if (found == sessions_.end()) return;  // ended by an earlier event of the same round
    if ((tag & ((1U << kKindBits) - 1)) == kSessionDeath) {
        end_session(id, "the process ended");
        return;
    }
    bool goes_on = false;
    try {
        goes_on = found->second->on_readable();
    } catch (const std::exception& error) {
        // Not even the answer could be made.
        log_error("client {}: {}", found->second->pid(), error.what());
    }
    if (!goes_on) end_session(id, found->second->ended_because());
}

void Engine::end_session(std::uint32_t id, const std::string& why) {
    const auto found = sessions_.find(id);
    Session& session = *found->second;
    const bool breach = why.starts_with("protocol error");
    if (breach) ++protocol_errors_;
    if (session.client() != nullptr || breach)
        log_line(breach ? LogLevel::kWarn : LogLevel::kInfo, "client {} ({}): gone: {}", session.pid(),
                 session.command(), why);
    ++ended_sessions_;
    if (capture_ != nullptr && capture_->session() == id) capture_.reset();
    sessions_.erase(found);
}

void Engine::look_after_clients() {
    backlog_ = false;
    std::vector<std::pair<std::uint32_t, const char*>> condemned;
    {
        const Baton::Hold hold(baton_);
        for (const auto& [id, session] : sessions_) {
            verbs::Client* client = session->client();
            if (client == nullptr || session->context() == nullptr) continue;
            if (client->space()->failed()) client->condemn("its copy helper does not answer");
            if (client->condemned() != nullptr) condemned.emplace_back(id, client->condemned());
            if (client->async_pipe().has_backlog()) client->async_pipe().retry();
            session->context()->tend_channels(*client);
            backlog_ |= client->take_backlog_note() || client->async_pipe().has_backlog();
        }
    }
    for (const auto& [id, why] : condemned) end_session(id, std::string("protocol error: ") + why);
}

std::shared_ptr<verbs::Context> Engine::make_context(verbs::Device& device) {
    return std::make_shared<verbs::Context>(adapter_, device, next_context_++);
}

void Engine::start_capture(std::uint32_t session, const net::CaptureOptions& options, ipc::UniqueFd file,
                           ipc::UniqueFd ended) {
    {
        const Baton::Hold hold(baton_);
        adapter_.start_capture(options);
    }
    capture_ = std::make_unique<CaptureRun>(adapter_, baton_, session, std::move(file), std::move(ended));
}

Session* Engine::session_with_cookie(std::uint64_t cookie) const {
    if (cookie == 0) return nullptr;
    for (const auto& [id, session] : sessions_)
        if (session->peer_cookie() == cookie) return session.get();
    return nullptr;
}

std::string Engine::status_json() {
    const Baton::Hold hold(baton_);
    StatusInput input{socket_path_, (verbs::monotonic_now() - started_) / 1'000'000'000, adapter_, {}, {}};
    for (const auto& [id, session] : sessions_)
        if (session->client() != nullptr && session->context() != nullptr)
            input.clients.push_back(
                {session->pid(), session->command(), session->client(), session->context()});
    input.counters = {{"sessions_ended", ended_sessions_},
                      {"protocol_errors", protocol_errors_},
                      {"lane_sleeps", lane_.sleeps()}};
    return make_status_json(input);
}

void Engine::publish_tree() {
    std::vector<TreeDevice> devices;
    for (const auto& device : adapter_.devices()) devices.push_back(tree_device(adapter_, *device));
    tree_.publish(devices);
}

// A client that is told of a change reads the tree next.
void Engine::follow_ports() {
    const Baton::Hold hold(baton_);
    if (!adapter_.take_port_changes()) return;
    try {
        publish_tree();
    } catch (const std::exception& error) {
        log_warn("{} cannot be written: {}", tree_.path().string(), error.what());
    }
    adapter_.raise_port_events();
}

void Engine::update_counters() {
    std::vector<std::pair<std::string, TreePort>> ports;
    {
        const Baton::Hold hold(baton_);
        if (adapter_.statistics().packets == tree_packets_) return;
        tree_packets_ = adapter_.statistics().packets;
        for (const auto& device : adapter_.devices())
            ports.emplace_back(device->name(), tree_port(adapter_, *device));
    }
    try {
        for (const auto& [name, port] : ports)
            tree_.update_counters(name, port.number, port.counters, port.hw_counters);
    } catch (const std::exception& error) {
        log_warn("the counters in {} cannot be written: {}", tree_.path().string(), error.what());
    }
}

}  // namespace uib::daemon
