#include "tests/simulation/scenario.h"

#include <algorithm>
#include <array>

namespace uib::simulation {

using transport::QpState;
using transport::Service;

namespace {

constexpr std::array<std::uint32_t, 5> kMtus = {256, 512, 1024, 2048, 4096};
constexpr std::uint32_t kDatagramQkey = 0x1234;
constexpr std::uint8_t kEndless = 7;
constexpr Time kClientsUntil = 500'000;
constexpr Time kLongestPartition = 6'000'000;

net::Gid gid_of(const Adapter& adapter) {
    net::Gid gid = {0xFE, 0x80};
    gid[8] = 0x02;
    gid.back() = static_cast<std::uint8_t>(adapter.lid());
    return gid;
}

}  // namespace

Scenario::Scenario(std::uint64_t seed) : world_(seed) {
    Random& random = world_.random;
    world_.watcher = this;
    mtu_ = random.pick(kMtus);
    longest_ = random.chance(0.7) ? 3 * mtu_ : 7 * mtu_;
    const std::uint64_t adapters = random.draw(2, 3);
    for (std::uint64_t i = 0; i < adapters; ++i) world_.add(65'536 + 192 * mtu_, random.chance(0.6));
    draw_faults();
    const std::uint64_t groups = random.draw(1, 3);
    for (std::uint64_t i = 0; i < groups; ++i) {
        const std::uint64_t kind = random.draw(0, 9);
        if (kind < 5) {
            add_connection(Service::kRc);
        } else if (kind < 7) {
            add_connection(Service::kUc);
        } else if (kind < 8) {
            add_datagram_group();
        } else {
            add_xrc_group();
        }
    }
    schedule_clients();
}

void Scenario::draw_faults() {
    const bool clean = world_.random.chance(0.2);
    for (const Adapter& from : world_.adapters)
        for (const Adapter& to : world_.adapters)
            if (!clean) world_.link(from.lid(), to.lid()).faults = draw_link();
}

LinkFaults Scenario::draw_link() {
    constexpr std::array kLoss = {0.0, 0.003, 0.01, 0.03, 0.03, 0.1};
    constexpr std::array kRepeat = {0.0, 0.0, 0.03, 0.1};
    constexpr std::array kDelay = {0.0, 0.0, 0.03, 0.1};
    Random& random = world_.random;
    LinkFaults faults;
    faults.loss = random.pick(kLoss);
    faults.repeat = random.pick(kRepeat);
    faults.delay = random.pick(kDelay);
    if (random.chance(0.1)) faults.longest_delay = 200'000;
    if (random.chance(0.2)) faults.damage = 0.01;
    if (random.chance(0.1)) faults.burst = 0.01;
    if (random.chance(0.05)) {
        const Time from = world_.now() + random.draw(0, kClientsUntil);
        faults.partitions.push_back({from, from + random.draw(10'000, kLongestPartition)});
    }
    return faults;
}

std::uint32_t Scenario::draw_psn() {
    Random& random = world_.random;
    if (random.chance(0.5)) return random.draw32(0xFFFFF0, 0xFFFFFF);
    return random.chance(0.3) ? 0 : random.draw32(0, 0xFFFFFF);
}

Qp* Scenario::add_qp(Adapter& adapter, Service service, ReceiveList* receives) {
    return adapter.add_qp(service, next_qp_++, receives);
}

// A shared queue serves queue pairs of one kind of service.
ReceiveList* Scenario::receives_for(Adapter& adapter, bool reliable) {
    Random& random = world_.random;
    if (!reliable || !random.chance(0.35))
        return adapter.add_receives(!reliable && random.chance(0.2), random.chance(0.5));
    ReceiveList*& shared = shared_[&adapter];
    if (shared == nullptr) shared = adapter.add_receives(true, random.chance(0.5));
    return shared;
}

void Scenario::prepare(Qp& left, Qp& right) {
    Random& random = world_.random;
    const std::uint8_t retries =
        random.chance(0.85) ? kEndless : static_cast<std::uint8_t>(random.draw(1, 4));
    const std::uint8_t rnr_retries =
        random.chance(0.85) ? kEndless : static_cast<std::uint8_t>(random.draw(0, 6));
    const bool global = random.chance(0.2);
    left.parameters.sq_psn = right.parameters.rq_psn = draw_psn();
    right.parameters.sq_psn = left.parameters.rq_psn = draw_psn();
    for (auto [own, peer] : {std::pair(&left, &right), std::pair(&right, &left)}) {
        transport::QpParameters& p = own->parameters;
        p.mtu_bytes = mtu_;
        p.retry_count = retries;
        p.rnr_retry = rnr_retries;
        p.timeout = 8;
        p.min_rnr_timer = static_cast<std::uint8_t>(random.draw(1, 6));
        p.access = ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic;
        if (random.chance(0.05)) p.access &= ~std::uint32_t{ipc::kAccessRemoteRead};
        if (random.chance(0.05)) p.access &= ~std::uint32_t{ipc::kAccessRemoteAtomic};
        p.dest_qp = peer->number();
        p.path.dlid = peer->adapter->lid();
        p.path.global = global;
        p.path.grh.sgid = gid_of(*own->adapter);
        p.path.grh.dgid = gid_of(*peer->adapter);
    }
    for (auto [own, peer] : {std::pair(&left, &right), std::pair(&right, &left)}) {
        own->parameters.max_dest_rd_atomic = static_cast<std::uint8_t>(random.draw(1, 16));
        peer->parameters.max_rd_atomic =
            static_cast<std::uint8_t>(random.draw(1, own->parameters.max_dest_rd_atomic));
    }
}

FlowPlan Scenario::plan_between(const Qp& from, const Qp& to, bool reliable) {
    Random& random = world_.random;
    const LinkFaults& there = world_.link(from.adapter->lid(), to.adapter->lid()).faults;
    const LinkFaults& back = world_.link(to.adapter->lid(), from.adapter->lid()).faults;
    FlowPlan plan;
    plan.reliable = reliable;
    plan.mtu = mtu_;
    plan.longest = longest_;
    plan.most_pieces = random.draw32(1, 4);
    plan.may_break = there.harsh() || back.harsh() || from.parameters.retry_count != kEndless;
    plan.may_starve = from.parameters.rnr_retry != kEndless;
    plan.ordered = there.delay == 0 && there.repeat == 0;
    plan.repeats = there.repeat > 0;
    plan.perfect = there.none();
    plan.late_receives = random.chance(0.4) ? 0.4 : 0;
    if (random.chance(0.15)) plan.illegal_at = random.draw32(0, 8);
    return plan;
}

Flow& Scenario::add_flow(Qp& from, Qp* to, FlowPlan plan) {
    Flow& flow = flows_.emplace_back(world_, from, to, std::move(plan), words_);
    outbound_[&from] = &flow;
    if (to != nullptr) inbound_[to] = &flow;
    return flow;
}

void Scenario::connect(Qp& left, Qp& right, bool two_ways) {
    const bool reliable = left.service() != Service::kUc;
    prepare(left, right);
    FlowPlan forth = plan_between(left, right, reliable);
    FlowPlan back = plan_between(right, left, reliable);
    forth.overlaps = back.overlaps = reliable && !forth.may_break && !forth.may_starve &&
                                     forth.illegal_at == ~0U && (!two_ways || back.illegal_at == ~0U);
    Flow& flow = add_flow(left, &right, std::move(forth));
    if (two_ways) {
        flow.reverse = &add_flow(right, &left, std::move(back));
        flow.reverse->reverse = &flow;
        if (reliable && world_.random.chance(0.3)) flow.add_window();
        if (reliable && world_.random.chance(0.3)) flow.reverse->add_window();
    }
    left.start();
    right.start();
}

void Scenario::add_connection(Service service) {
    const bool reliable = service == Service::kRc;
    Adapter& left = world_.adapters[world_.random.draw(0, world_.adapters.size() - 1)];
    Adapter& right = world_.adapters[world_.random.draw(0, world_.adapters.size() - 1)];
    Qp* one = add_qp(left, service, receives_for(left, reliable));
    Qp* other = add_qp(right, service, receives_for(right, reliable));
    connect(*one, *other, true);
    if (world_.random.chance(0.15)) schedule_drain(*one);
}

// Initiators of one adapter, targets of another, and SRQs that all targets serve.
void Scenario::add_xrc_group() {
    Random& random = world_.random;
    Adapter& here = world_.adapters.front();
    Adapter& there = world_.adapters.back();
    std::vector<ReceiveList*> queues;
    const std::uint64_t count = random.draw(1, 3);
    for (std::uint64_t i = 0; i < count; ++i)
        queues.push_back(there.add_xrc_receives(0x100 + next_qp_++, random.chance(0.5)));
    const std::uint64_t pairs = random.draw(1, 2);
    for (std::uint64_t i = 0; i < pairs; ++i) {
        Qp* initiator = add_qp(here, Service::kXrcInitiator, nullptr);
        Qp* target = add_qp(there, Service::kXrcTarget, nullptr);
        if (initiator == nullptr || target == nullptr) return;
        prepare(*initiator, *target);
        FlowPlan plan = plan_between(*initiator, *target, true);
        plan.overlaps = !plan.may_break && !plan.may_starve && plan.illegal_at == ~0U;
        plan.xrc_receives = queues;
        add_flow(*initiator, target, std::move(plan));
        initiator->start();
        target->start();
    }
}

void Scenario::add_datagram_group() {
    Random& random = world_.random;
    std::vector<Qp*> members;
    const std::uint64_t count = random.draw(2, 4);
    for (std::uint64_t i = 0; i < count; ++i) {
        Adapter& adapter = world_.adapters[i % world_.adapters.size()];
        Qp* qp = add_qp(adapter, Service::kUd, receives_for(adapter, false));
        qp->in_group = random.chance(0.6);
        qp->parameters.mtu_bytes = mtu_;
        qp->parameters.qkey = kDatagramQkey;
        qp->parameters.path.grh.sgid = gid_of(adapter);
        qp->parameters.sq_psn = draw_psn();
        members.push_back(qp);
    }
    for (Qp* qp : members) {
        FlowPlan plan = plan_between(*qp, *members.front(), false);
        plan.longest = mtu_;
        plan.datagram_peers = members;
        plan.repeats = std::any_of(world_.adapters.begin(), world_.adapters.end(), [&](const Adapter& to) {
            return world_.link(qp->adapter->lid(), to.lid()).faults.repeat > 0;
        });
        add_flow(*qp, nullptr, std::move(plan));
        qp->start();
    }
}

void Scenario::schedule_clients() {
    Random& random = world_.random;
    for (Flow& flow : flows_) {
        const std::uint64_t waves = random.draw(1, 6);
        for (std::uint64_t i = 0; i < waves; ++i) {
            const std::uint64_t count = random.draw(1, random.chance(0.2) ? 12 : 4);
            world_.at(world_.now() + random.draw(0, kClientsUntil), [this, &flow, count] {
                if (world_.random.chance(0.5)) recover(flow);
                flow.post(count);
            });
        }
    }
}

// Unreliable services: once all is flushed, the send queue error state can be left (10.3.1.7).
void Scenario::recover(Flow& flow) {
    Qp& qp = flow.from();
    if (qp.machine->state() != QpState::kSqe || qp.machine->send_consumed() != qp.sends.producer()) return;
    qp.machine->apply(QpState::kRts, qp.parameters, false);
    flow.recover();
    ++recoveries_;
}

// The send queue is drained and set going again.
void Scenario::schedule_drain(Qp& qp) {
    const Time start = world_.now() + world_.random.draw(0, kClientsUntil);
    world_.at(start, [&qp] {
        if (qp.machine->state() == QpState::kRts) qp.machine->apply(QpState::kSqd, qp.parameters, true);
    });
    world_.at(start + world_.random.draw(1, kClientsUntil), [&qp] {
        if (qp.machine->state() == QpState::kSqd) qp.machine->apply(QpState::kRts, qp.parameters, false);
    });
}

}  // namespace uib::simulation
