#include "engine/verbs/qp.h"

#include <cerrno>

#include "engine/verbs/adapter.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kEventWqFatal = 19;  // IBV_EVENT_WQ_FATAL

}  // namespace

Qp::Qp(Adapter& adapter, const QpInit& init) : adapter_(adapter), init_(init) {
    forget_attributes();
    if (init_.pd != nullptr) ++init_.pd->uses;
    if (init_.send_cq != nullptr) ++init_.send_cq->uses;
    if (init_.recv_cq != nullptr) ++init_.recv_cq->uses;
    if (init_.srq != nullptr) ++init_.srq->uses;
    if (init_.hash.table != nullptr) ++init_.hash.table->uses;
}

Qp::~Qp() {
    if (number_ != 0) {
        if (init_.xrc_domain != nullptr) init_.xrc_domain->remove_target(number_);
        adapter_.remove_qp(*this);
        if (slot_ != kNoSlot) init_.client->free_slot(slot_);
    }
    if (init_.pd != nullptr) --init_.pd->uses;
    if (init_.send_cq != nullptr) --init_.send_cq->uses;
    if (init_.recv_cq != nullptr) --init_.recv_cq->uses;
    if (init_.srq != nullptr) --init_.srq->uses;
    if (init_.hash.table != nullptr) --init_.hash.table->uses;
}

int Qp::make_rings() {
    if (init_.send.entries != 0) {
        send_ring_ = std::make_unique<SendRing>(*init_.client, init_.service, init_.send, init_.signal_all);
        if (!send_ring_->allocate()) return ENOMEM;
    }
    if (init_.receive.entries != 0) {
        receive_ring_ = std::make_unique<ReceiveRing>(*init_.client, init_.receive);
        if (!receive_ring_->allocate()) return ENOMEM;
    }
    return 0;
}

transport::QpConfig Qp::config() const {
    transport::QpConfig config;
    config.service = init_.service;
    config.pd = init_.pd != nullptr ? init_.pd->id : 0;
    config.client = init_.client != nullptr ? init_.client->id() : 0;
    config.max_send_wr = init_.send.entries;
    config.xrc_domain = init_.xrc_domain != nullptr ? init_.xrc_domain->id() : 0;
    config.send_queue = send_ring_.get();
    config.receive_queue =
        init_.srq != nullptr ? static_cast<transport::ReceiveQueue*>(init_.srq) : receive_ring_.get();
    return config;
}

int Qp::start() {
    if (const int error = make_rings(); error != 0) return error;
    transport::QpConfig machine_config = config();
    machine_config.owner = this;
    machine_config.number = adapter_.reserve_qp_number();
    if (machine_config.number == 0) return ENOMEM;
    machine_ = transport::QueuePair::make(machine_config, adapter_);
    if (machine_ == nullptr || !take_slot()) {
        adapter_.release_qp_number(machine_config.number);
        return machine_ == nullptr ? EOPNOTSUPP : ENOMEM;
    }
    if (send_ring_ != nullptr) send_ring_->set_machine(*machine_);
    number_ = machine_config.number;
    adapter_.add_qp(*this);
    return 0;
}

bool Qp::take_slot() {
    slot_ = kNoSlot;
    if (send_ring_ == nullptr && receive_ring_ == nullptr) return true;  // nothing to ring for
    const auto slot = init_.client->take_slot(*this);
    if (slot) slot_ = *slot;
    return slot.has_value();
}

void Qp::raise(transport::QpEvent event) {
    // The only event of a work queue is that it has failed.
    const std::uint32_t type = init_.work_queue ? kEventWqFatal : static_cast<std::uint32_t>(event);
    for (QpHolder* holder : holders_) holder->client->raise(type, holder->user_handle, &holder->async_events);
}

void Qp::note_state() {
    if (receive_ring_ == nullptr) return;
    // In the error state receives are flushed as they are posted: the client must ring for them.
    const bool error = machine_->state() == transport::QpState::kError;
    receive_ring_->slots().control().need_doorbell.store(error ? 1 : 0, std::memory_order_seq_cst);
}

ipc::QpReply Qp::description() const {
    ipc::QpReply reply{};
    reply.qp_number = number_;
    reply.slot = slot_;
    if (send_ring_ != nullptr) reply.send = send_ring_->location();
    if (receive_ring_ != nullptr) reply.receive = receive_ring_->slots().location();
    return reply;
}

}  // namespace uib::verbs
