// What listens at the ports and what disturbs them; nothing of it exists until it is asked for.
#pragma once

#include <memory>
#include <vector>

#include "engine/transport/types.h"
#include "net/encap/uplink.h"
#include "net/tap/capture.h"
#include "net/tap/fault_injector.h"

namespace uib::verbs {

struct PortTaps {
    std::unique_ptr<net::Capture> capture;
    net::FaultTotals totals;
    std::unique_ptr<net::FaultInjector> faults;

    void start(const std::vector<net::CapturePort>& ports, const net::CaptureOptions& options);
    /// `now` is of the lane's monotonic clock; `source_qp` is 0 where the sender is not known.
    void record(std::uint32_t port, net::CaptureDirection direction, transport::Time now,
                const net::Packet& packet, std::uint32_t source_qp = 0) const {
        capture->add(port, direction, now + epoch_offset_, packet, source_qp);
    }
    /// The same of a packet in its frame on an uplink's wire.
    void record_frame(std::uint32_t port, net::CaptureDirection direction, transport::Time now,
                      std::span<const std::byte> frame, const net::Packet& packet,
                      std::uint32_t source_qp) const {
        capture->add_frame(port, direction, now + epoch_offset_, frame, packet, source_qp);
    }
    /// Whether the receiver's checks catch the damage: the packet's bytes are made, damaged and taken apart.
    static bool damaged(const net::Packet& packet);

  private:
    std::uint64_t epoch_offset_ = 0;  ///< from the monotonic clock to the Unix epoch
};

/// Writes an uplink's frames into the capture, as long as one runs.
class UplinkTap final : public net::FrameListener {
  public:
    /// `now` is the lane's time. Listens until it goes; taps, time and uplink must live on.
    UplinkTap(const PortTaps& taps, const transport::Time& now, std::uint32_t port, net::Uplink& uplink)
        : taps_(taps), now_(now), port_(port), uplink_(uplink) {
        uplink_.listen(this);
    }
    ~UplinkTap() override { uplink_.listen(nullptr); }
    UplinkTap(const UplinkTap&) = delete;
    UplinkTap& operator=(const UplinkTap&) = delete;

    void on_sent(std::span<const std::byte> frame, const net::Packet& packet) override {
        taps_.record_frame(port_, net::CaptureDirection::kOutbound, now_, frame, packet,
                           packet.deth.source_qp);
    }
    void on_received(std::span<const std::byte> frame, const net::Packet& packet) override {
        taps_.record_frame(port_, net::CaptureDirection::kInbound, now_, frame, packet, 0);
    }

  private:
    const PortTaps& taps_;
    const transport::Time& now_;
    std::uint32_t port_;
    net::Uplink& uplink_;
};

}  // namespace uib::verbs
