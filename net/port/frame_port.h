// A port that carries Ethernet frames in bursts: what the encapsulations (net/encap) stand on.
//
// Drivers implement it: a packet socket (packet_port.h), DPDK's (net/port/dpdk, a module that is loaded when
// a port asks for it, so that an engine without such ports pays nothing for EAL), and a pair of ends in
// memory for tests (memory_port.h).
// One thread, the lane, calls it; nothing blocks for longer than the driver's own system call.
//
//   receive()  takes what has arrived; the views stay valid until release(), which the lane calls when its
//   turn ends allocate() room for one frame to be written in place, or nothing while the driver's buffers are
//   all in use commit()   queues the frame just written; flush() hands the queue to the driver, in batches
//
// Frames are without FCS. What a driver loses, cuts or refuses is counted here, by cause.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/wire/mac_address.h"

namespace uib::net {

struct FramePortCounters {
    std::uint64_t rx_frames = 0;
    std::uint64_t rx_bytes = 0;
    std::uint64_t tx_frames = 0;
    std::uint64_t tx_bytes = 0;
    std::uint64_t rx_own = 0;        ///< our own frames, given back by the driver
    std::uint64_t rx_truncated = 0;  ///< longer than the driver's buffers
    std::uint64_t rx_missed = 0;     ///< lost by the driver for want of room
    std::uint64_t rx_errors = 0;
    std::uint64_t tx_no_buffer = 0;  ///< allocate() had nothing to give
    std::uint64_t tx_refused = 0;    ///< not taken by the driver
    std::uint64_t tx_too_long = 0;   ///< beyond the interface's MTU
    // What the kernel counts at driver af_xdp's sockets (XDP_STATISTICS).
    std::uint64_t xdp_rx_dropped = 0;
    std::uint64_t xdp_rx_invalid_descs = 0;
    std::uint64_t xdp_tx_invalid_descs = 0;
    std::uint64_t xdp_rx_ring_full = 0;
    std::uint64_t xdp_rx_fill_ring_empty_descs = 0;
    std::uint64_t xdp_tx_ring_empty_descs = 0;
};

struct FramePortCounterName {
    const char* name;
    std::uint64_t FramePortCounters::*member;
};

inline constexpr std::array<FramePortCounterName, 17> kFramePortCounterNames = {{
    {"tx_frames", &FramePortCounters::tx_frames},
    {"tx_bytes", &FramePortCounters::tx_bytes},
    {"rx_frames", &FramePortCounters::rx_frames},
    {"rx_bytes", &FramePortCounters::rx_bytes},
    {"rx_own", &FramePortCounters::rx_own},
    {"rx_truncated", &FramePortCounters::rx_truncated},
    {"rx_missed", &FramePortCounters::rx_missed},
    {"rx_errors", &FramePortCounters::rx_errors},
    {"tx_no_buffer", &FramePortCounters::tx_no_buffer},
    {"tx_refused", &FramePortCounters::tx_refused},
    {"tx_too_long", &FramePortCounters::tx_too_long},
    {"xdp_rx_dropped", &FramePortCounters::xdp_rx_dropped},
    {"xdp_rx_invalid_descs", &FramePortCounters::xdp_rx_invalid_descs},
    {"xdp_tx_invalid_descs", &FramePortCounters::xdp_tx_invalid_descs},
    {"xdp_rx_ring_full", &FramePortCounters::xdp_rx_ring_full},
    {"xdp_rx_fill_ring_empty_descs", &FramePortCounters::xdp_rx_fill_ring_empty_descs},
    {"xdp_tx_ring_empty_descs", &FramePortCounters::xdp_tx_ring_empty_descs},
}};

class FramePort {
  public:
    virtual ~FramePort() = default;

    [[nodiscard]] virtual MacAddress mac() const = 0;
    /// Largest number of bytes behind the Ethernet header (14 bytes) that a frame may have; follows the
    /// interface.
    [[nodiscard]] virtual std::uint32_t mtu() const = 0;
    [[nodiscard]] virtual bool link_up() = 0;
    /// Follows what the port stands on: its MTU, its MAC, and an interface that has gone and come back.
    /// Between turns (nothing is held), and seldom: it costs system calls.
    virtual void refresh() {}

    /// At most one burst. Valid until release().
    virtual std::span<const std::span<const std::byte>> receive() = 0;
    virtual void release() = 0;

    /// `bytes` writable bytes for one frame, or an empty span. A second call without commit() drops the
    /// first.
    virtual std::span<std::byte> allocate(std::size_t bytes) = 0;
    virtual void commit() = 0;
    /// Hands to the driver what was committed. What it does not take now is kept for the next call.
    virtual void flush() = 0;
    /// Something was kept: nobody tells when the driver takes it, so flush() is to be called again soon.
    [[nodiscard]] virtual bool unsent() const = 0;
    /// Frames that can be allocated now, as a lower bound.
    [[nodiscard]] virtual std::uint32_t room() const = 0;

    /// A descriptor that becomes readable when a frame arrives while watch(true) holds; -1 if the port has
    /// none and must be polled: an idle lane looks now and then. watch() tells that the lane goes to sleep
    /// (true) or polls (false).
    [[nodiscard]] virtual int wake_descriptor() const = 0;
    virtual void watch(bool asleep) = 0;

    virtual const FramePortCounters& counters() = 0;
};

/// What a port line of the configuration says of the driver.
struct FramePortOptions {
    std::string name;       ///< of the port, for messages
    std::string driver;     ///< af_packet, af_xdp, tap, memif, vhost, virtio_user, pci
    std::string interface;  ///< host interface (af_packet, af_xdp), the name of one to make (tap), PCI
                            ///< address (pci), socket path (others)
    std::string extra;      ///< further device arguments, as DPDK writes them ("key=value,..."); with
                            ///< af_packet they choose DPDK's driver in place of packet_port.h
    bool server = false;    ///< memif, vhost: the end that makes the socket
    std::uint32_t mtu = 0;  ///< wanted; 0: what the interface has
    /// How frames that are ours are told from the rest of the interface's traffic while asleep.
    std::uint16_t ether_type = 0;  ///< native IB frames; 0: RoCE v2 (UDP 4791 and EtherType 0x8915)

    bool operator==(const FramePortOptions&) const = default;
};

}  // namespace uib::net
