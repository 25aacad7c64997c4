// What the parts of the link layer agree on: lanes, MTU codes, blocks, frames, what a port can and how it is
// set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/packet.h"
#include "net/wire/time.h"

namespace uib::net::link {

inline constexpr unsigned kDataVlsMax = 15;
inline constexpr std::uint8_t kVl15 = 15;
inline constexpr unsigned kServiceLevels = 16;
/// Unit of flow control (7.9.4.2).
inline constexpr std::uint32_t kBlockBytes = 64;
/// A VL15 packet has 256 bytes of payload at most (C7-27): PktLen 72.
inline constexpr std::uint32_t kMaxVl15Words = 72;

/// Data VLs of a VLCap or OperationalVLs code (table 17); 0 for a code that is none.
constexpr unsigned data_vls(std::uint8_t code) {
    constexpr std::array<std::uint8_t, 6> kVls{0, 1, 2, 4, 8, 15};
    return code < kVls.size() ? kVls[code] : 0;
}

/// MTU codes 1 to 5 are 256 to 4096 bytes.
constexpr std::uint32_t mtu_bytes(std::uint8_t code) {
    return 128U << code;
}
/// Largest PktLen for an MTU code (table 22).
constexpr std::uint32_t max_packet_words(std::uint8_t mtu_code) {
    return (mtu_bytes(mtu_code) + 124) / 4;
}
/// Blocks of a packet of `words` (PktLen).
constexpr std::uint32_t blocks_of(std::uint32_t words) {
    return (words * 4 + kBlockBytes - 1) / kBlockBytes;
}

/// Time of a HOQLife or LifeTimeValue code: 4.096 us * 2^n, beyond 19 infinite.
constexpr Time lifetime(std::uint8_t code) {
    return code > 19 ? kNoDeadline : Time{4096} << code;
}

/// Figure 50. The first four are PortInfo's codes.
enum class PortState : std::uint8_t { kDown = 1, kInit = 2, kArm = 3, kActive = 4, kActDefer = 5 };

enum class PortRole : std::uint8_t { kChannelAdapter, kSwitch, kEnhancedPort0 };

/// Delimiters in front of and behind a frame's bytes. An encapsulation that has none tells data from link
/// packets by its own header and says kGood.
enum class FrameStart : std::uint8_t { kNone, kData, kLink };
enum class FrameEnd : std::uint8_t { kNone, kGood, kBad };

struct Frame {
    FrameStart start = FrameStart::kData;
    std::span<const std::byte> bytes;  ///< between the delimiters: LRH to VCRC, or operand to LPCRC
    FrameEnd end = FrameEnd::kGood;
    bool code_error = false;  ///< the physical layer saw an error among the bytes
};

/// What a port is made with.
struct LinkConfig {
    PortRole role = PortRole::kChannelAdapter;
    std::uint8_t mtu_cap = 5;     ///< MTUCap, 1 to 5
    std::uint8_t vl_cap = 3;      ///< VLCap, 1 to 5
    bool forward_in_arm = false;  ///< a switch may send data in LinkArm (7.2.7)
    unsigned input_ports = 1;     ///< rows of the SL-to-VL table: a switch's ports and its port 0
    /// Time of 8 bits on one lane of the emulated link; the same at both ends. 4 ns are 2.5 Gb/s; a link in
    /// software takes a multiple, for flow control packets come at fixed numbers of symbol times.
    Time symbol_time = 1000;
    Time training_time = 100'000;        ///< of a link that recovers from errors; below the LinkDownTimeout
    std::uint32_t receive_blocks = 512;  ///< per data VL; raised to hold a packet of MTUCap
    std::uint32_t send_blocks = 512;     ///< per data VL; likewise
    std::uint32_t vl15_packets = 16;     ///< buffers of VL15, each way
};

/// What management sets (PortInfo, and SwitchInfo for a switch).
struct PortSettings {
    Lid lid = 0;
    std::uint8_t lmc = 0;
    std::uint8_t neighbor_mtu = 5;      ///< MTU code
    std::uint8_t operational_vls = 1;   ///< code; above VLCap: VLCap is loaded; 0: as it was
    std::uint8_t vl_high_limit = 0;     ///< units of 4096 bytes; 255: no limit; 0: one packet
    std::uint8_t local_phy_errors = 8;  ///< threshold, 0 to 15
    std::uint8_t overrun_errors = 8;    ///< threshold, 0 to 15
    // Switches only; lifetime() says what the codes mean.
    std::uint8_t hoq_life = 20;
    std::uint8_t packet_life = 20;     ///< SwitchInfo:LifeTimeValue
    std::uint8_t vl_stall_count = 0;   ///< 0: no lane is stalled
    bool filter_raw_inbound = false;   ///< raw packets are discarded
    bool filter_raw_outbound = false;  ///< likewise
};

/// One row of the SL-to-VL table (7.6.6): the VL of each SL.
using SlToVl = std::array<std::uint8_t, kServiceLevels>;

}  // namespace uib::net::link
