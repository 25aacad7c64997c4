// The extension headers behind the BTH (IBA 9.3), one by one and as the opcode calls for them.
#include <cstring>

#include "net/wire/bytes.h"
#include "net/wire/headers.h"

namespace uib::net {

void build_number24(std::uint32_t number, std::span<std::byte, 4> out) {
    store_be<4>(out.data(), number & 0xFFFFFF);
}

std::uint32_t parse_number24(std::span<const std::byte, 4> in) {
    return load_be<std::uint32_t, 3>(&in[1]);
}

void build_deth(const Deth& deth, std::span<std::byte, 8> out) {
    store_be<4>(out.data(), deth.qkey);
    build_number24(deth.source_qp, out.last<4>());
}

Deth parse_deth(std::span<const std::byte, 8> in) {
    return {.qkey = load_be<std::uint32_t>(in.data()), .source_qp = parse_number24(in.last<4>())};
}

void build_reth(const Reth& reth, std::span<std::byte, 16> out) {
    store_be<8>(out.data(), reth.address);
    store_be<4>(&out[8], reth.rkey);
    store_be<4>(&out[12], reth.dma_length);
}

Reth parse_reth(std::span<const std::byte, 16> in) {
    return {.address = load_be<std::uint64_t>(in.data()),
            .rkey = load_be<std::uint32_t>(&in[8]),
            .dma_length = load_be<std::uint32_t>(&in[12])};
}

void build_atomic_eth(const AtomicEth& atomic, std::span<std::byte, 28> out) {
    store_be<8>(out.data(), atomic.address);
    store_be<4>(&out[8], atomic.rkey);
    store_be<8>(&out[12], atomic.swap_add);
    store_be<8>(&out[20], atomic.compare);
}

AtomicEth parse_atomic_eth(std::span<const std::byte, 28> in) {
    return {.address = load_be<std::uint64_t>(in.data()),
            .rkey = load_be<std::uint32_t>(&in[8]),
            .swap_add = load_be<std::uint64_t>(&in[12]),
            .compare = load_be<std::uint64_t>(&in[20])};
}

void build_aeth(const Aeth& aeth, std::span<std::byte, 4> out) {
    out[0] = std::byte{aeth.syndrome};
    store_be<3>(&out[1], aeth.msn);
}

Aeth parse_aeth(std::span<const std::byte, 4> in) {
    return {.syndrome = std::to_integer<std::uint8_t>(in[0]), .msn = load_be<std::uint32_t, 3>(&in[1])};
}

void build_extensions(const Packet& packet, std::span<std::byte> out) {
    const std::uint16_t headers = kOpcodes[packet.bth.opcode].headers;
    Cursor<std::byte> at(out);
    if ((headers & kRdeth) != 0) build_number24(packet.ee_context, at.take<4>());
    if ((headers & kDeth) != 0) build_deth(packet.deth, at.take<8>());
    if ((headers & kXrceth) != 0) build_number24(packet.xrc_srq, at.take<4>());
    if ((headers & kReth) != 0) build_reth(packet.reth, at.take<16>());
    if ((headers & kAtomicEth) != 0) build_atomic_eth(packet.atomic, at.take<28>());
    if ((headers & kAeth) != 0) build_aeth(packet.aeth, at.take<4>());
    if ((headers & kAtomicAckEth) != 0) store_be<8>(at.take<8>().data(), packet.atomic_original);
    // The immediate is opaque to the channel: the client's four bytes as they lie in memory.
    if ((headers & kImmDt) != 0) std::memcpy(at.take<4>().data(), &packet.immediate, 4);
    if ((headers & kIeth) != 0) store_be<4>(at.take<4>().data(), packet.invalidate_key);
}

void parse_extensions(std::span<const std::byte> in, Packet& packet) {
    const std::uint16_t headers = kOpcodes[packet.bth.opcode].headers;
    Cursor<const std::byte> at(in);
    if ((headers & kRdeth) != 0) packet.ee_context = parse_number24(at.take<4>());
    if ((headers & kDeth) != 0) packet.deth = parse_deth(at.take<8>());
    if ((headers & kXrceth) != 0) packet.xrc_srq = parse_number24(at.take<4>());
    if ((headers & kReth) != 0) packet.reth = parse_reth(at.take<16>());
    if ((headers & kAtomicEth) != 0) packet.atomic = parse_atomic_eth(at.take<28>());
    if ((headers & kAeth) != 0) packet.aeth = parse_aeth(at.take<4>());
    if ((headers & kAtomicAckEth) != 0) packet.atomic_original = load_be<std::uint64_t>(at.take<8>().data());
    if ((headers & kImmDt) != 0) std::memcpy(&packet.immediate, at.take<4>().data(), 4);
    if ((headers & kIeth) != 0) packet.invalidate_key = load_be<std::uint32_t>(at.take<4>().data());
}

}  // namespace uib::net
