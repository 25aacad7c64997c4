// Writes a capture with one packet of every operation of RC, UC, RD, UD and XRC, as four links carry it:
// InfiniBand without and with a GRH, RoCE v2 over IPv4 and over IPv6. dissect_test.py knows these values and
// what they must look like on the wire.
//
//   every_operation FILE
#include <cstdio>
#include <fstream>
#include <vector>

#include "net/tap/capture.h"
#include "net/wire/gid.h"
#include "net/wire/opcode_table.h"

namespace {

using namespace uib::net;

constexpr std::size_t kMtu = 256;
constexpr std::size_t kOdd = 21;  // of a last or only packet
constexpr std::size_t kAtomicWriteBytes = 8;
constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;
constexpr Gid kOwn = {0xFD, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr Gid kPeer = {0xFD, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};

struct Link {
    std::uint32_t port;
    bool grh;
    bool ipv4;
};
constexpr Link kLinks[] = {{0, false, false}, {0, true, false}, {1, true, true}, {1, true, false}};

std::size_t payload_bytes(Operation operation, const OpcodeInfo& info) {
    if (!info.payload) return 0;
    if (operation == Operation::kAtomicWrite) return kAtomicWriteBytes;
    const bool whole = is_first(operation) || is_middle(operation) ||
                       operation == Operation::kReadResponseFirst ||
                       operation == Operation::kReadResponseMiddle;
    return whole ? kMtu : kOdd;
}

void fill_extension_headers(Operation operation, Packet& out) {
    out.deth = {0x31323334, 0x414243};
    out.aeth = {.syndrome = 0x0A, .msn = 0x515253};
    if (is_atomic(operation)) {
        out.atomic = {0x6162636465666768, 0x71727374, 0x8182838485868788, 0x9192939495969798};
    } else {
        out.reth = {0x6162636465666768, 0x71727374, 0xA1A2};
    }
    out.atomic_original = 0xB1B2B3B4B5B6B7B8;
    const std::uint8_t immediate[] = {0xC1, 0xC2, 0xC3, 0xC4};
    std::copy_n(immediate, sizeof immediate, reinterpret_cast<std::uint8_t*>(&out.immediate));
    out.invalidate_key = 0xD1D2D3D4;
    out.xrc_srq = 0xE1E2E3;  // in the place of the EE context
}

Packet packet_of(std::uint8_t code, const Link& link, std::span<const std::byte> payload) {
    Packet out;
    out.lrh = {.dlid = 0x0102, .slid = 0x0304, .sl = 5, .vl = 3};
    out.has_grh = link.grh;
    out.grh.sgid = link.ipv4 ? gid_of_ipv4(0x0A000001) : kOwn;
    out.grh.dgid = link.ipv4 ? gid_of_ipv4(0x0A000002) : kPeer;
    out.grh.traffic_class = 0x6A;
    out.grh.hop_limit = 9;
    out.grh.flow_label = link.ipv4 ? 0 : 0x12345;
    out.bth.opcode = code;
    out.bth.pad = static_cast<std::uint8_t>(-payload.size() & 3);
    out.bth.solicited = true;
    out.bth.ack_req = true;
    out.bth.pkey = 0x8001;
    out.bth.dest_qp = 0x112233;
    out.bth.psn = 0xFEDC00U | code;
    out.payload = payload;
    fill_extension_headers(out.bth.operation(), out);
    return out;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: every_operation FILE\n");
        return 2;
    }
    const std::vector<CapturePort> ports = {
        {"ib", false}, {"roce", true, {2, 0, 0, 0, 0, 1}, {gid_of_ipv4(0x0A000001), kOwn}}};
    std::vector<std::byte> bytes(kMtu);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
    Capture capture(ports, {});
    std::uint64_t time = kStart;
    for (const Link& link : kLinks) {
        for (unsigned code = 0; code < kOpcodes.size(); ++code) {
            const OpcodeInfo& info = kOpcodes[code];
            const auto opcode = static_cast<std::uint8_t>(code);
            if (!info.defined || service_of(opcode) == Service::kCnp) continue;
            const auto payload = std::span(bytes).first(payload_bytes(operation_of(opcode), info));
            capture.add(link.port, CaptureDirection::kOutbound, ++time, packet_of(opcode, link, payload));
        }
    }
    const std::vector<std::byte> file = capture.take(true, time);
    std::ofstream out(arguments[1], std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    out.close();
    return out ? 0 : 1;
}
