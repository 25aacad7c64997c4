// The names, and the proof that the helpers of opcode.h say what the table says.
#include "net/wire/opcode_table.h"

#include "net/wire/text.h"

namespace uib::net {
namespace {

constexpr bool helpers_agree() {
    for (const OperationRow& row : kOperationRows) {
        const Operation operation = row.operation;
        if (has_immediate(operation) != ((row.headers & kImmDt) != 0)) return false;
        if (has_invalidate(operation) != ((row.headers & kIeth) != 0)) return false;
        if (is_atomic(operation) != ((row.headers & kAtomicEth) != 0)) return false;
        if (is_response(operation) && (row.services & kOnUc) != 0) return false;
        // An AETH is in every response but the middle of a READ's.
        const bool aeth = is_response(operation) && operation != Operation::kReadResponseMiddle;
        if (aeth != ((row.headers & kAeth) != 0)) return false;
        // WRITEs name their place in the first packet, as do READ requests and atomic writes.
        const bool begins_write = is_write(operation) && !is_middle(operation) && !is_last(operation);
        const bool reth =
            begins_write || operation == Operation::kReadRequest || operation == Operation::kAtomicWrite;
        if (reth != ((row.headers & kReth) != 0)) return false;
        if ((is_send(operation) || is_write(operation)) && !row.payload) return false;
    }
    return true;
}
static_assert(helpers_agree());
// 7.7.8: the longest headers of all are the RD atomic's, 106 bytes with LRH, GRH, BTH and both CRCs.
static_assert(8 + 40 + 12 + kOpcodes[opcode(Service::kRd, Operation::kCompareSwap)].extension_bytes + 4 + 2 ==
              106);

}  // namespace

const char* name_of(Service service) {
    switch (service) {
        case Service::kRc:
            return "RC";
        case Service::kUc:
            return "UC";
        case Service::kRd:
            return "RD";
        case Service::kUd:
            return "UD";
        case Service::kCnp:
            return "CNP";
        case Service::kXrc:
            return "XRC";
    }
    return "vendor";
}

std::string opcode_name(std::uint8_t code) {
    const OpcodeInfo& info = kOpcodes[code];
    std::string name = std::string(name_of(service_of(code))) + " " + info.operation;
    if (!info.defined) append(name, " 0x%02x", code);
    return name;
}

}  // namespace uib::net
