#include "net/wire/mad.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "net/wire/bytes.h"
#include "net/wire/text.h"

namespace uib::net {
namespace {

// Places of the fields of an SMP.
constexpr std::size_t kMkeyAt = 24;
constexpr std::size_t kDirectedSlidAt = 32;
constexpr std::size_t kDirectedDlidAt = 34;
constexpr std::size_t kDataAt = 64;
constexpr std::size_t kInitialPathAt = 128;
constexpr std::size_t kReturnPathAt = 192;
constexpr std::uint16_t kDirectionBit = 0x8000;  // of the status

}  // namespace

void build_mad_header(const MadHeader& header, std::span<std::byte, kMadHeaderBytes> out) {
    out[0] = std::byte{header.base_version};
    out[1] = std::byte{header.management_class};
    out[2] = std::byte{header.class_version};
    out[3] = static_cast<std::byte>(header.method);
    store_be<2>(&out[4], header.status);
    store_be<2>(&out[6], header.class_specific);
    store_be<8>(&out[8], header.transaction_id);
    store_be<2>(&out[16], header.attribute_id);
    store_be<2>(&out[18], std::uint16_t{0});
    store_be<4>(&out[20], header.attribute_modifier);
}

MadHeader parse_mad_header(std::span<const std::byte, kMadHeaderBytes> in) {
    return {.base_version = std::to_integer<std::uint8_t>(in[0]),
            .management_class = std::to_integer<std::uint8_t>(in[1]),
            .class_version = std::to_integer<std::uint8_t>(in[2]),
            .method = static_cast<MadMethod>(in[3]),
            .status = load_be<std::uint16_t>(&in[4]),
            .class_specific = load_be<std::uint16_t>(&in[6]),
            .transaction_id = load_be<std::uint64_t>(&in[8]),
            .attribute_id = load_be<std::uint16_t>(&in[16]),
            .attribute_modifier = load_be<std::uint32_t>(&in[20])};
}

MadError parse_mad(std::span<const std::byte> mad, MadHeader& out) {
    if (mad.size() != kMadBytes) return MadError::kLength;
    out = parse_mad_header(mad.first<kMadHeaderBytes>());
    return MadError::kNone;
}

void build_smp(const Smp& smp, std::span<std::byte, kMadBytes> out) {
    std::fill(out.begin(), out.end(), std::byte{0});
    MadHeader header = smp.header;
    const DirectedRoute& route = smp.route;
    if (smp.is_directed()) {
        header.status = static_cast<std::uint16_t>((header.status & ~kDirectionBit) |
                                                   (route.returning ? kDirectionBit : 0));
        header.class_specific = static_cast<std::uint16_t>(route.hop_pointer << 8 | route.hop_count);
        store_be<2>(&out[kDirectedSlidAt], route.slid);
        store_be<2>(&out[kDirectedDlidAt], route.dlid);
        std::memcpy(&out[kInitialPathAt], route.initial_path.data(), kSmpPathEntries);
        std::memcpy(&out[kReturnPathAt], route.return_path.data(), kSmpPathEntries);
    }
    build_mad_header(header, out.first<kMadHeaderBytes>());
    store_be<8>(&out[kMkeyAt], smp.mkey);
    std::memcpy(&out[kDataAt], smp.data.data(), kSmpDataBytes);
}

MadError parse_smp(std::span<const std::byte> mad, Smp& out) {
    out = Smp{};
    const MadError error = parse_mad(mad, out.header);
    if (error != MadError::kNone) return error;
    const std::uint8_t management_class = out.header.management_class;
    if (management_class != kClassSubnLidRouted && management_class != kClassSubnDirected)
        return MadError::kClass;
    out.mkey = load_be<std::uint64_t>(&mad[kMkeyAt]);
    std::memcpy(out.data.data(), &mad[kDataAt], kSmpDataBytes);
    if (!out.is_directed()) return MadError::kNone;
    DirectedRoute& route = out.route;
    route.returning = (out.header.status & kDirectionBit) != 0;
    out.header.status &= static_cast<std::uint16_t>(~kDirectionBit);
    route.hop_pointer = static_cast<std::uint8_t>(out.header.class_specific >> 8);
    route.hop_count = static_cast<std::uint8_t>(out.header.class_specific);
    route.slid = load_be<std::uint16_t>(&mad[kDirectedSlidAt]);
    route.dlid = load_be<std::uint16_t>(&mad[kDirectedDlidAt]);
    std::memcpy(route.initial_path.data(), &mad[kInitialPathAt], kSmpPathEntries);
    std::memcpy(route.return_path.data(), &mad[kReturnPathAt], kSmpPathEntries);
    return route.hop_count < kSmpPathEntries ? MadError::kNone : MadError::kHopCount;
}

const char* name_of(MadError error) {
    switch (error) {
        case MadError::kNone:
            return "none";
        case MadError::kLength:
            return "length";
        case MadError::kClass:
            return "class";
        case MadError::kHopCount:
            return "hop_count";
    }
    return "unknown";
}

const char* name_of(MadMethod method) {
    switch (method) {
        case MadMethod::kGet:
            return "Get";
        case MadMethod::kSet:
            return "Set";
        case MadMethod::kSend:
            return "Send";
        case MadMethod::kTrap:
            return "Trap";
        case MadMethod::kReport:
            return "Report";
        case MadMethod::kTrapRepress:
            return "TrapRepress";
        case MadMethod::kGetTable:
            return "GetTable";
        case MadMethod::kDelete:
            return "Delete";
        case MadMethod::kGetResponse:
            return "GetResp";
        case MadMethod::kReportResponse:
            return "ReportResp";
        case MadMethod::kGetTableResponse:
            return "GetTableResp";
        case MadMethod::kDeleteResponse:
            return "DeleteResp";
    }
    return nullptr;
}

std::string describe(const MadHeader& header) {
    std::string text;
    append(text, "MAD class 0x%02x ", header.management_class);
    if (const char* name = name_of(header.method)) {
        text += name;
    } else {
        append(text, "method 0x%02x", static_cast<unsigned>(header.method));
    }
    append(text, " attribute 0x%04x modifier 0x%x TID 0x%" PRIx64, header.attribute_id,
           header.attribute_modifier, header.transaction_id);
    if (header.status != 0) append(text, " status 0x%04x", header.status);
    return text;
}

std::string describe(const Smp& smp) {
    std::string text = describe(smp.header);
    if (!smp.is_directed()) return text;
    const DirectedRoute& route = smp.route;
    append(text, ", %s hop %u of %u, path", route.returning ? "returning" : "outbound", route.hop_pointer,
           route.hop_count);
    const std::size_t hops = std::min<std::size_t>(route.hop_count, kSmpPathEntries - 1);
    for (std::size_t hop = 1; hop <= hops; ++hop)
        append(text, "%s%u", hop == 1 ? " " : ",", route.initial_path[hop]);
    return text;
}

}  // namespace uib::net
