// BTH operation codes (IBA 9.2.1, Table 38): service in bits 7:5, operation in bits 4:0.
#pragma once

#include <cstdint>

namespace uib::net {

enum class Service : std::uint8_t { kRc = 0, kUc = 1, kRd = 2, kUd = 3, kCnp = 4, kXrc = 5 };

enum class Operation : std::uint8_t {
    kSendFirst = 0x00,
    kSendMiddle = 0x01,
    kSendLast = 0x02,
    kSendLastImmediate = 0x03,
    kSendOnly = 0x04,
    kSendOnlyImmediate = 0x05,
    kWriteFirst = 0x06,
    kWriteMiddle = 0x07,
    kWriteLast = 0x08,
    kWriteLastImmediate = 0x09,
    kWriteOnly = 0x0A,
    kWriteOnlyImmediate = 0x0B,
    kReadRequest = 0x0C,
    kReadResponseFirst = 0x0D,
    kReadResponseMiddle = 0x0E,
    kReadResponseLast = 0x0F,
    kReadResponseOnly = 0x10,
    kAcknowledge = 0x11,
    kAtomicAcknowledge = 0x12,
    kCompareSwap = 0x13,
    kFetchAdd = 0x14,
    kResync = 0x15,
    kSendLastInvalidate = 0x16,
    kSendOnlyInvalidate = 0x17,
    kAtomicWrite = 0x1D,  ///< IBA 1.7: RETH and 8 bytes of payload; answered by an empty READ response (Only)
};

constexpr std::uint8_t opcode(Service service, Operation operation) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(service) << 5 | static_cast<unsigned>(operation));
}
constexpr Service service_of(std::uint8_t code) {
    return static_cast<Service>(code >> 5);
}
constexpr Operation operation_of(std::uint8_t code) {
    return static_cast<Operation>(code & 0x1F);
}

/// True for operations that travel from responder to requester.
constexpr bool is_response(Operation operation) {
    return operation >= Operation::kReadResponseFirst && operation <= Operation::kAtomicAcknowledge;
}
constexpr bool is_send(Operation operation) {
    return operation <= Operation::kSendOnlyImmediate || operation == Operation::kSendLastInvalidate ||
           operation == Operation::kSendOnlyInvalidate;
}
constexpr bool is_write(Operation operation) {
    return operation >= Operation::kWriteFirst && operation <= Operation::kWriteOnlyImmediate;
}
constexpr bool is_atomic(Operation operation) {
    return operation == Operation::kCompareSwap || operation == Operation::kFetchAdd;
}
constexpr bool is_first(Operation operation) {
    return operation == Operation::kSendFirst || operation == Operation::kWriteFirst;
}
constexpr bool is_middle(Operation operation) {
    return operation == Operation::kSendMiddle || operation == Operation::kWriteMiddle;
}
constexpr bool is_last(Operation operation) {
    return operation == Operation::kSendLast || operation == Operation::kSendLastImmediate ||
           operation == Operation::kSendLastInvalidate || operation == Operation::kWriteLast ||
           operation == Operation::kWriteLastImmediate;
}
constexpr bool has_immediate(Operation operation) {
    return operation == Operation::kSendLastImmediate || operation == Operation::kSendOnlyImmediate ||
           operation == Operation::kWriteLastImmediate || operation == Operation::kWriteOnlyImmediate;
}
constexpr bool has_invalidate(Operation operation) {
    return operation == Operation::kSendLastInvalidate || operation == Operation::kSendOnlyInvalidate;
}

}  // namespace uib::net
