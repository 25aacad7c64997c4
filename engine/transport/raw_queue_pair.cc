#include "engine/transport/raw_queue_pair.h"

#include <algorithm>
#include <cstring>

#include "engine/transport/payload.h"

namespace uib::transport {
namespace {

constexpr std::size_t kNextHeaderOffset = 6;     // of the IPv6 header
constexpr std::byte kNextHeaderTransport{0x1B};  // IBA transport: never raw (C9-208)
constexpr std::byte kIpv6Version{0x60};

/// A raw IPv6 packet whose header may be there (C9-208).
bool good_ipv6(std::span<const std::byte> packet) {
    return packet.size() >= min_raw_payload(net::PacketKind::kRawIpv6) &&
           (packet[0] & std::byte{0xF0}) == kIpv6Version && packet[kNextHeaderOffset] != kNextHeaderTransport;
}

}  // namespace

// Out.

Status RawQueuePair::check_request(const SendRequest& request) const {
    if (request.opcode != ipc::WorkOpcode::kSend) return Status::kLocalQpOperation;
    const net::PacketKind kind = config_.raw_kind;
    const bool frame = kind == net::PacketKind::kEthernet;
    const std::uint32_t most = frame ? kMaxFrameBytes : max_raw_payload(kind, mtu());
    const std::uint32_t least = frame                               ? kMinFrameBytes
                                : kind == net::PacketKind::kRawIpv6 ? min_raw_payload(kind)
                                                                    : 0;
    return request.length >= least && request.length <= most ? Status::kSuccess : Status::kLocalLength;
}

// Raw datagrams count whole words (o9-145). What the pad bytes hold is nobody's business: zeros.
bool RawQueuePair::pad(std::span<const std::byte>& view, std::uint32_t wire_bytes) {
    if (view.size() == wire_bytes) return true;
    const std::span<std::byte> copy = mover().stage(wire_bytes);
    if (copy.size() != wire_bytes) return false;
    std::copy(view.begin(), view.end(), copy.begin());
    std::fill(copy.begin() + static_cast<std::ptrdiff_t>(view.size()), copy.end(), std::byte{0});
    view = copy;
    return true;
}

PacketMaker::Result RawQueuePair::make(const SendRequest& request, std::uint32_t, std::uint32_t,
                                       std::uint32_t) {
    Result result;
    result.status = check_request(request);
    if (result.status != Status::kSuccess) return result;
    const net::PacketKind kind = config_.raw_kind;
    const bool frame = kind == net::PacketKind::kEthernet;
    const std::uint32_t wire_bytes =
        frame ? request.length : std::max((request.length + 3) / 4 * 4, min_raw_payload(kind));
    // Gathering may take as much again as padding.
    if (mover().room() < std::size_t{2} * wire_bytes) return result;
    std::span<const std::byte> view;
    result.status = gather_payload(*this, request, 0, request.length, view);
    if (result.status != Status::kSuccess) return result;
    if (kind == net::PacketKind::kRawIpv6 && !good_ipv6(view)) {
        result.status = Status::kLocalQpOperation;
        return result;
    }
    if (!pad(view, wire_bytes)) return result;
    out_.kind = kind;
    out_.ethertype = config_.raw_ethertype;
    out_.has_grh = false;
    out_.payload = view;
    transmit(out_);
    result.packets = 1;
    result.bytes = request.length;
    result.done = true;
    return result;
}

// In.

bool RawQueuePair::accept(const net::Packet& packet) {
    if (packet.kind != config_.raw_kind ||
        (packet.kind == net::PacketKind::kRawEthertype && packet.ethertype != config_.raw_ethertype)) {
        ++counters_.dropped_service;
        return false;
    }
    if (!accept_in_state()) return false;
    if (packet.kind == net::PacketKind::kRawIpv6 && !good_ipv6(packet.payload)) {
        ++counters_.invalid_requests;
        return false;
    }
    const bool frame = packet.kind == net::PacketKind::kEthernet;
    if (packet.payload.size() > (frame ? kMaxFrameBytes : max_raw_payload(packet.kind, mtu()))) {
        ++counters_.dropped_length;
        return false;
    }
    return true;
}

void RawQueuePair::on_packet(const net::Packet& packet) {
    count_arrival(packet);
    if (!accept(packet) || !take_for_datagram()) return;
    switch (receive().put(packet.payload, true)) {
        case ReceiveMessage::Put::kDone:
            break;
        case ReceiveMessage::Put::kProtection:
            receive_fault(Status::kLocalProtection);
            return;
        case ReceiveMessage::Put::kTooLong:
            ++counters_.dropped_length;
            receive_fault(Status::kLocalLength);
            return;
    }
    if (!flush_writes()) {
        receive_fault(Status::kLocalProtection);
        return;
    }
    Completion completion;
    if (packet.kind != net::PacketKind::kEthernet) {
        completion.slid = packet.lrh.slid;
        completion.sl = packet.lrh.sl;
    }
    receive().complete(completion);
}

}  // namespace uib::transport
