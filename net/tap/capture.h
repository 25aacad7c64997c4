// A running capture: packets at ports, as bytes of a pcapng file, until somebody takes them away.
//
// The lane adds; another thread, with the lane's baton in hand, takes. Between the two is a buffer with a
// limit: what does not fit is counted as dropped, in the file, too. An InfiniBand port's packets appear as on
// its link (LRH to VCRC), an Ethernet port's as RoCE v2 frames; the CRCs are those that a wire would show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/tap/pcapng.h"
#include "net/wire/mac_address.h"
#include "net/wire/packet.h"

namespace uib::net {

struct CapturePort {
    std::string name;
    bool ethernet = false;
    MacAddress mac{};
};

struct CaptureOptions {
    std::optional<std::uint32_t> port{};  ///< only this one, by its index
    std::optional<std::uint32_t>
        qp{};                ///< only packets to this queue pair, or from it where the packet tells
    std::uint32_t snap = 0;  ///< bytes kept of a packet; 0: all
    std::size_t buffer_bytes = std::size_t{16} << 20;
};

class Capture {
  public:
    /// `ports` in the order of the indices that add() is given.
    Capture(const std::vector<CapturePort>& ports, const CaptureOptions& options);

    /// `time_ns`: since the Unix epoch.
    void add(std::uint32_t port, CaptureDirection direction, std::uint64_t time_ns, const Packet& packet);
    /// What has gathered; the buffer is empty then. `last` appends the statistics.
    std::vector<std::byte> take(bool last, std::uint64_t time_ns);

    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    [[nodiscard]] bool wanted(std::uint32_t port, const Packet& packet) const;

    std::vector<CapturePort> ports_;
    CaptureOptions options_;
    std::vector<std::byte> buffer_;
    std::vector<std::byte> frame_;
    std::vector<std::uint64_t> seen_;  ///< by port
    std::vector<std::uint64_t> lost_;
    std::uint64_t packets_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace uib::net
