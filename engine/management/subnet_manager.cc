#include "engine/management/subnet_manager.h"

#include <algorithm>
#include <utility>

namespace uib::management {
namespace {

constexpr unsigned kLooksBetweenSweeps = 6;
constexpr Time kFirstRetry = 500'000'000;
constexpr Time kLastRetry = 16'000'000'000;
/// Managers with one clock must not use the same transactions; their GUIDs differ in the low bits.
constexpr unsigned kTransactionShift = 40;

}  // namespace

SubnetManager::SubnetManager(SmpNode& node, unsigned port, const SubnetOptions& options)
    : node_(node),
      port_(port),
      options_(options),
      guid_(node.node().end_port(port).guids[0]),
      requests_(node, port, (guid_ << kTransactionShift) + 1, options.requests) {
    node_.run_manager(port, this);
}

SubnetManager::~SubnetManager() {
    node_.run_manager(port_, nullptr);
}

SmInfo SubnetManager::own_info() const {
    return {guid_, 0, act_count_, options_.priority, static_cast<Number>(state_)};
}

bool SubnetManager::better(const SmInfo& other) const {
    if (other.priority != options_.priority) return other.priority > options_.priority;
    return other.guid < guid_;
}

void SubnetManager::start(Time now) {
    now_ = now;
    state_ = SmState::kDiscovering;
    sweep();
    progress();
}

void SubnetManager::wake(Time now) {
    now_ = now;
    if (state_ == SmState::kMaster || state_ == SmState::kDiscovering) {
        changed_ = true;
        schedule(now);
        on_timer(now);
    }
}

Time SubnetManager::next_deadline() const {
    if (phase_ != Phase::kIdle) return requests_.next_deadline();
    return groups_changed_ ? std::min(now_, due_) : due_;
}

void SubnetManager::on_timer(Time now) {
    now_ = now;
    requests_.on_timer(now);
    if (phase_ == Phase::kIdle && groups_changed_) regroup();
    if (phase_ == Phase::kIdle && due_ <= now) {
        due_ = kNever;
        switch (state_) {
            case SmState::kMaster:
                look();
                break;
            case SmState::kStandby:
                poll();
                break;
            case SmState::kDiscovering:
                sweep();
                break;
            case SmState::kNotActive:
                break;
        }
    }
    progress();
}

void SubnetManager::on_response(const SmpPacket& packet, Time now) {
    now_ = now;
    if (requests_.on_response(packet.smp)) progress();
}

// Whatever calls this within a call from here, the outermost loop does the work.
void SubnetManager::progress() {
    if (std::exchange(busy_, true)) return;
    requests_.pump(now_);
    while (requests_.idle() && phase_ != Phase::kIdle) {
        advance();
        requests_.pump(now_);
    }
    busy_ = false;
}

void SubnetManager::advance() {
    switch (phase_) {
        case Phase::kIdle:
            return;
        case Phase::kLook:
            phase_ = Phase::kIdle;
            if (changed_ || ++looks_ >= kLooksBetweenSweeps) {
                sweep();
            } else {
                schedule(now_ + options_.sweep_interval);
            }
            return;
        case Phase::kPoll:
            phase_ = Phase::kIdle;
            if (state_ == SmState::kStandby) {
                schedule(now_ + options_.poll_interval);
            } else {
                sweep();
            }
            return;
        case Phase::kDiscover:
            phase_ = Phase::kManagers;
            return ask_managers();
        case Phase::kManagers:
            return elect();
        case Phase::kHandOver:  // it was not taken
            incomplete_ = true;
            return finish();
        case Phase::kIdentify:
            phase_ = Phase::kTables;
            return set_tables();
        case Phase::kTables:
            phase_ = Phase::kArm;
            return set_states(kStateInitialize, kStateArmed);
        case Phase::kArm:
            phase_ = Phase::kActivate;
            return set_states(kStateArmed, kStateActive);
        case Phase::kActivate:
            ++sweeps_;
            return finish();
    }
}

void SubnetManager::finish() {
    phase_ = Phase::kIdle;
    if (incomplete_) {
        changed_ = true;
        schedule(now_ + std::min(kFirstRetry << std::min(failures_++, 8U), kLastRetry));
    } else {
        failures_ = 0;
        if (options_.sweep_interval != 0) schedule(now_ + options_.sweep_interval);
    }
}

// Whatever it tells, a sweep finds it, once the trap is repressed.
bool SubnetManager::on_trap(const net::Smp& /*trap*/, Time now) {
    if (state_ != SmState::kMaster) return false;
    changed_ = true;
    schedule(now);
    return true;
}

// Another manager asks, or gives orders (14.4.1).
net::Smp SubnetManager::on_sm_info(const net::Smp& request, Time now) {
    now_ = now;
    ++act_count_;
    net::Smp reply = request;
    reply.header.method = net::MadMethod::kGetResponse;
    reply.header.status = 0;
    const auto discover = [&] {
        requests_.clear();
        phase_ = Phase::kIdle;
        changed_ = true;
        schedule(now);
    };
    if (request.header.method == net::MadMethod::kSet) {
        const std::uint32_t order = request.header.attribute_modifier;
        if (order == kSmHandover && state_ != SmState::kNotActive) {
            handed_over_ = true;
            state_ = SmState::kMaster;
            discover();
        } else if (order == kSmDisable && state_ == SmState::kStandby) {
            state_ = SmState::kNotActive;
        } else if ((order == kSmStandby && state_ == SmState::kNotActive) ||
                   (order == kSmDiscover && state_ == SmState::kStandby)) {
            state_ = SmState::kDiscovering;
            discover();
        } else if (order != kSmAcknowledge) {
            reply.header.status = net::kMadInvalidValue;
        }
    } else if (request.header.method != net::MadMethod::kGet) {
        reply.header.status = net::kMadMethodNotSupported;
    }
    reply.data.fill(std::byte{0});
    encode(own_info(), reply.data);
    return reply;
}

}  // namespace uib::management
