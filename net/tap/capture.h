// A running capture: packets at ports, as bytes of a pcapng file, until somebody takes them away.
//
// The lane adds; another thread, with the lane's baton in hand, takes. Between the two is a buffer with a
// limit: what does not fit is counted as dropped, in the file, too. An InfiniBand port's packets appear as on
// its link (LRH to VCRC, each in an ERF record), an Ethernet port's as RoCE v2 frames. A frame that left the
// engine, or came from outside, is the very frame: its bytes are given with the packet. Between ports of the
// engine there are no frames; one is made as a wire would show it, CRCs included. It gets the MAC addresses
// of the ports with its GIDs, of a multicast group by rule, of anybody else what the GID tells or a locally
// administered one made of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
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
    std::vector<Gid> gids{};  ///< of an Ethernet port
};

struct CaptureOptions {
    std::optional<std::uint32_t> port{};  ///< only this one, by its index
    std::optional<std::uint32_t>
        qp{};                 ///< only packets to this queue pair, or from it where the packet tells
    std::uint32_t snap = 0;   ///< bytes kept of a packet; 0: all
    std::uint64_t count = 0;  ///< after so many packets no more are looked at; 0: no limit
    std::size_t buffer_bytes = std::size_t{16} << 20;
};

class Capture {
  public:
    /// `ports` in the order of the indices that add() is given.
    Capture(const std::vector<CapturePort>& ports, const CaptureOptions& options);

    /// `time_ns`: since the Unix epoch. `source_qp`: whose packet it is, where the caller knows and the
    /// packet does not tell; else 0.
    void add(std::uint32_t port, CaptureDirection direction, std::uint64_t time_ns, const Packet& packet,
             std::uint32_t source_qp = 0);
    /// The same of a packet that travels in this frame (without FCS) of an Ethernet port's.
    void add_frame(std::uint32_t port, CaptureDirection direction, std::uint64_t time_ns,
                   std::span<const std::byte> frame, const Packet& packet, std::uint32_t source_qp = 0);
    /// An Ethernet port has these addresses from now on.
    void set_addresses(std::uint32_t port, const MacAddress& mac, const std::vector<Gid>& gids);
    /// What has gathered; the buffer is empty then. `last` appends the statistics.
    std::vector<std::byte> take(bool last, std::uint64_t time_ns);

    /// `options.count` is reached.
    [[nodiscard]] bool done() const { return options_.count != 0 && packets_ >= options_.count; }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  private:
    [[nodiscard]] bool wanted(std::uint32_t port, const Packet& packet, std::uint32_t source_qp) const;
    [[nodiscard]] MacAddress mac_of(const Gid& gid) const;
    void remember_addresses();
    void encode_frame(const CapturePort& port, CaptureDirection direction, const Packet& packet);
    /// Takes note of a packet that is wanted; false if the buffer has no room for so many bytes of it.
    bool reserve(std::uint32_t port, std::size_t bytes);

    std::vector<CapturePort> ports_;
    std::map<Gid, MacAddress> macs_;  ///< of the engine's Ethernet ports
    CaptureOptions options_;
    std::vector<std::byte> buffer_;
    std::vector<std::byte> frame_;
    std::vector<std::uint64_t> seen_;  ///< by port
    std::vector<std::uint64_t> lost_;
    std::uint64_t packets_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace uib::net
