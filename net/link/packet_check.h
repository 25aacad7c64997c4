// The data packet check machine (7.4, figure 52).
//
// Pure: bytes and what the port is in, one verdict out. Of several errors the first in the order of the enum
// is told, whatever is seen first (C7-8.1.1). What lies behind the LRH is the network and the transport
// layer's.
#pragma once

#include "net/link/link_types.h"
#include "net/wire/headers.h"

namespace uib::net::link {

enum class PacketError : std::uint8_t {
    kNone,
    kVcrc,
    kIcrc,
    kLinkVersion,
    kLength,
    kDlid,
    kVl,
    kGrhOnVl15,  ///< VL15 with LNH other than 2
};
inline constexpr std::size_t kPacketErrorCount = 8;

/// E.g. "vcrc".
const char* name_of(PacketError error);

/// Classes of 7.12.1.
constexpr bool is_local_physical(PacketError error) {
    return error == PacketError::kVcrc || error == PacketError::kIcrc;
}

/// LIDs of 7.10; the permissive one is none of them.
constexpr bool is_multicast(Lid dlid) {
    return dlid >= kMulticastLidFirst && dlid != kPermissiveLid;
}

struct PacketCheck {
    PortRole role = PortRole::kChannelAdapter;
    std::uint8_t mtu_cap = 5;
    unsigned data_vls = 1;  ///< configured ones
    Lid lid = 0;
    std::uint8_t lmc = 0;
};

/// `bytes` is LRH to VCRC. On kNone, and on every error but kVcrc if there is a whole LRH, `out` holds the
/// LRH. A switch port makes the ICRC check of SMPs only, for those may be its own (C7-8.1.1/2, C7-9).
PacketError check_data_packet(const PacketCheck& check, std::span<const std::byte> bytes, LrhFields& out);

/// Whether a port with this LID and LMC is meant (C7-66): multicast and permissive DLIDs always are, for what
/// is attached is known further up.
bool is_own_dlid(Lid dlid, Lid lid, std::uint8_t lmc);

}  // namespace uib::net::link
