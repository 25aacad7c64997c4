// A packet in host form: the headers of IBA chapters 7 to 9 as values, and a reference to the payload.
//
// This is what travels on the internal fabric and what transport machines take and give. A port that leaves
// the machine encodes it. Multi-byte fields are in host order; the immediate is kept as the client's four
// bytes. Only the extension headers that the opcode calls for are meaningful. The payload is a view: on the
// internal fabric into the sender's memory or the lane's staging memory, valid until the end of the lane's
// turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/opcode.h"

namespace uib::net {

using Gid = std::array<std::uint8_t, 16>;
using Lid = std::uint16_t;

inline constexpr Lid kMulticastLidFirst = 0xC000;
inline constexpr Lid kPermissiveLid = 0xFFFF;
inline constexpr std::uint32_t kMulticastQp = 0xFFFFFF;
inline constexpr std::uint32_t kGrhBytes = 40;

struct Lrh {  // 7.7
    Lid dlid = 0;
    Lid slid = 0;
    std::uint8_t sl = 0;
    std::uint8_t vl = 0;
};

struct Grh {  // 8.3
    Gid sgid{};
    Gid dgid{};
    std::uint32_t flow_label = 0;
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 0;
};

struct Bth {  // 9.2
    std::uint8_t opcode = 0;
    std::uint8_t pad =
        0;  ///< PadCnt: bytes behind the payload that fill its last word (payload excludes them)
    bool solicited = false;
    bool mig_req = true;
    bool ack_req = false;
    bool fecn = false;
    bool becn = false;
    std::uint16_t pkey = 0xFFFF;
    std::uint32_t dest_qp = 0;
    std::uint32_t psn = 0;

    [[nodiscard]] Operation operation() const { return operation_of(opcode); }
    [[nodiscard]] Service service() const { return service_of(opcode); }
};

struct Deth {  // 9.3.3
    std::uint32_t qkey = 0;
    std::uint32_t source_qp = 0;
};
// These two share their place in Packet, so they have no initializers of their own.
struct Reth {  // 9.3.4
    std::uint64_t address;
    std::uint32_t rkey;
    std::uint32_t dma_length;
};
struct AtomicEth {  // 9.3.5
    std::uint64_t address;
    std::uint32_t rkey;
    std::uint64_t swap_add;
    std::uint64_t compare;
};
struct Aeth {  // 9.3.6
    std::uint8_t syndrome = 0;
    std::uint32_t msn = 0;
};

/// What a packet is behind its link header (7.7.5, LNH), or an Ethernet frame.
enum class PacketKind : std::uint8_t {
    kTransport,     ///< BTH follows, behind a GRH if has_grh
    kRawEthertype,  ///< raw datagram (9.8.4): RWH with `ethertype`, then the payload
    kRawIpv6,       ///< raw datagram: an IPv6 packet of another transport; the payload starts with its header
    kEthernet,      ///< a whole Ethernet frame without FCS, between ports whose link layer is Ethernet
};

struct Packet {
    Lrh lrh;
    std::uint8_t subnet = 0;  ///< not of the wire: in which of the engine's subnets the LIDs are
    Bth bth;
    PacketKind kind = PacketKind::kTransport;
    bool has_grh = false;
    std::uint16_t ethertype = 0;  ///< kRawEthertype
    Aeth aeth;
    Deth deth;
    union {  // no request carries more than one of these
        Reth reth{};
        AtomicEth atomic;
    };
    std::uint64_t atomic_original = 0;  ///< AtomicAckETH
    std::uint32_t immediate = 0;        ///< ImmDt, the client's bytes
    std::uint32_t invalidate_key = 0;   ///< IETH
    union {                             // services of their own
        std::uint32_t xrc_srq = 0;      ///< XRCETH: number of the responder's XRC shared receive queue
        std::uint32_t ee_context;       ///< RDETH: number of the receiver's EE context
    };
    /// A fault to be made: this bit of the packet's wire form (counted round its length) is flipped when it
    /// is encoded, CRCs already made. 0: none.
    std::uint32_t damaged_bit = 0;
    std::span<const std::byte> payload;
    Grh grh;
};
// A lane copies thousands of them a turn.
static_assert(sizeof(Packet) <= 160);

/// The GRH's 40 bytes as a UD receiver finds them in front of its payload; with IPv4 addresses 20 undefined
/// bytes (zeros) and an IPv4 header. `payload_length` counts what follows the GRH.
std::array<std::byte, kGrhBytes> encode_grh(const Grh& grh, std::size_t payload_length);

}  // namespace uib::net
