#include "engine/verbs/adapter.h"

#include <algorithm>
#include <ctime>

#include "engine/verbs/completion_queue.h"
#include "engine/verbs/context.h"
#include "engine/verbs/qp.h"
#include "engine/verbs/qp_counter_names.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kEventCqError = 0;  // IBV_EVENT_CQ_ERR
constexpr std::uint32_t kFirstQpNumber =
    0x40;  // 0 and 1 are the management QPs; the rest is room for special ones

void fill(ipc::Cqe& entry, const Qp& qp, const transport::Completion& completion) {
    entry.wr_id = completion.wr_id;
    entry.byte_len = completion.byte_len;
    entry.immediate = completion.immediate;
    entry.qp_number = qp.number();
    entry.source_qp = completion.source_qp;
    entry.qp_slot = qp.slot();
    entry.wqe_index = completion.wqe_index;
    entry.flags = completion.flags;
    entry.status = static_cast<std::uint8_t>(completion.status);
    entry.opcode = completion.opcode;
    entry.slid = qp.device().ethernet() ? 0 : completion.slid;
    entry.sl = completion.sl;
    entry.dlid_path_bits = completion.dlid_path_bits;
    entry.vendor_error = completion.vendor_error;
}

}  // namespace

transport::Time monotonic_now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<transport::Time>(now.tv_sec) * 1'000'000'000 +
           static_cast<transport::Time>(now.tv_nsec);
}

Adapter::Adapter(const std::vector<DeviceConfig>& devices, const std::vector<SubnetConfig>& subnets,
                 std::vector<std::unique_ptr<net::IbTrunk>> trunks)
    : now_(monotonic_now()),
      mover_(kStagingBytes),
      multicast_(fabric_),
      qps_(kFirstQpNumber, nullptr),
      trunks_(std::move(trunks)) {
    name_subnets(subnets, devices);
    for (const DeviceConfig& config : devices) {
        const auto index = static_cast<std::uint32_t>(devices_.size());
        devices_.push_back(std::make_unique<Device>(config, index,
                                                    static_cast<net::Lid>(EthernetPaths::kFirstLid + index),
                                                    fabric_, subnet_named(config.subnet)));
        const Device& device = *devices_.back();
        if (!device.ethernet()) continue;
        ethernet_paths_.set_port(device.lid(), device.gids());
        ethernet_switch_.add_port(device.index(), device.mac());
    }
    wire_.reserve(kQueueDepth);
    start_subnets();
}

Adapter::~Adapter() = default;

Device* Adapter::device_named(const std::string& name) {
    const auto found =
        std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->name() == name; });
    return found == devices_.end() ? nullptr : found->get();
}

void Adapter::remove_client(Client& client) {
    std::erase(clients_, &client);
}

std::uint32_t Adapter::reserve_qp_number() {
    // A number rests as long as possible before it is used again, so that a late packet finds nobody.
    if (qps_.size() < kFirstQpNumber + Limits::kMaxQp + Limits::kMaxWq) {
        qps_.push_back(nullptr);
        return static_cast<std::uint32_t>(qps_.size() - 1);
    }
    if (free_numbers_.empty()) return 0;
    const std::uint32_t number = free_numbers_.front();
    free_numbers_.pop_front();
    return number;
}

void Adapter::add_qp(Qp& qp) {
    qps_[qp.number()] = &qp;
}

// A program sees its last completion a turn before the acknowledge leaves, and a peer without it would try in
// vain until its retries run out.
void Adapter::pay_debts(Qp& qp) {
    for (int turns = 0; turns < kTurnsToPay && qp.machine().owes_response() && turn(); ++turns) {
    }
}

void Adapter::remove_qp(Qp& qp) {
    pay_debts(qp);
    multicast_.detach_all(qp);
    add_counters(qp.device().retired, qp.machine().counters());
    forget_writes(qp);
    keys_.release_windows_of(qp.number());
    if (qp.active) std::erase(active_, &qp);
    qps_[qp.number()] = nullptr;
    free_numbers_.push_back(qp.number());
}

transport::QpCounters Adapter::qp_counters(const Device& device) const {
    transport::QpCounters sum = device.retired;
    for (const Qp* qp : qps_)
        if (qp != nullptr && &qp->device() == &device) add_counters(sum, qp->machine().counters());
    return sum;
}

void Adapter::forget_writes(const Qp& qp) {
    // Asking takes the note of a failure away: the number's next owner must not find it.
    mover_.flush(qp.number());
}

void Adapter::forget(CompletionQueue& cq) {
    if (cq.unsettled) std::erase(unsettled_, &cq);
}

void Adapter::activate(Qp& qp) {
    qp.idle_turns = 0;
    if (qp.active) return;
    qp.active = true;
    if (qp.send_ring() != nullptr) ipc::watch_queue(qp.send_ring()->control());
    active_.push_back(&qp);
}

// The turn.

bool Adapter::turn() {
    now_ = monotonic_now();
    ++statistics_.turns;
    bool busy = receive_from_outside();
    busy |= take_doorbells();
    busy |= run_active();
    busy |= send_general();
    busy |= deliver();
    datagrams_.clear();
    mover_.end_turn();
    end_outside_turn();
    busy |= fire_timers();
    if (subnets_due_ <= now_) tend_subnets();
    settle_cqs();
    if (busy) ++statistics_.busy_turns;
    return busy;
}

bool Adapter::take_doorbells() {
    bool rung = false;
    for (Client* client : clients_) {
        client->doorbells().take([&](std::uint32_t slot) {
            rung = true;
            ++statistics_.doorbells;
            if (Qp* qp = client->qp_of_slot(slot)) activate(*qp);
        });
    }
    return rung;
}

