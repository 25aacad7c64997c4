// Inbound requests of UC (IBA 9.8.2.2, Table 54, classes A, D, D1, E of 9.9.3).
#include "engine/transport/opcodes.h"
#include "engine/transport/uc_queue_pair.h"

namespace uib::transport {

using net::Operation;

void UcQueuePair::on_request(const net::Packet& packet) {
    const Operation operation = packet.bth.operation();
    const bool send = net::is_send(operation) && !net::has_invalidate(operation);
    if (!send && !net::is_write(operation)) {
        drop(counters_.invalid_requests, Status::kRemoteInvalidRequest);
        return;
    }
    if (starts_message(operation)) {
        if (open_ != Open::kNone) drop(counters_.dropped_sequence, Status::kRemoteInvalidRequest);
    } else if (!continues(packet)) {
        drop(counters_.dropped_sequence, Status::kRemoteInvalidRequest);
        return;
    }
    epsn_ = psn_add(packet.bth.psn, 1);
    // C9-199: such a packet counts as one with an invalid opcode.
    if (packet.bth.pad != 0 && !ends_message(operation)) {
        drop(counters_.padding_errors, Status::kRemoteInvalidRequest);
        return;
    }
    if (!length_fits(operation, packet.payload.size(), mtu())) {
        drop(counters_.dropped_length, Status::kRemoteInvalidRequest);
        return;
    }
    if (send) {
        on_send(packet);
    } else {
        on_write(packet);
    }
}

// Middle and Last: the expected PSN of an open message of this operation.
bool UcQueuePair::continues(const net::Packet& packet) {
    const Open wanted = net::is_send(packet.bth.operation()) ? Open::kSend : Open::kWrite;
    return packet.bth.psn == epsn_ && open_ == wanted;
}

// Ends the message in progress, if there is one, and counts.
void UcQueuePair::drop(std::uint64_t& cause, Status status) {
    ++cause;
    open_ = Open::kNone;
    if (!receive().in_use()) return;
    if (receive_queue()->shared()) {
        receive().fail(status);
    } else {
        receive().reuse();
    }
}

// Class A.
void UcQueuePair::local_fault(Status status) {
    open_ = Open::kNone;
    receive_fault(status);
}

bool UcQueuePair::take_receive() {
    const ReceiveMessage::Take taken = receive().take();
    if (taken == ReceiveMessage::Take::kTaken) return true;
    if (taken == ReceiveMessage::Take::kMalformed || receive().queue_failed())
        local_fault(Status::kLocalQpOperation);
    else
        drop(counters_.dropped_no_receive, Status::kRemoteInvalidRequest);
    return false;
}

void UcQueuePair::on_send(const net::Packet& packet) {
    const Operation operation = packet.bth.operation();
    if (starts_message(operation) && !take_receive()) return;
    switch (receive().put(packet.payload, is_only(operation))) {
        case ReceiveMessage::Put::kDone:
            break;
        case ReceiveMessage::Put::kTooLong:
            drop(counters_.dropped_length, Status::kLocalLength);
            return;
        case ReceiveMessage::Put::kProtection:
            local_fault(Status::kLocalProtection);
            return;
    }
    open_ = Open::kSend;
    if (ends_message(operation)) complete(packet);
}

void UcQueuePair::on_write(const net::Packet& packet) {
    const Operation operation = packet.bth.operation();
    if ((parameters_.access & ipc::kAccessRemoteWrite) == 0) {
        drop(counters_.dropped_access, Status::kRemoteInvalidRequest);
        return;
    }
    if (net::has_immediate(operation) && !take_receive()) return;
    if (starts_message(operation)) {
        write_address_ = packet.reth.address;
        write_rkey_ = packet.reth.rkey;
        write_length_ = write_rest_ = packet.reth.dma_length;
    }
    const std::size_t length = packet.payload.size();
    const bool ends = ends_message(operation);
    if (write_length_ > kMaxMessageBytes || (ends ? length != write_rest_ : length > write_rest_)) {
        drop(counters_.dropped_length, Status::kRemoteInvalidRequest);
        return;
    }
    if (!write_payload(packet)) {
        drop(counters_.remote_access_errors, Status::kLocalAccess);
        return;
    }
    open_ = Open::kWrite;
    if (!ends) return;
    if (net::has_immediate(operation)) {
        complete(packet);
    } else {
        open_ = Open::kNone;
    }
}

bool UcQueuePair::write_payload(const net::Packet& packet) {
    const auto length = static_cast<std::uint32_t>(packet.payload.size());
    if (length == 0) return true;
    const bool starts = starts_message(packet.bth.operation());
    memory::Checked checked = keys().check_remote(pd(), number(), write_rkey_, write_address_,
                                                  starts ? write_rest_ : length, ipc::kAccessRemoteWrite);
    if (!checked.ok()) return false;
    checked.slice.length = length;
    mover().scatter(number(), checked.slice, packet.payload);
    write_address_ += length;
    write_rest_ -= length;
    return true;
}

void UcQueuePair::complete(const net::Packet& packet) {
    const Operation operation = packet.bth.operation();
    open_ = Open::kNone;
    if (!flush_writes()) {
        local_fault(Status::kLocalProtection);
        return;
    }
    Completion completion;
    if (packet.bth.solicited) completion.flags |= ipc::kCqeSolicited;
    if (net::has_immediate(operation)) {
        completion.flags |= ipc::kCqeImmediate;
        completion.immediate = packet.immediate;
    }
    if (net::is_write(operation)) {
        completion.opcode = static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceiveRdmaWithImmediate);
        completion.byte_len = write_length_;
    }
    receive().complete(completion);
}

}  // namespace uib::transport
