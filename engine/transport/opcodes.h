// From work requests to BTH operations, and where an operation stands in its message (IBA Tables 38, 43).
#pragma once

#include "engine/ipc/ring.h"
#include "net/wire/opcode.h"

namespace uib::transport {

/// The operation of a SEND's or WRITE's packet.
constexpr net::Operation packet_operation(ipc::WorkOpcode opcode, bool first, bool last) {
    using net::Operation;
    const bool write =
        opcode == ipc::WorkOpcode::kRdmaWrite || opcode == ipc::WorkOpcode::kRdmaWriteWithImmediate;
    if (!last) {
        if (write) return first ? Operation::kWriteFirst : Operation::kWriteMiddle;
        return first ? Operation::kSendFirst : Operation::kSendMiddle;
    }
    switch (opcode) {
        case ipc::WorkOpcode::kRdmaWrite:
            return first ? Operation::kWriteOnly : Operation::kWriteLast;
        case ipc::WorkOpcode::kRdmaWriteWithImmediate:
            return first ? Operation::kWriteOnlyImmediate : Operation::kWriteLastImmediate;
        case ipc::WorkOpcode::kSendWithImmediate:
            return first ? Operation::kSendOnlyImmediate : Operation::kSendLastImmediate;
        case ipc::WorkOpcode::kSendWithInvalidate:
            return first ? Operation::kSendOnlyInvalidate : Operation::kSendLastInvalidate;
        default:
            return first ? Operation::kSendOnly : Operation::kSendLast;
    }
}

/// True for requests that take a receive request at the responder.
constexpr bool uses_receive(ipc::WorkOpcode opcode) {
    return opcode == ipc::WorkOpcode::kSend || opcode == ipc::WorkOpcode::kSendWithImmediate ||
           opcode == ipc::WorkOpcode::kSendWithInvalidate ||
           opcode == ipc::WorkOpcode::kRdmaWriteWithImmediate;
}

constexpr bool is_only(net::Operation operation) {
    using net::Operation;
    return operation == Operation::kSendOnly || operation == Operation::kSendOnlyImmediate ||
           operation == Operation::kSendOnlyInvalidate || operation == Operation::kWriteOnly ||
           operation == Operation::kWriteOnlyImmediate;
}
/// First packet of a SEND or WRITE.
constexpr bool starts_message(net::Operation operation) {
    return net::is_first(operation) || is_only(operation);
}
/// Last packet of a SEND or WRITE.
constexpr bool ends_message(net::Operation operation) {
    return net::is_last(operation) || is_only(operation);
}

/// Payload length against position (C9-92): First and Middle a whole MTU, Last at least a byte.
constexpr bool length_fits(net::Operation operation, std::size_t length, std::size_t mtu) {
    if (net::is_first(operation) || net::is_middle(operation)) return length == mtu;
    if (net::is_last(operation)) return length >= 1 && length <= mtu;
    return length <= mtu;
}

}  // namespace uib::transport
