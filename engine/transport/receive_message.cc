// Placement of received payload (IBA 9.7.4.1.6 buffer length, 10.8.3.1 scatter, 9.9.3 classes A, D1, E).
#include "engine/transport/receive_message.h"

#include <algorithm>
#include <cstring>

#include "engine/memory/guarded_copy.h"
#include "engine/transport/machine.h"

namespace uib::transport {

ReceiveMessage::ReceiveMessage(Machine& machine)
    : machine_(machine),
      owner_(machine.number()),
      source_{machine.receive_queue(), machine.pd(), machine.config().client, 0} {}

void ReceiveMessage::draw_from(const XrcReceiveQueue& queue) {
    source_ = queue;
}

ReceiveMessage::Take ReceiveMessage::take() {
    if (!kept_ && (source_.queue == nullptr || !source_.queue->take(request_))) return Take::kNone;
    in_use_ = true;
    kept_ = false;
    inlined_ = false;
    entry_ = 0;
    entry_offset_ = 0;
    received_ = 0;
    return request_.malformed ? Take::kMalformed : Take::kTaken;
}

bool ReceiveMessage::queue_failed() const {
    return source_.queue != nullptr && source_.queue->failed();
}

ReceiveMessage::Put ReceiveMessage::put(std::span<const std::byte> payload, bool whole) {
    const std::size_t length = payload.size();
    if (length > request_.length - received_) return Put::kTooLong;
    if (length == 0) return Put::kDone;
    if (whole && length <= ipc::kAutoInlineBytes && length <= request_.inline_area.size()) {
        const Entries entries = check_entries(length);
        if (entries == Entries::kRefused) return Put::kProtection;
        if (entries == Entries::kInline) {
            if (!memory::guarded_copy(request_.inline_area.data(), payload.data(), length))
                return Put::kProtection;
            inlined_ = true;
            received_ = length;
            return Put::kDone;
        }
    }
    return scatter(payload) ? Put::kDone : Put::kProtection;
}

ReceiveMessage::Put ReceiveMessage::put_datagram(std::span<const std::byte> grh,
                                                 std::span<const std::byte> payload) {
    const std::size_t length = net::kGrhBytes + payload.size();
    if (length > request_.length) return Put::kTooLong;
    if (length <= ipc::kAutoInlineBytes && length <= request_.inline_area.size()) {
        static constexpr std::byte kZeros[net::kGrhBytes]{};
        std::byte* to = request_.inline_area.data();
        const Entries entries = check_entries(length);
        if (entries == Entries::kRefused) return Put::kProtection;
        if (entries == Entries::kInline) {
            if (!memory::guarded_copy(to, grh.empty() ? kZeros : grh.data(), net::kGrhBytes) ||
                !memory::guarded_copy(to + net::kGrhBytes, payload.data(), payload.size()))
                return Put::kProtection;
            inlined_ = true;
            received_ = length;
            return Put::kDone;
        }
    }
    if (grh.empty()) {
        if (!skip(net::kGrhBytes)) return Put::kProtection;
    } else {
        const std::span<std::byte> kept = machine_.mover().stage(net::kGrhBytes);
        if (kept.size() != net::kGrhBytes) return Put::kProtection;
        std::memcpy(kept.data(), grh.data(), net::kGrhBytes);
        if (!scatter(kept)) return Put::kProtection;
    }
    return scatter(payload) ? Put::kDone : Put::kProtection;
}

bool ReceiveMessage::scatter(std::span<const std::byte> payload) {
    while (!payload.empty()) {
        const ipc::ScatterGatherEntry& entry = request_.sge[entry_];
        const std::size_t part = std::min<std::size_t>(payload.size(), entry.length - entry_offset_);
        if (part > 0) {
            const memory::Checked checked = machine_.keys().check_local(
                source_.pd, entry.lkey, entry.address + entry_offset_, part, true);
            if (!checked.ok()) return false;
            machine_.mover().scatter(owner_, checked.slice, payload.first(part));
            payload = payload.subspan(part);
            received_ += part;
            entry_offset_ += static_cast<std::uint32_t>(part);
        }
        if (entry_offset_ == entry.length) {
            ++entry_;
            entry_offset_ = 0;
        }
    }
    return true;
}

// Steps over bytes that are part of the message but have no value (a datagram's GRH area without a GRH).
bool ReceiveMessage::skip(std::uint64_t length) {
    if (check_entries(length) == Entries::kRefused) return false;
    received_ += length;
    while (length > 0) {
        const std::uint64_t part =
            std::min<std::uint64_t>(length, request_.sge[entry_].length - entry_offset_);
        length -= part;
        entry_offset_ += static_cast<std::uint32_t>(part);
        if (entry_offset_ == request_.sge[entry_].length) {
            ++entry_;
            entry_offset_ = 0;
        }
    }
    return true;
}

// The client puts inline payload in place itself; the keys it named are checked all the same. Regions that
// its provider cannot reach (imported from another process, dma-bufs) are written by the engine.
ReceiveMessage::Entries ReceiveMessage::check_entries(std::uint64_t length) const {
    Entries result = Entries::kInline;
    for (std::uint32_t entry = 0; length > 0; ++entry) {
        const ipc::ScatterGatherEntry& at = request_.sge[entry];
        const std::uint64_t part = std::min<std::uint64_t>(length, at.length);
        length -= part;
        if (part == 0) continue;
        const memory::Checked checked =
            machine_.keys().check_local(source_.pd, at.lkey, at.address, part, true);
        if (!checked.ok()) return Entries::kRefused;
        if (checked.slice.region->placing_client() != source_.client) result = Entries::kScatter;
    }
    return result;
}

void ReceiveMessage::complete(Completion completion) {
    in_use_ = false;
    kept_ = false;
    completion.wr_id = request_.wr_id;
    completion.wqe_index = request_.slot;
    completion.flags |= ipc::kCqeReceive;
    if (inlined_ && completion.status == Status::kSuccess) completion.flags |= ipc::kCqeInline;
    completion.xrc_srq = source_.number;
    // The queue of an XRC SRQ may be gone by now; that it was shared is known.
    if (source_.number != 0 || source_.queue->shared()) completion.flags |= ipc::kCqeSrq;
    if (completion.opcode == 0) {
        completion.opcode = static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceive);
        completion.byte_len = static_cast<std::uint32_t>(received_);
    }
    machine_.complete_receive(completion);
}

void ReceiveMessage::fail(Status status, std::uint16_t vendor_error) {
    if (!in_use_ && !kept_) return;
    if (kept_) received_ = 0;
    Completion completion;
    completion.status = status;
    completion.vendor_error = vendor_error;
    complete(completion);
}

void ReceiveMessage::reuse() {
    if (!in_use_) return;
    in_use_ = false;
    kept_ = true;
}

}  // namespace uib::transport
