// SEND, with immediate, with invalidate (IBA 9.4.1, 9.7.4.1.6, 9.7.5.1; invalidate: 9.4.1.1.3, class J).
#include "engine/transport/aeth.h"
#include "engine/transport/opcodes.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::on_send(const net::Packet& packet) {
    const net::Operation operation = packet.bth.operation();
    const bool ends = ends_message(operation);
    if (starts_message(operation) && !take_receive()) return;
    if (!length_fits(operation, packet.payload.size(), machine_.mtu())) {
        refuse_packet(kNakInvalidRequest, Status::kRemoteInvalidRequest, QpEvent::kAccessError);
        return;
    }
    switch (machine_.receive().put(packet.payload, is_only(operation))) {
        case ReceiveMessage::Put::kDone:
            break;
        case ReceiveMessage::Put::kTooLong:
            refuse_packet(kNakInvalidRequest, Status::kLocalLength, QpEvent::kAccessError);
            return;
        case ReceiveMessage::Put::kProtection:
            refuse_packet(kNakRemoteOperation, Status::kLocalProtection, QpEvent::kFatal);
            return;
    }
    if (!ends) {
        open_ = Open::kSend;
        executed(packet);
        return;
    }
    open_ = Open::kNone;
    finish_send(packet);
}

bool RcResponder::finish_send(const net::Packet& packet) {
    if (!machine_.flush_writes()) {
        refuse_packet(kNakRemoteOperation, Status::kLocalProtection, QpEvent::kFatal);
        return false;
    }
    msn_ = psn_add(msn_, 1);
    executed(packet);
    Completion completion;
    if (packet.bth.solicited) completion.flags |= ipc::kCqeSolicited;
    if (net::has_immediate(packet.bth.operation())) {
        completion.flags |= ipc::kCqeImmediate;
        completion.immediate = packet.immediate;
    }
    if (net::has_invalidate(packet.bth.operation())) {
        const memory::AccessError error =
            machine_.keys().remote_invalidate(machine_.pd(), machine_.number(), packet.invalidate_key);
        if (error != memory::AccessError::kNone) {
            ack_pending_ = true;
            machine_.receive().fail(Status::kLocalAccess, static_cast<std::uint16_t>(error));
            machine_.enter_error();
            return false;
        }
        completion.flags |= ipc::kCqeInvalidate;
        completion.immediate = packet.invalidate_key;
    }
    machine_.receive().complete(completion);
    return true;
}

}  // namespace uib::transport
