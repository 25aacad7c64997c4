#include "net/tap/capture.h"

#include <algorithm>

#include "net/encap/roce_frame.h"
#include "net/wire/codec.h"
#include "net/wire/mac_of_gid.h"

namespace uib::net {
namespace {

constexpr std::uint32_t kBlockOverhead = 256;  // a packet block's headers and the packet's, at most

}  // namespace

Capture::Capture(const std::vector<CapturePort>& ports, const CaptureOptions& options)
    : ports_(ports), options_(options), seen_(ports.size()), lost_(ports.size()) {
    append_section(buffer_, "uib " UIB_VERSION);
    for (const CapturePort& port : ports_)
        append_interface(buffer_, port.ethernet ? LinkType::kEthernet : LinkType::kErf, port.name,
                         options_.snap);
    remember_addresses();
}

void Capture::set_addresses(std::uint32_t port, const MacAddress& mac, const std::vector<Gid>& gids) {
    if (port >= ports_.size() || !ports_[port].ethernet) return;
    ports_[port].mac = mac;
    ports_[port].gids = gids;
    remember_addresses();
}

void Capture::remember_addresses() {
    macs_.clear();
    for (const CapturePort& port : ports_)
        for (const Gid& gid : port.gids)
            if (port.ethernet && gid != Gid{}) macs_.emplace(gid, port.mac);
}

MacAddress Capture::mac_of(const Gid& gid) const {
    if (const auto group = multicast_mac(gid)) return *group;
    if (const auto known = macs_.find(gid); known != macs_.end()) return known->second;
    return mac_within(gid).value_or(MacAddress{0x02, 0x55, 0x49, gid[13], gid[14], gid[15]});
}

bool Capture::wanted(std::uint32_t port, const Packet& packet, std::uint32_t source_qp) const {
    if (options_.port && *options_.port != port) return false;
    if (!options_.qp) return true;
    return packet.bth.dest_qp == *options_.qp || source_qp == *options_.qp ||
           (packet.deth.source_qp == *options_.qp && packet.deth.source_qp != 0);
}

// The packet as on the port's wire, into frame_; an InfiniBand port's behind room for its record's header.
void Capture::encode_frame(const CapturePort& port, CaptureDirection direction, const Packet& packet) {
    if (!port.ethernet || packet.kind != PacketKind::kTransport) {
        const std::size_t header = port.ethernet ? 0 : kErfHeaderBytes;
        frame_.resize(header + encoded_bytes(packet));
        encode(packet, std::span(frame_).subspan(header));
        return;
    }
    const bool inbound = direction == CaptureDirection::kInbound;
    const bool group = multicast_mac(packet.grh.dgid).has_value();
    RoceEnvelope envelope;
    envelope.source = inbound ? mac_of(packet.grh.sgid) : port.mac;
    envelope.destination = inbound && !group ? port.mac : mac_of(packet.grh.dgid);
    envelope.udp_source = roce_source_port(packet.grh.flow_label, packet.bth.dest_qp, packet.deth.source_qp);
    frame_.resize(roce_frame_bytes(packet, false));
    encode_roce(packet, envelope, frame_);
}

void Capture::add(std::uint32_t port, CaptureDirection direction, std::uint64_t time_ns, const Packet& packet,
                  std::uint32_t source_qp) {
    if (done() || port >= ports_.size() || !wanted(port, packet, source_qp)) return;
    if (!reserve(port, packet.payload.size())) return;
    const std::size_t header = ports_[port].ethernet ? 0 : kErfHeaderBytes;
    encode_frame(ports_[port], direction, packet);
    std::size_t kept = frame_.size();
    if (options_.snap != 0) kept = std::min<std::size_t>(kept, header + options_.snap);
    if (header != 0)
        write_erf_header(std::span(frame_).first<kErfHeaderBytes>(), time_ns, kept - header,
                         frame_.size() - header);
    append_packet(buffer_, port, time_ns, std::span(frame_).first(kept),
                  static_cast<std::uint32_t>(frame_.size()), direction);
    ++packets_;
}

void Capture::add_frame(std::uint32_t port, CaptureDirection direction, std::uint64_t time_ns,
                        std::span<const std::byte> frame, const Packet& packet, std::uint32_t source_qp) {
    if (done() || port >= ports_.size() || !wanted(port, packet, source_qp)) return;
    if (!reserve(port, frame.size())) return;
    const std::size_t kept =
        options_.snap == 0 ? frame.size() : std::min<std::size_t>(frame.size(), options_.snap);
    append_packet(buffer_, port, time_ns, frame.first(kept), static_cast<std::uint32_t>(frame.size()),
                  direction);
    ++packets_;
}

bool Capture::reserve(std::uint32_t port, std::size_t bytes) {
    ++seen_[port];
    if (buffer_.size() + bytes + kBlockOverhead <= options_.buffer_bytes) return true;
    ++lost_[port];
    ++dropped_;
    return false;
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
