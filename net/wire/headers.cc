// LRH, RWH, GRH and BTH.
#include "net/wire/headers.h"

#include <cstring>

#include "net/wire/bytes.h"
#include "net/wire/gid.h"
#include "net/wire/ipv4.h"

namespace uib::net {
namespace {

constexpr unsigned bit(std::byte value, unsigned position) {
    return std::to_integer<unsigned>(value) >> position & 1;
}

}  // namespace

LinkNextHeader next_header_of(const Packet& packet) {
    switch (packet.kind) {
        case PacketKind::kRawEthertype:
            return LinkNextHeader::kRawEthertype;
        case PacketKind::kRawIpv6:
            return LinkNextHeader::kRawIpv6;
        default:
            return packet.has_grh ? LinkNextHeader::kGlobal : LinkNextHeader::kLocal;
    }
}

void build_lrh(const LrhFields& fields, std::span<std::byte, kLrhBytes> out) {
    const Lrh& lrh = fields.lrh;
    out[0] = static_cast<std::byte>((lrh.vl & 0xF) << 4 | (fields.version & 0xF));
    out[1] = static_cast<std::byte>((lrh.sl & 0xF) << 4 | static_cast<unsigned>(fields.next));
    store_be<2>(&out[2], lrh.dlid);
    store_be<2>(&out[4], std::uint16_t(fields.words & 0x7FF));
    store_be<2>(&out[6], lrh.slid);
}

LrhFields parse_lrh(std::span<const std::byte, kLrhBytes> in) {
    const auto first = std::to_integer<unsigned>(in[0]);
    const auto second = std::to_integer<unsigned>(in[1]);
    LrhFields fields;
    fields.lrh.vl = static_cast<std::uint8_t>(first >> 4);
    fields.version = first & 0xF;
    fields.lrh.sl = static_cast<std::uint8_t>(second >> 4);
    fields.next = static_cast<LinkNextHeader>(second & 3);
    fields.lrh.dlid = load_be<std::uint16_t>(&in[2]);
    fields.words = load_be<std::uint16_t>(&in[4]) & 0x7FF;
    fields.lrh.slid = load_be<std::uint16_t>(&in[6]);
    return fields;
}

void build_rwh(std::uint16_t ethertype, std::span<std::byte, kRwhBytes> out) {
    store_be<4>(out.data(), std::uint32_t{ethertype});
}

std::uint16_t parse_rwh(std::span<const std::byte, kRwhBytes> in) {
    return load_be<std::uint16_t>(&in[2]);
}

void build_grh(const GrhFields& fields, std::span<std::byte, kGrhBytes> out) {
    const Grh& grh = fields.grh;
    const std::uint32_t word = std::uint32_t{fields.version & 0xFU} << 28 |
                               std::uint32_t{grh.traffic_class} << 20 | (grh.flow_label & 0xFFFFF);
    store_be<4>(out.data(), word);
    store_be<2>(&out[4], fields.payload_length);
    out[6] = std::byte{fields.next_header};
    out[7] = std::byte{grh.hop_limit};
    std::memcpy(&out[8], grh.sgid.data(), grh.sgid.size());
    std::memcpy(&out[24], grh.dgid.data(), grh.dgid.size());
}

GrhFields parse_grh(std::span<const std::byte, kGrhBytes> in) {
    const auto word = load_be<std::uint32_t>(in.data());
    GrhFields fields;
    fields.version = static_cast<std::uint8_t>(word >> 28);
    fields.grh.traffic_class = static_cast<std::uint8_t>(word >> 20);
    fields.grh.flow_label = word & 0xFFFFF;
    fields.payload_length = load_be<std::uint16_t>(&in[4]);
    fields.next_header = std::to_integer<std::uint8_t>(in[6]);
    fields.grh.hop_limit = std::to_integer<std::uint8_t>(in[7]);
    std::memcpy(fields.grh.sgid.data(), &in[8], fields.grh.sgid.size());
    std::memcpy(fields.grh.dgid.data(), &in[24], fields.grh.dgid.size());
    return fields;
}

std::array<std::byte, kGrhBytes> encode_grh(const Grh& grh, std::size_t payload_length) {
    std::array<std::byte, kGrhBytes> bytes{};
    if (is_ipv4(grh.dgid)) {
        // RoCE v2 over IPv4: the header stands at the end of the area (Annex A17.4.5.2).
        build_ipv4(grh, payload_length, std::span(bytes).last<kIpv4Bytes>());
        return bytes;
    }
    build_grh({.grh = grh, .payload_length = static_cast<std::uint16_t>(payload_length)}, bytes);
    return bytes;
}

void build_bth(const BthFields& fields, std::span<std::byte, kBthBytes> out) {
    const Bth& bth = fields.bth;
    out[0] = std::byte{bth.opcode};
    out[1] = static_cast<std::byte>(unsigned{bth.solicited} << 7 | unsigned{bth.mig_req} << 6 |
                                    (bth.pad & 3U) << 4 | (fields.version & 0xFU));
    store_be<2>(&out[2], bth.pkey);
    out[4] = static_cast<std::byte>(unsigned{bth.fecn} << 7 | unsigned{bth.becn} << 6);
    store_be<3>(&out[5], bth.dest_qp);
    out[8] = static_cast<std::byte>(unsigned{bth.ack_req} << 7);
    store_be<3>(&out[9], bth.psn);
}

BthFields parse_bth(std::span<const std::byte, kBthBytes> in) {
    BthFields fields;
    Bth& bth = fields.bth;
    bth.opcode = std::to_integer<std::uint8_t>(in[0]);
    bth.solicited = bit(in[1], 7) != 0;
    bth.mig_req = bit(in[1], 6) != 0;
    bth.pad = std::to_integer<std::uint8_t>(in[1]) >> 4 & 3;
    fields.version = std::to_integer<std::uint8_t>(in[1]) & 0xF;
    bth.pkey = load_be<std::uint16_t>(&in[2]);
    bth.fecn = bit(in[4], 7) != 0;
    bth.becn = bit(in[4], 6) != 0;
    bth.dest_qp = load_be<std::uint32_t, 3>(&in[5]);
    bth.ack_req = bit(in[8], 7) != 0;
    bth.psn = load_be<std::uint32_t, 3>(&in[9]);
    return fields;
}

}  // namespace uib::net
