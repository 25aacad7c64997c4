// What listens at the ports and what disturbs them; nothing of it exists until it is asked for.
#pragma once

#include <memory>
#include <vector>

#include "engine/transport/types.h"
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
    /// Whether the receiver's checks catch the damage: the packet's bytes are made, damaged and taken apart.
    static bool damaged(const net::Packet& packet);

  private:
    std::uint64_t epoch_offset_ = 0;  ///< from the monotonic clock to the Unix epoch
};

}  // namespace uib::verbs
