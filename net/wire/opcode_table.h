// What each BTH operation code is: its name, the headers behind the BTH, and whether a payload may follow
// (IBA 9.2.1 and Table 38; transport-tables.md, section 1).
//
// kOperationRows is the table as the specification prints it; kOpcodes is the same by code, with the headers
// that the service adds. Extension headers lie in a packet in the order of the bits of `Header`. A reserved
// code of a known service keeps the headers that the service adds, because the receiver has to find the
// destination (EE context, XRC SRQ, source QP) before it may say that the code is reserved.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/wire/opcode.h"

namespace uib::net {

/// Set of extension headers; the order of the bits is the order on the wire.
enum Header : std::uint16_t {
    kRdeth = 1U << 0,
    kDeth = 1U << 1,
    kXrceth = 1U << 2,
    kReth = 1U << 3,
    kAtomicEth = 1U << 4,
    kAeth = 1U << 5,
    kAtomicAckEth = 1U << 6,
    kImmDt = 1U << 7,
    kIeth = 1U << 8,
};
/// Bytes of each header, in the order of the bits of Header.
inline constexpr std::array<std::uint8_t, 9> kExtensionHeaderBytes{4, 8, 4, 16, 28, 4, 8, 4, 4};

/// Services that define an operation, as bits 1 << Service.
constexpr std::uint8_t service_bit(Service service) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(service));
}
inline constexpr std::uint8_t kOnRc = service_bit(Service::kRc);
inline constexpr std::uint8_t kOnUc = service_bit(Service::kUc);
inline constexpr std::uint8_t kOnRd = service_bit(Service::kRd);
inline constexpr std::uint8_t kOnUd = service_bit(Service::kUd);
inline constexpr std::uint8_t kOnXrc = service_bit(Service::kXrc);
inline constexpr std::uint8_t kOnReliable = kOnRc | kOnRd | kOnXrc;
inline constexpr std::uint8_t kOnConnected = kOnReliable | kOnUc;

struct OperationRow {
    Operation operation;
    const char* name;
    std::uint16_t headers;  ///< those of the operation itself
    bool payload;           ///< may carry one
    std::uint8_t services;
};

// clang-format off
inline constexpr OperationRow kOperationRows[] = {
    {Operation::kSendFirst, "SEND First", 0, true, kOnConnected},
    {Operation::kSendMiddle, "SEND Middle", 0, true, kOnConnected},
    {Operation::kSendLast, "SEND Last", 0, true, kOnConnected},
    {Operation::kSendLastImmediate, "SEND Last with Immediate", kImmDt, true, kOnConnected},
    {Operation::kSendOnly, "SEND Only", 0, true, kOnConnected | kOnUd},
    {Operation::kSendOnlyImmediate, "SEND Only with Immediate", kImmDt, true, kOnConnected | kOnUd},
    {Operation::kWriteFirst, "RDMA WRITE First", kReth, true, kOnConnected},
    {Operation::kWriteMiddle, "RDMA WRITE Middle", 0, true, kOnConnected},
    {Operation::kWriteLast, "RDMA WRITE Last", 0, true, kOnConnected},
    {Operation::kWriteLastImmediate, "RDMA WRITE Last with Immediate", kImmDt, true, kOnConnected},
    {Operation::kWriteOnly, "RDMA WRITE Only", kReth, true, kOnConnected},
    {Operation::kWriteOnlyImmediate, "RDMA WRITE Only with Immediate", kReth | kImmDt, true, kOnConnected},
    {Operation::kReadRequest, "RDMA READ Request", kReth, false, kOnReliable},
    {Operation::kReadResponseFirst, "RDMA READ Response First", kAeth, true, kOnReliable},
    {Operation::kReadResponseMiddle, "RDMA READ Response Middle", 0, true, kOnReliable},
    {Operation::kReadResponseLast, "RDMA READ Response Last", kAeth, true, kOnReliable},
    {Operation::kReadResponseOnly, "RDMA READ Response Only", kAeth, true, kOnReliable},
    {Operation::kAcknowledge, "Acknowledge", kAeth, false, kOnReliable},
    {Operation::kAtomicAcknowledge, "ATOMIC Acknowledge", kAeth | kAtomicAckEth, false, kOnReliable},
    {Operation::kCompareSwap, "CmpSwap", kAtomicEth, false, kOnReliable},
    {Operation::kFetchAdd, "FetchAdd", kAtomicEth, false, kOnReliable},
    {Operation::kResync, "RESYNC", 0, false, kOnRd},
    {Operation::kSendLastInvalidate, "SEND Last with Invalidate", kIeth, true, kOnRc | kOnXrc},
    {Operation::kSendOnlyInvalidate, "SEND Only with Invalidate", kIeth, true, kOnRc | kOnXrc},
    {Operation::kAtomicWrite, "ATOMIC WRITE", kReth, true, kOnReliable},
};
// clang-format on

struct OpcodeInfo {
    std::uint16_t headers = 0;           ///< set of Header
    std::uint8_t extension_bytes = 0;    ///< of all of them
    bool payload = true;                 ///< may carry one
    bool defined = false;                ///< not reserved
    const char* operation = "reserved";  ///< name without the service
};

/// Headers that the service itself puts in front of the operation's.
constexpr std::uint16_t service_headers(Service service, bool response) {
    switch (service) {
        case Service::kRd:
            return response ? kRdeth : kRdeth | kDeth;
        case Service::kUd:
            return kDeth;
        case Service::kXrc:
            return response ? 0 : kXrceth;
        default:
            return 0;
    }
}

constexpr OpcodeInfo make_opcode_info(std::uint8_t code) {
    const Service service = service_of(code);
    OpcodeInfo info;
    info.headers = service_headers(service, is_response(operation_of(code)));
    for (const OperationRow& row : kOperationRows) {
        if (row.operation != operation_of(code) || (row.services & service_bit(service)) == 0) continue;
        info.headers |= row.headers;
        info.payload = row.payload;
        info.defined = true;
        info.operation = row.name;
    }
    // Annex A10 on InfiniBand, Annex A17 on RoCEv2: 16 reserved bytes behind the BTH.
    if (code == 0x80 || code == 0x81) {
        info.defined = true;
        info.operation = "congestion notification";
    }
    for (std::size_t bit = 0; bit < kExtensionHeaderBytes.size(); ++bit)
        if ((info.headers >> bit & 1) != 0) info.extension_bytes += kExtensionHeaderBytes[bit];
    return info;
}

inline constexpr std::array<OpcodeInfo, 256> kOpcodes = [] {
    std::array<OpcodeInfo, 256> table;
    for (unsigned code = 0; code < table.size(); ++code)
        table[code] = make_opcode_info(static_cast<std::uint8_t>(code));
    return table;
}();

/// "RC", "UC", "RD", "UD", "CNP", "XRC", "vendor".
const char* name_of(Service service);
/// E.g. "RC RDMA WRITE Only", "UD reserved 0x66".
std::string opcode_name(std::uint8_t code);

}  // namespace uib::net
