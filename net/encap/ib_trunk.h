// InfiniBand links over one Ethernet port: a virtual point-to-point link to each peer engine that is found
// there.
//
// A frame of the trunk's EtherType starts with two bytes, kind and version, and then holds a whole IB packet
// (LRH to VCRC), a link packet (operand to LPCRC), or a hello. Hellos find peers and stand for the physical
// link: each end says every kHelloInterval who it is (a number drawn at start, and its MTU) and whom it
// hears; a link is physically up while both ends hear each other and agree on the MTU, and down after
// kHelloTimeout of silence or when the peer has restarted. Peers are found by broadcast, or given by their
// MAC addresses.
//
// The trunk owns the frame port and, in slots that are there from the start, the link ends (net/link) that
// the owner gives packets to and takes packets from; a slot belongs to a peer from its first hello until the
// trunk ends. The lane drives it: receive(), work on the links, send(), end_turn(). Nothing waits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/encap/uplink.h"
#include "net/link/link_port.h"
#include "net/port/frame_port.h"

namespace uib::net {

struct IbTrunkOptions {
    std::uint16_t ether_type = 0x88B5;
    std::vector<MacAddress> peers;  ///< empty: whoever says hello
    unsigned slots = 4;             ///< links at most
    std::uint64_t identity = 0;     ///< tells this run of this engine from others; not 0
    link::LinkConfig link;          ///< its mtu_cap is lowered to what the frames hold
};

struct IbTrunkCounters {
    std::uint64_t rx_foreign = 0;     ///< frames of other protocols
    std::uint64_t rx_other_host = 0;  ///< for another MAC address
    std::uint64_t rx_malformed = 0;   ///< too short, unknown kind or version
    std::uint64_t rx_no_slot = 0;  ///< hellos of peers for whom there is no slot, or who are not on the list
    std::uint64_t rx_unknown_peer = 0;  ///< packets from where no link is
    std::uint64_t mtu_mismatch = 0;     ///< hellos that name another MTU
    std::uint64_t tx_no_buffer = 0;
};

class IbTrunk {
  public:
    static constexpr Time kHelloInterval = 100'000'000;
    static constexpr Time kHelloTimeout = 1'000'000'000;

    IbTrunk(std::unique_ptr<FramePort> port, IbTrunkOptions options);

    [[nodiscard]] std::size_t slots() const { return slots_.size(); }
    [[nodiscard]] link::LinkPort& link(std::size_t slot) { return *slots_[slot]->link; }
    [[nodiscard]] const link::LinkPort& link(std::size_t slot) const { return *slots_[slot]->link; }
    /// The peer of a slot, once there is one.
    [[nodiscard]] std::optional<MacAddress> peer(std::size_t slot) const;
    [[nodiscard]] bool physically_up(std::size_t slot) const { return slots_[slot]->up; }
    /// Code (1 to 5) of the largest IB MTU that fits, 0 if none does.
    [[nodiscard]] std::uint8_t mtu_code() const { return mtu_code_; }

    /// Takes one burst in; true if there was any.
    bool receive(Time now);
    /// Lets the links send as long as the frame port takes frames.
    void send(Time now);
    /// Hands frames to the driver, gives received buffers back.
    void end_turn();
    [[nodiscard]] Time next_deadline() const;

    [[nodiscard]] FramePort& frames() { return *port_; }
    [[nodiscard]] const IbTrunkCounters& counters() const { return counters_; }

  private:
    struct Slot {
        explicit Slot(const link::LinkConfig& config) : link(std::make_unique<link::LinkPort>(config)) {}
        std::unique_ptr<link::LinkPort> link;
        std::optional<MacAddress> mac;
        std::uint64_t identity = 0;  ///< the peer's, of its latest hello
        Time heard_at = 0;
        bool hears_us = false;
        bool up = false;
    };

    Slot* slot_of(const MacAddress& mac);
    Slot* claim(const MacAddress& mac);
    void on_hello(const MacAddress& from, bool broadcast, std::span<const std::byte> body, Time now);
    void set_up(Slot& slot, bool up, Time now);
    void check_silence(Time now);
    void say_hello(Time now);
    void send_hello(const MacAddress& to, std::uint64_t heard);
    /// A frame with its header, or nothing.
    std::span<std::byte> begin_frame(const MacAddress& to, std::uint8_t kind, std::size_t body);

    std::unique_ptr<FramePort> port_;
    IbTrunkOptions options_;
    std::uint8_t mtu_code_ = 0;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<std::byte> scratch_;
    Time next_hello_ = 0;
    std::size_t first_ = 0;  ///< whose turn it is to send first
    IbTrunkCounters counters_;
};

}  // namespace uib::net
