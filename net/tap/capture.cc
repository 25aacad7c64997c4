#include "net/tap/capture.h"

#include <algorithm>

#include "net/encap/roce_frame.h"
#include "net/wire/codec.h"

namespace uib::net {
namespace {

constexpr std::uint32_t kBlockOverhead = 64;  // of a packet block, at most
/// A RoCE frame needs the other end's MAC, which the internal fabric does not have: made of its address.
MacAddress stand_in(const Gid& gid) {
    return {0x02, 0x55, 0x49, gid[13], gid[14], gid[15]};
}

}  // namespace

Capture::Capture(const std::vector<CapturePort>& ports, const CaptureOptions& options)
    : ports_(ports), options_(options), seen_(ports.size()), lost_(ports.size()) {
    append_section(buffer_, "uib " UIB_VERSION);
    for (const CapturePort& port : ports_)
        append_interface(buffer_, port.ethernet ? LinkType::kEthernet : LinkType::kInfiniBand, port.name,
                         options_.snap);
}

bool Capture::wanted(std::uint32_t port, const Packet& packet) const {
    if (options_.port && *options_.port != port) return false;
    if (!options_.qp) return true;
    return packet.bth.dest_qp == *options_.qp ||
           (packet.deth.source_qp == *options_.qp && packet.deth.source_qp != 0);
}

void Capture::add(std::uint32_t port, CaptureDirection direction, std::uint64_t time_ns,
                  const Packet& packet) {
    if (port >= ports_.size() || !wanted(port, packet)) return;
    ++seen_[port];
    if (buffer_.size() + packet.payload.size() + kBlockOverhead > options_.buffer_bytes) {
        ++lost_[port];
        ++dropped_;
        return;
    }
    if (ports_[port].ethernet && packet.kind == PacketKind::kTransport) {
        RoceEnvelope envelope;
        const bool inbound = direction == CaptureDirection::kInbound;
        envelope.source = inbound ? stand_in(packet.grh.sgid) : ports_[port].mac;
        envelope.destination = inbound ? ports_[port].mac : stand_in(packet.grh.dgid);
        envelope.udp_source =
            roce_source_port(packet.grh.flow_label, packet.bth.dest_qp, packet.deth.source_qp);
        frame_.resize(roce_frame_bytes(packet, false));
        encode_roce(packet, envelope, frame_);
    } else {
        frame_.resize(encoded_bytes(packet));
        encode(packet, frame_);
    }
    const std::size_t kept =
        options_.snap == 0 ? frame_.size() : std::min<std::size_t>(frame_.size(), options_.snap);
    append_packet(buffer_, port, time_ns, std::span(frame_).first(kept),
                  static_cast<std::uint32_t>(frame_.size()), direction);
    ++packets_;
}

std::vector<std::byte> Capture::take(bool last, std::uint64_t time_ns) {
    if (last) {
        for (std::uint32_t port = 0; port < ports_.size(); ++port)
            append_statistics(buffer_, port, time_ns, seen_[port], lost_[port]);
    }
    std::vector<std::byte> out;
    out.swap(buffer_);
    return out;
}

}  // namespace uib::net
