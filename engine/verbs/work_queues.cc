#include "engine/verbs/work_queues.h"

#include <cstring>
#include <new>

namespace uib::verbs {

namespace {

constexpr std::uint32_t kSrqNumberMask = 0xFFFFFF;   // as XRCETH has it
constexpr std::uint32_t kEventSrqError = 14;         // IBV_EVENT_SRQ_ERR
constexpr std::uint32_t kEventSrqLimitReached = 15;  // IBV_EVENT_SRQ_LIMIT_REACHED

constexpr std::uint32_t payload_offset(transport::Service service) {
    return service == transport::Service::kUd ? ipc::kDatagramPayloadOffset : ipc::kSendPayloadOffset;
}

bool opcode_allowed(transport::Service service, ipc::WorkOpcode opcode) {
    using ipc::WorkOpcode;
    using transport::Service;
    if (service == Service::kXrcTarget) return false;
    if (service == Service::kRaw) return opcode == WorkOpcode::kSend;
    switch (opcode) {
        case WorkOpcode::kSend:
        case WorkOpcode::kSendWithImmediate:
            return true;
        case WorkOpcode::kRdmaWrite:
        case WorkOpcode::kRdmaWriteWithImmediate:
        case WorkOpcode::kBindWindow:
        case WorkOpcode::kLocalInvalidate:
            return service != Service::kUd;
        case WorkOpcode::kSendWithInvalidate:
        case WorkOpcode::kRdmaRead:
        case WorkOpcode::kCompareSwap:
        case WorkOpcode::kFetchAdd:
        case WorkOpcode::kAtomicWrite:
            return service == Service::kRc || service == Service::kXrcInitiator;
    }
    return false;
}

bool has_payload(ipc::WorkOpcode opcode) {
    return opcode != ipc::WorkOpcode::kBindWindow && opcode != ipc::WorkOpcode::kLocalInvalidate;
}

/// SENDs and RDMA WRITEs.
bool sends_payload(ipc::WorkOpcode opcode) {
    return opcode <= ipc::WorkOpcode::kRdmaWriteWithImmediate;
}

}  // namespace

// Send.

SendRing::SendRing(Client& client, transport::Service service, const RingShape& shape, bool signal_all)
    : client_(client), service_(service), shape_(shape), signal_all_(signal_all) {}

SendRing::~SendRing() {
    client_.arena().free(block_);
}

bool SendRing::allocate() {
    const auto block =
        client_.arena().allocate(sizeof(ipc::QueueControl) + std::size_t{shape_.entries} * shape_.stride);
    if (!block) return false;
    block_ = *block;
    new (block_.memory) ipc::QueueControl{};
    control().need_doorbell.store(1, std::memory_order_relaxed);
    return true;
}

void SendRing::reset() {
    consumed_ = 0;
    control().producer.store(0, std::memory_order_relaxed);
    control().need_doorbell.store(1, std::memory_order_seq_cst);
}

ipc::QueueLocation SendRing::location() const {
    ipc::Location slots = block_.location;
    slots.offset += sizeof(ipc::QueueControl);
    return {block_.location, slots, shape_.entries, shape_.stride, shape_.max_sge, shape_.max_inline};
}

std::uint32_t SendRing::producer() {
    const std::uint32_t producer = control().producer.load(std::memory_order_acquire);
    if (producer - consumed_ <= shape_.entries) return producer;
    if (machine_ != nullptr) consumed_ = machine_->send_consumed();
    if (producer - consumed_ > shape_.entries) {
        client_.condemn("send queue's producer index runs ahead of the queue");
        return consumed_;
    }
    return producer;
}

void SendRing::fetch(std::uint32_t index, transport::SendRequest& out) {
    const std::byte* slot =
        block_.memory + sizeof(ipc::QueueControl) + std::size_t{index & (shape_.entries - 1)} * shape_.stride;
    ipc::SendWqe wqe;
    std::memcpy(&wqe, slot, sizeof wqe);
    out.wr_id = wqe.wr_id;
    out.index = index;
    out.opcode = static_cast<ipc::WorkOpcode>(wqe.opcode);
    out.flags = static_cast<std::uint8_t>(wqe.flags | (signal_all_ ? ipc::kWorkSignaled : 0));
    out.bind_window_type = wqe.bind_window_type;
    out.immediate = wqe.immediate;
    out.rkey = wqe.rkey;
    out.remote_address = wqe.remote_address;
    out.compare_add = wqe.compare_add;
    out.swap = wqe.swap;
    out.window_handle = wqe.window_handle;
    out.length = 0;
    out.sge_count = 0;
    out.inline_data = {};
    out.malformed = wqe.opcode >= ipc::kWorkOpcodeCount || !opcode_allowed(service_, out.opcode);
    if (out.malformed) return;
    if (service_ == transport::Service::kUd) {
        out.remote_qpn = wqe.remote_qpn;
        out.remote_qkey = wqe.remote_qkey;
        std::memcpy(&out.address_vector, slot + ipc::kDatagramAddressOffset, sizeof out.address_vector);
    }
    if (service_ == transport::Service::kXrcInitiator) out.xrc_srq = wqe.remote_qpn & kSrqNumberMask;
    if (!has_payload(out.opcode)) return;
    if ((wqe.flags & ipc::kWorkStaged) != 0) {
        fetch_staged(wqe, out);
        return;
    }
    const std::byte* payload = slot + payload_offset(service_);
    if ((wqe.flags & ipc::kWorkInline) != 0) {
        if (wqe.inline_length > shape_.max_inline) {
            out.malformed = true;
            return;
        }
        out.length = wqe.inline_length;
        out.inline_data = {payload, wqe.inline_length};
        return;
    }
    if (wqe.sge_count > shape_.max_sge) {
        out.malformed = true;
        return;
    }
    std::memcpy(out.sge.data(), payload, wqe.sge_count * sizeof(ipc::ScatterGatherEntry));
    out.sge_count = wqe.sge_count;
    std::uint64_t length = 0;
    for (std::uint32_t i = 0; i < out.sge_count; ++i) length += out.sge[i].length;
    if (length > transport::kMaxMessageBytes) {
        out.malformed = true;
        return;
    }
    out.length = static_cast<std::uint32_t>(length);
}

// To the transport a staged payload is an inline one that lies elsewhere: memory of the arena, lent as it is.
void SendRing::fetch_staged(const ipc::SendWqe& wqe, transport::SendRequest& out) const {
    const auto bytes = client_.staged(wqe.staging_offset, wqe.inline_length);
    if (!sends_payload(out.opcode) || (wqe.flags & ipc::kWorkInline) != 0 || !bytes) {
        out.malformed = true;
        return;
    }
    out.flags |= ipc::kWorkInline;
    out.length = wqe.inline_length;
    out.inline_data = *bytes;
}

// Receive.

ReceiveSlots::ReceiveSlots(Client& client, const RingShape& shape, bool shared)
    : client_(client), shape_(shape), shared_(shared) {}

ReceiveSlots::~ReceiveSlots() {
    client_.arena().free(block_);
}

std::size_t ReceiveSlots::slots_offset() const {
    const std::size_t list = shared_ ? std::size_t{shape_.entries} * sizeof(std::uint32_t) : 0;
    return sizeof(ipc::QueueControl) + (list + ipc::kCacheLine - 1) / ipc::kCacheLine * ipc::kCacheLine;
}

bool ReceiveSlots::allocate() {
    const auto block = client_.arena().allocate(slots_offset() + std::size_t{shape_.entries} * shape_.stride);
    if (!block) return false;
    block_ = *block;
    new (block_.memory) ipc::QueueControl{};
    return true;
}

ipc::QueueLocation ReceiveSlots::location() const {
    ipc::Location slots = block_.location;
    slots.offset += slots_offset();
    return {block_.location, slots, shape_.entries, shape_.stride, shape_.max_sge, 0};
}

ipc::Location ReceiveSlots::available_location() const {
    ipc::Location list = block_.location;
    list.offset += sizeof(ipc::QueueControl);
    return list;
}

std::uint32_t ReceiveSlots::posted_slot(std::uint32_t index) const {
    const auto* list = reinterpret_cast<const std::uint32_t*>(block_.memory + sizeof(ipc::QueueControl));
    std::uint32_t slot = 0;
    std::memcpy(&slot, &list[index & (shape_.entries - 1)], sizeof slot);
    return slot;
}

void ReceiveSlots::read(std::uint32_t slot, transport::ReceiveRequest& out) const {
    std::byte* memory = block_.memory + slots_offset() + std::size_t{slot} * shape_.stride;
    ipc::ReceiveWqe wqe;
    std::memcpy(&wqe, memory, sizeof wqe);
    out.wr_id = wqe.wr_id;
    out.slot = slot;
    out.length = 0;
    out.sge_count = 0;
    out.malformed = wqe.sge_count > shape_.max_sge;
    out.inline_area = {memory + ipc::receive_inline_offset(shape_.max_sge), ipc::kAutoInlineBytes};
    if (out.malformed) return;
    std::memcpy(out.sge.data(), memory + ipc::kReceiveSgeOffset,
                wqe.sge_count * sizeof(ipc::ScatterGatherEntry));
    out.sge_count = wqe.sge_count;
    for (std::uint32_t i = 0; i < out.sge_count; ++i) out.length += out.sge[i].length;
}

void ReceiveRing::reset() {
    consumed_ = 0;
    slots_.control().producer.store(0, std::memory_order_relaxed);
    slots_.control().need_doorbell.store(0, std::memory_order_relaxed);
}

std::uint32_t ReceiveRing::available() {
    const std::uint32_t waiting = slots_.control().producer.load(std::memory_order_acquire) - consumed_;
    if (waiting <= slots_.shape().entries) return waiting;
    slots_.client().condemn("receive queue's producer index runs ahead of the queue");
    return 0;
}

bool ReceiveRing::take(transport::ReceiveRequest& out) {
    if (available() == 0) return false;
    slots_.read(consumed_ & (slots_.shape().entries - 1), out);
    ++consumed_;
    return true;
}

void SharedReceiveQueue::fail() {
    if (failed_) return;
    failed_ = true;
    slots_.client().raise(kEventSrqError, user_handle_, &async_events);
}

std::uint32_t SharedReceiveQueue::available() {
    if (failed_) return 0;
    const std::uint32_t waiting = slots_.control().producer.load(std::memory_order_acquire) - consumed_;
    if (waiting <= slots_.shape().entries) return waiting;
    slots_.client().condemn("shared receive queue's producer index runs ahead of the queue");
    return 0;
}

bool SharedReceiveQueue::take(transport::ReceiveRequest& out) {
    const std::uint32_t waiting = available();
    if (waiting == 0) return false;
    const std::uint32_t slot = slots_.posted_slot(consumed_);
    if (slot >= slots_.shape().entries) {
        slots_.client().condemn("shared receive queue's list names no slot");
        return false;
    }
    slots_.read(slot, out);
    ++consumed_;
    // One event when the count falls below the limit; the limit is then disarmed (IBA 11.2.3.3).
    if (limit_ != 0 && waiting - 1 < limit_) {
        limit_ = 0;
        slots_.client().raise(kEventSrqLimitReached, user_handle_, &async_events);
    }
    return true;
}

}  // namespace uib::verbs
