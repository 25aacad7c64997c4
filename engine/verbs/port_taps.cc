#include "engine/verbs/port_taps.h"

#include <ctime>

#include "net/wire/codec.h"

namespace uib::verbs {

namespace {

std::uint64_t nanoseconds(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

void PortTaps::start(const std::vector<net::CapturePort>& ports, const net::CaptureOptions& options) {
    epoch_offset_ = nanoseconds(CLOCK_REALTIME) - nanoseconds(CLOCK_MONOTONIC);
    capture = std::make_unique<net::Capture>(ports, options);
}

bool PortTaps::damaged(const net::Packet& packet) {
    if (packet.kind == net::PacketKind::kEthernet) return true;  // the frame's FCS, which is not kept
    std::vector<std::byte> frame(net::encoded_bytes(packet));
    net::encode(packet, frame);
    net::Packet ignored;
    return net::decode(frame, ignored) != net::DecodeError::kNone;
}

}  // namespace uib::verbs
