// An uplink: what joins a device's port to the world outside the engine. An encapsulation over a frame port.
//
// The lane owns it and drives it once a turn: receive(), then send() for what the queue pairs emit, then
// end_turn(). Packets given to the sink, payloads included, stay valid until end_turn(); a packet given to
// send() is copied before the call returns. What it cannot send or does not understand is counted by cause,
// never an error of the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/mac_address.h"
#include "net/wire/packet.h"
#include "net/wire/time.h"

namespace uib::net {

class PacketSink {
  public:
    virtual ~PacketSink() = default;
    virtual void on_packet(Packet& packet) = 0;
};

/// Hears of each packet that an uplink sends or takes in, with the frame (without FCS) that holds it on the
/// wire.
class FrameListener {
  public:
    virtual ~FrameListener() = default;
    virtual void on_sent(std::span<const std::byte> frame, const Packet& packet) = 0;
    virtual void on_received(std::span<const std::byte> frame, const Packet& packet) = 0;
};

/// What has changed at an uplink; bits.
enum UplinkChange : std::uint8_t {
    kUplinkState = 1 << 0,      ///< active() is another
    kUplinkAddresses = 1 << 1,  ///< gids() are others
    kUplinkMtu = 1 << 2,        ///< mtu() is another
};

class Uplink {
  public:
    using Counter = std::pair<std::string, std::uint64_t>;

    virtual ~Uplink() = default;

    /// Takes one burst of what has arrived. True if there was anything.
    virtual bool receive(Time now, PacketSink& sink) = 0;
    /// Packets that send() takes now without loss.
    [[nodiscard]] virtual std::uint32_t room() const = 0;
    virtual void send(const Packet& packet) = 0;
    /// Hands what was sent to the driver, gives received buffers back.
    virtual void end_turn() = 0;
    /// When receive() must be called although nothing arrives.
    [[nodiscard]] virtual Time next_deadline() const = 0;

    /// To sleep: descriptors that become readable when there is something to receive; watch(true) before,
    /// then one more receive(), watch(false) after. Not sleepable: the driver can only be polled.
    [[nodiscard]] virtual std::vector<int> wake_descriptors() const = 0;
    [[nodiscard]] virtual bool sleepable() const = 0;
    virtual void watch(bool asleep) = 0;

    [[nodiscard]] virtual bool active() const = 0;
    /// Largest IB path MTU that fits, in bytes: 256 to 4096.
    [[nodiscard]] virtual std::uint32_t mtu() const = 0;
    [[nodiscard]] virtual MacAddress mac() const = 0;
    /// Addresses of the port, if the encapsulation gives it any (RoCE).
    [[nodiscard]] virtual std::vector<Gid> gids() const = 0;
    /// 0 while the host's stack is spared the frames that are the port's, else the errno that says why not.
    [[nodiscard]] virtual int ingress_error() const { return 0; }
    /// UplinkChange bits since the last call.
    virtual std::uint8_t take_changes() = 0;
    virtual std::vector<Counter> counters() = 0;
    /// nullptr: nobody listens. A packet's payload may be gone when its frame is sent: those that had to wait
    /// for their destination come without.
    virtual void listen(FrameListener* listener) = 0;

    /// The port has, or no longer has, queue pairs in a multicast group: what leads its packets here is told.
    virtual void join(const Gid& /*group*/) {}
    virtual void leave(const Gid& /*group*/) {}
};

/// Largest IB MTU whose packets fit into `frame_bytes` bytes behind an Ethernet header, when `overhead` bytes
/// of them are headers and CRCs; 0 if not even 256 does.
constexpr std::uint32_t ib_mtu_within(std::uint32_t frame_bytes, std::uint32_t overhead) {
    for (std::uint32_t mtu = 4096; mtu >= 256; mtu /= 2)
        if (mtu + overhead <= frame_bytes) return mtu;
    return 0;
}

}  // namespace uib::net
