// Packets and errors as text, for logs and traces.
#include <cinttypes>
#include <cstring>

#include "net/wire/codec.h"
#include "net/wire/opcode_table.h"
#include "net/wire/text.h"

namespace uib::net {
namespace {

void append_gid(std::string& text, const Gid& gid) {
    for (std::size_t i = 0; i < gid.size(); i += 2)
        append(text, "%s%x", i == 0 ? "" : ":", gid[i] << 8 | gid[i + 1]);
}

void append_extensions(std::string& text, const Packet& packet) {
    const std::uint16_t headers = kOpcodes[packet.bth.opcode].headers;
    if ((headers & kRdeth) != 0) append(text, ", EEC 0x%06x", packet.ee_context);
    if ((headers & kDeth) != 0)
        append(text, ", from QP 0x%06x Q_Key 0x%08x", packet.deth.source_qp, packet.deth.qkey);
    if ((headers & kXrceth) != 0) append(text, ", XRC SRQ 0x%06x", packet.xrc_srq);
    if ((headers & kReth) != 0)
        append(text, ", VA 0x%" PRIx64 " R_Key 0x%08x length %u", packet.reth.address, packet.reth.rkey,
               packet.reth.dma_length);
    if ((headers & kAtomicEth) != 0)
        append(text, ", VA 0x%" PRIx64 " R_Key 0x%08x swap/add 0x%" PRIx64 " compare 0x%" PRIx64,
               packet.atomic.address, packet.atomic.rkey, packet.atomic.swap_add, packet.atomic.compare);
    if ((headers & kAeth) != 0)
        append(text, ", syndrome 0x%02x MSN %u", packet.aeth.syndrome, packet.aeth.msn);
    if ((headers & kAtomicAckEth) != 0) append(text, ", original 0x%" PRIx64, packet.atomic_original);
    if ((headers & kImmDt) != 0) {
        // Opaque bytes, shown in the order in which they travel.
        std::uint8_t bytes[4];
        std::memcpy(bytes, &packet.immediate, sizeof bytes);
        append(text, ", immediate %02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
    }
    if ((headers & kIeth) != 0) append(text, ", invalidate 0x%08x", packet.invalidate_key);
}

void append_bth(std::string& text, const Bth& bth) {
    append(text, " QP 0x%06x PSN %u P_Key 0x%04x", bth.dest_qp, bth.psn, bth.pkey);
    if (bth.ack_req) text += " AckReq";
    if (bth.solicited) text += " SE";
    if (!bth.mig_req) text += " MigReq=0";
    if (bth.fecn) text += " FECN";
    if (bth.becn) text += " BECN";
}

}  // namespace

const char* name_of(DecodeError error) {
    switch (error) {
        case DecodeError::kNone:
            return "none";
        case DecodeError::kTooShort:
            return "too_short";
        case DecodeError::kLinkVersion:
            return "link_version";
        case DecodeError::kLength:
            return "length";
        case DecodeError::kIcrc:
            return "icrc";
        case DecodeError::kVcrc:
            return "vcrc";
        case DecodeError::kTransportVersion:
            return "transport_version";
        case DecodeError::kGrhVersion:
            return "grh_version";
        case DecodeError::kGrhNextHeader:
            return "grh_next_header";
        case DecodeError::kGrhLength:
            return "grh_length";
        case DecodeError::kRawTransport:
            return "raw_transport";
        case DecodeError::kPadding:
            return "padding";
    }
    return "unknown";
}

std::string describe(const Packet& packet) {
    std::string text;
    if (packet.kind == PacketKind::kEthernet) {
        append(text, "Ethernet frame, %zu bytes", packet.payload.size());
        return text;
    }
    if (packet.kind == PacketKind::kRawEthertype) {
        append(text, "raw ethertype 0x%04x", packet.ethertype);
    } else if (packet.kind == PacketKind::kRawIpv6) {
        text = "raw IPv6";
    } else {
        text = opcode_name(packet.bth.opcode);
        append_bth(text, packet.bth);
    }
    const Lrh& lrh = packet.lrh;
    append(text, ", LID 0x%04x to 0x%04x SL %u VL %u", lrh.slid, lrh.dlid, lrh.sl, lrh.vl);
    if (packet.kind == PacketKind::kTransport) {
        if (packet.has_grh) {
            text += ", GID ";
            append_gid(text, packet.grh.sgid);
            text += " to ";
            append_gid(text, packet.grh.dgid);
            append(text, " hops %u", packet.grh.hop_limit);
        }
        append_extensions(text, packet);
    }
    append(text, ", %zu bytes", packet.payload.size());
    return text;
}

}  // namespace uib::net
