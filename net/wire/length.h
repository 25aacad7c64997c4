// Bytes of a packet on an InfiniBand link, for the port's data counters and for limits (IBA 7.7, 9.2, 9.3).
#pragma once

#include <cstdint>

#include "net/wire/packet.h"

namespace uib::net {

/// Bytes of the extension headers that `opcode` calls for (transport-tables.md, section 1), RC, UC and UD.
constexpr std::uint32_t extension_bytes(std::uint8_t code) {
    const Operation operation = operation_of(code);
    std::uint32_t bytes = service_of(code) == Service::kUd ? 8 : 0;
    if (has_immediate(operation) || has_invalidate(operation)) bytes += 4;
    switch (operation) {
        case Operation::kWriteFirst:
        case Operation::kWriteOnly:
        case Operation::kWriteOnlyImmediate:
        case Operation::kReadRequest:
            return bytes + 16;
        case Operation::kReadResponseFirst:
        case Operation::kReadResponseLast:
        case Operation::kReadResponseOnly:
        case Operation::kAcknowledge:
            return bytes + 4;
        case Operation::kAtomicAcknowledge:
            return bytes + 12;
        case Operation::kCompareSwap:
        case Operation::kFetchAdd:
            return bytes + 28;
        default:
            return bytes;
    }
}

/// LRH to ICRC, padded to whole words; the VCRC is not counted (LRH:PktLen does not count it either).
constexpr std::uint32_t packet_bytes(const Packet& packet) {
    const auto payload = static_cast<std::uint32_t>(packet.payload.size());
    return 8 + (packet.has_grh ? kGrhBytes : 0) + 12 + extension_bytes(packet.bth.opcode) +
           (payload + 3) / 4 * 4 + 4;
}

}  // namespace uib::net
