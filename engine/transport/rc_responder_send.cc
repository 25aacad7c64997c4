// SEND, with immediate, with invalidate (IBA 9.4.1, 9.7.4.1.6, 9.7.5.1; invalidate: 9.4.1.1.3, classes J
// and M).
#include "engine/transport/opcodes.h"
#include "engine/transport/rc_responder.h"

namespace uib::transport {

void RcResponder::on_send(const net::Packet& packet) {
    const net::Operation operation = packet.bth.operation();
    if (starts_message(operation)) {
        if (!take_receive()) return;
        // A requester without credits sends one packet and waits to be acknowledged (C9-163).
        peer_may_wait_ = net::is_first(operation) && packet.bth.ack_req;
    }
    if (!length_fits(operation, packet.payload.size(), machine_.mtu())) {
        refuse(kBadLength);
        return;
    }
    switch (machine_.receive().put(packet.payload, is_only(operation))) {
        case ReceiveMessage::Put::kDone:
            break;
        case ReceiveMessage::Put::kTooLong:
            refuse(kLongerThanReceive);
            return;
        case ReceiveMessage::Put::kProtection:
            refuse(kReceiveBuffer);
            return;
    }
    if (ends_message(operation)) {
        finish_send(packet);
    } else {
        open_ = Open::kSend;
        executed(packet);
    }
}

// The SEND is executed and acknowledged whatever becomes of its invalidation (o9-5.2.1, o9-162.2.1), which
// comes before the completion.
void RcResponder::finish_send(const net::Packet& packet) {
    if (!flush_writes()) return;
    open_ = Open::kNone;
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
            machine_.keys().remote_invalidate(pd_, machine_.number(), packet.invalidate_key);
        if (error != memory::AccessError::kNone) {
            ++machine_.count().remote_invalidate_errors;
            ack_pending_ = true;
            machine_.receive().fail(Status::kLocalAccess, static_cast<std::uint16_t>(error));
            if (xrc_) raise(QpEvent::kAccessError);
            machine_.enter_error();
            return;
        }
        completion.flags |= ipc::kCqeInvalidate;
        completion.immediate = packet.invalidate_key;
    }
    machine_.receive().complete(completion);
}

}  // namespace uib::transport
