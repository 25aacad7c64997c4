// AETH syndromes (IBA 9.7.5.2, Tables 46 and 47).
#pragma once

#include <cstdint>

namespace uib::transport {

enum class AethKind : std::uint8_t { kAck = 0, kRnr = 1, kReserved = 2, kNak = 3 };

constexpr AethKind aeth_kind(std::uint8_t syndrome) {
    return static_cast<AethKind>(syndrome >> 5 & 3);
}
constexpr std::uint8_t aeth_value(std::uint8_t syndrome) {
    return syndrome & 0x1F;
}

inline constexpr std::uint8_t kRnrNak = 0x20;
inline constexpr std::uint8_t kNakSequence = 0x60;
inline constexpr std::uint8_t kNakInvalidRequest = 0x61;
inline constexpr std::uint8_t kNakRemoteAccess = 0x62;
inline constexpr std::uint8_t kNakRemoteOperation = 0x63;
inline constexpr std::uint8_t kNakInvalidRdRequest = 0x64;

/// Reserved syndromes: the requester drops the packet (C9-120, C9-135).
constexpr bool aeth_reserved(std::uint8_t syndrome) {
    const AethKind kind = aeth_kind(syndrome);
    return kind == AethKind::kReserved || (kind == AethKind::kNak && aeth_value(syndrome) > 4);
}

}  // namespace uib::transport
