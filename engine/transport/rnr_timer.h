// Waits that the protocol names by codes: the RNR NAK timer (IBA 9.7.5.2.8, Table 48) and the local ACK
// timeout (9.7.6.1.3).
#pragma once

#include <array>
#include <cstdint>

#include "engine/transport/types.h"

namespace uib::transport {

/// Least time to wait after an RNR NAK with this 5-bit code.
constexpr Time rnr_wait(std::uint8_t code) {
    constexpr std::array<std::uint32_t, 32> kTensOfMicroseconds = {
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return Time{kTensOfMicroseconds[code & 0x1F]} * 10'000;
}

/// Codes below this one are treated as it (C9-140): shorter waits would expire while a thread is off its CPU.
inline constexpr std::uint8_t kSmallestAckTimeout = 8;

/// T_o of a local ACK timeout code: twice T_tr, within the allowed one to four times. kNever for code 0.
constexpr Time ack_timeout(std::uint8_t code) {
    if (code == 0) return kNever;
    const unsigned exponent = code < kSmallestAckTimeout ? kSmallestAckTimeout : code & 0x1FU;
    return (Time{4096} << exponent) * 2;
}

}  // namespace uib::transport