bool Adapter::run_active() {
    bool busy = false;
    for (std::size_t i = 0; i < active_.size();) {
        Qp& qp = *active_[i];
        transport::QueuePair& machine = qp.machine();
        const std::uint64_t before = progress_;
        running_ = &qp;
        const bool more = machine.run(kBurst);
        running_ = nullptr;
        after_event(qp);
        // Who would send and finds no room waits for somebody else, who may need this CPU.
        busy |= progress_ != before;
        if (more || progress_ != before) {
            qp.idle_turns = 0;
        } else if (++qp.idle_turns > kIdleTurns) {
            if (qp.send_ring() != nullptr) ipc::release_queue(qp.send_ring()->control());
            if (!machine.wants_run()) {
                qp.active = false;
                active_[i] = active_.back();
                active_.pop_back();
                continue;
            }
            if (qp.send_ring() != nullptr) ipc::watch_queue(qp.send_ring()->control());
            qp.idle_turns = 0;
        }
        ++i;
    }
    // Whoever was first this turn is last in the next: no QP is favoured when room runs short.
    if (active_.size() > 1) std::rotate(active_.begin(), active_.begin() + 1, active_.end());
    return busy;
}

void Adapter::after_event(Qp& qp) {
    if (qp.machine().state() != qp.known_state) {
        qp.known_state = qp.machine().state();
        qp.note_state();
        activate(qp);
    }
    watch_timer(qp);
}

// Timers.

void Adapter::watch_timer(Qp& qp) {
    const transport::Time at = qp.machine().next_timer();
    if (at >= qp.timer_at) return;
    qp.timer_at = at;
    timers_.push({at, qp.number()});
}

bool Adapter::fire_timers() {
    bool fired = false;
    while (!timers_.empty() && timers_.top().at <= now_) {
        const TimerEntry entry = timers_.top();
        timers_.pop();
        Qp* qp = qp_numbered(entry.qp_number);
        if (qp == nullptr || qp->timer_at != entry.at) continue;  // the QP is gone, or has an earlier entry
        qp->timer_at = transport::kNever;
        if (qp->machine().next_timer() <= now_) {
            qp->machine().on_timer();
            activate(*qp);
            fired = true;
        }
        after_event(*qp);
    }
    return fired;
}

bool Adapter::quiet() const {
    if (!active_.empty() || !wire_.empty()) return false;
    if (general_ != nullptr && general_->next_deadline() <= now_) return false;
    return std::none_of(clients_.begin(), clients_.end(), [](Client* client) {
        return client->doorbells().top.load(std::memory_order_seq_cst) != 0;
    });
}

transport::Time Adapter::next_deadline() const {
    return std::min({subnets_due_, moderation_due_, timers_.empty() ? transport::kNever : timers_.top().at,
                     general_ == nullptr ? transport::kNever : general_->next_deadline(),
                     outside_deadline()});
}

// Completions and events.

void Adapter::settle_cqs() {
    moderation_due_ = transport::kNever;
    std::erase_if(unsettled_, [&](CompletionQueue* cq) {
        const transport::Time due = cq->settle(now_);
        if (due == transport::kNever) {
            cq->unsettled = false;
            return true;
        }
        moderation_due_ = std::min(moderation_due_, due);
        return false;
    });
}

bool Adapter::push(CompletionQueue& cq, const ipc::Cqe& entry) {
    ++progress_;
    const bool was_overrun = cq.overrun();
    if (!cq.push(entry, now_)) {
        if (!was_overrun) cq.client().raise(kEventCqError, cq.user_handle(), &cq.async_events);
        return false;
    }
    if (cq.channel() != nullptr && !cq.unsettled) {
        cq.unsettled = true;
        unsettled_.push_back(&cq);
    }
    return true;
}

bool Adapter::complete_send(transport::QueuePair& machine, const transport::Completion& completion) {
    const Qp& qp = *static_cast<Qp*>(machine.config().owner);
    ipc::Cqe entry{};
    fill(entry, qp, completion);
    return push(*qp.init().send_cq, entry);
}

bool Adapter::complete_receive(transport::QueuePair& machine, const transport::Completion& completion) {
    const Qp& qp = *static_cast<Qp*>(machine.config().owner);
    ipc::Cqe entry{};
    fill(entry, qp, completion);
    entry.flags |= ipc::kCqeReceive;
    if (qp.init().service != transport::Service::kXrcTarget) {
        if (qp.init().srq != nullptr) entry.flags |= ipc::kCqeSrq;
        return push(*qp.init().recv_cq, entry);
    }
    // An SRQ that was destroyed under a message took its CQ along: nobody waits for this completion.
    SharedReceiveQueue* srq = xrc_.srq(completion.xrc_srq);
    if (srq == nullptr) return true;
    entry.flags = static_cast<std::uint16_t>((entry.flags & ~ipc::kCqeSrq) | ipc::kCqeXrcSrq);
    entry.qp_slot = srq->number();
    if (push(srq->xrc->cq(), entry)) return true;
    srq->fail();  // whose completions are lost, whichever target QP comes
    return false;
}

void Adapter::raise(transport::QueuePair& machine, transport::QpEvent event) {
    ++progress_;
    static_cast<Qp*>(machine.config().owner)->raise(event);
}

transport::PortView Adapter::port_of(const transport::QueuePair& machine) {
    Device& device = static_cast<Qp*>(machine.config().owner)->device();
    return {device.gids(), device.pkeys(), device.subnet().lmc, &device.static_rate,
            device.uplink() == nullptr ? 0 : kFlightLimit};
}

transport::Status Adapter::bind_window(transport::QueuePair& machine, const transport::SendRequest& request) {
    Qp& qp = *static_cast<Qp*>(machine.config().owner);
    return qp.init().context->bind_window(qp, request);
}

}  // namespace uib::verbs
