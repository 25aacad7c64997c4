// Static rate control (IBA 9.11): the wait between packets from one source port to one destination.
//
// After packet a to a DLID the next packet to it may be scheduled Ts later,
//   Ts = (IPD + 1) * bytes(a) / port rate,   IPD = port rate / path rate - 1
// which is bytes(a) / path rate: IPD is a real number here (o9-165), so every rate of ibv_rate below the
// port's is met exactly and none has to be rounded (C9-226). A code that ibv_rate does not define (from an
// address vector; queue pairs refuse it) is served as the slowest rate.
//
// One object a port, used by all its queue pairs that have a limit; a QP without one does not ask, as the
// users of one DLID are to agree on the rate (9.11). The table is keyed by the full DLID, path bits included;
// it is made when the first limit is set, so nothing is allocated per packet. Single thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transport/types.h"

namespace uib::transport {

/// Nominal Mb/s of an ibv_rate code. 0 for IBV_RATE_MAX (0); unknown codes count as the slowest.
constexpr std::uint32_t static_rate_mbps(std::uint8_t code) {
    constexpr std::uint32_t kSlowest = 2'500;
    constexpr std::uint32_t kMbps[] = {0,       kSlowest, kSlowest, 10'000,   30'000,  5'000,  20'000,
                                       40'000,  60'000,   80'000,   120'000,  14'000,  56'000, 112'000,
                                       168'000, 25'000,   100'000,  200'000,  300'000, 28'000, 50'000,
                                       400'000, 600'000,  800'000,  1'200'000};
    return code < sizeof kMbps / sizeof kMbps[0] ? kMbps[code] : kSlowest;
}

/// Nominal Mb/s of a port from PortInfo's LinkWidthActive (1, 2, 4, 8, 16: 1x, 4x, 8x, 12x, 2x) and speed (1
/// SDR, 2 DDR, 4 QDR, 8 FDR10, 16 FDR, 32 EDR, 64 HDR, 128 NDR).
constexpr std::uint32_t port_mbps(std::uint32_t width, std::uint32_t speed) {
    const std::uint32_t lanes = width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 1;
    const std::uint32_t lane = speed == 2     ? 5'000
                               : speed == 4   ? 10'000
                               : speed == 8   ? 10'000
                               : speed == 16  ? 14'000
                               : speed == 32  ? 25'000
                               : speed == 64  ? 50'000
                               : speed == 128 ? 100'000
                                              : 2'500;
    return lanes * lane;
}

class StaticRate {
  public:
    explicit StaticRate(std::uint32_t port_mbps) : port_mbps_(port_mbps) {}

    /// The limit in Mb/s that a path's static rate means at this port; 0 if the port is no faster.
    std::uint32_t limit(std::uint8_t code) {
        const std::uint32_t mbps = static_rate_mbps(code);
        if (mbps == 0 || mbps >= port_mbps_) return 0;
        if (free_at_.empty()) free_at_.resize(kLids);
        return mbps;
    }

    /// When the next limited packet to `dlid` may go; limit() has returned a limit before.
    [[nodiscard]] Time free_at(net::Lid dlid) const { return free_at_[dlid]; }

    /// A packet of `bytes` (4 * LRH:PktLen) goes to `dlid` now. Waits are rounded up to nanoseconds.
    void sent(net::Lid dlid, std::uint32_t bytes, std::uint32_t mbps, Time now) {
        free_at_[dlid] = now + wait(bytes, mbps);
    }

    /// Ts in nanoseconds.
    static constexpr Time wait(std::uint32_t bytes, std::uint32_t mbps) {
        return (Time{bytes} * 8'000 + mbps - 1) / mbps;
    }

  private:
    static constexpr std::size_t kLids = 0x10000;

    std::uint32_t port_mbps_;
    std::vector<Time> free_at_;  ///< by DLID
};

}  // namespace uib::transport
