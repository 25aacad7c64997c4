#include "net/encap/ib_trunk.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "net/wire/bytes.h"

namespace uib::net {
namespace {

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kHeaderBytes = kEthernetBytes + 2;  // kind and version
constexpr std::size_t kMinFrame = 60;
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kKindData = 0;
constexpr std::uint8_t kKindLink = 1;
constexpr std::uint8_t kKindHello = 2;
constexpr std::size_t kHelloBytes = 8 + 8 + 1;  // identity, identity heard, MTU code
constexpr std::size_t kLinkPacketBytes = 6;     // operand to LPCRC
/// Between LRH and VCRC, the MTU apart (7.7.8, table 22), and our two bytes.
constexpr std::uint32_t kOverhead = 124 + 2 + 2;
constexpr MacAddress kBroadcast = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

MacAddress mac_at(std::span<const std::byte> frame, std::size_t offset) {
    MacAddress mac;
    std::memcpy(mac.data(), frame.data() + offset, mac.size());
    return mac;
}

/// Bytes of a frame's packet: Ethernet fills short frames up, and the packet tells its length.
std::span<const std::byte> packet_in(std::span<const std::byte> body, std::uint8_t kind) {
    if (kind == kKindLink) return body.first(std::min(body.size(), kLinkPacketBytes));
    if (body.size() < 8) return body;
    const std::size_t words = load_be<std::uint16_t>(body.data() + 4) & 0x7FF;
    return body.first(std::min(body.size(), words * 4 + 2));
}

}  // namespace

IbTrunk::IbTrunk(std::unique_ptr<FramePort> port, IbTrunkOptions options)
    : port_(std::move(port)), options_(std::move(options)) {
    const std::uint32_t mtu = ib_mtu_within(port_->mtu(), kOverhead);
    mtu_code_ = static_cast<std::uint8_t>(mtu == 0 ? 0 : std::bit_width(mtu >> 8));
    options_.link.mtu_cap =
        std::clamp<std::uint8_t>(options_.link.mtu_cap, 1, std::max<std::uint8_t>(mtu_code_, 1));
    for (unsigned i = 0; i < std::max(options_.slots, 1U); ++i)
        slots_.push_back(std::make_unique<Slot>(options_.link));
    for (std::size_t i = 0; i < std::min(options_.peers.size(), slots_.size()); ++i)
        slots_[i]->mac = options_.peers[i];
    scratch_.resize(slots_.front()->link->max_frame_bytes());
}

std::optional<MacAddress> IbTrunk::peer(std::size_t slot) const {
    return slots_[slot]->mac;
}

IbTrunk::Slot* IbTrunk::slot_of(const MacAddress& mac) {
    const auto found =
        std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->mac == mac; });
    return found == slots_.end() ? nullptr : found->get();
}

IbTrunk::Slot* IbTrunk::claim(const MacAddress& mac) {
    if (Slot* known = slot_of(mac)) return known;
    if (!options_.peers.empty()) return nullptr;
    const auto free = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->mac; });
    if (free == slots_.end()) return nullptr;
    (*free)->mac = mac;
    return free->get();
}

bool IbTrunk::receive(Time now) {
    if (now >= next_hello_) port_->refresh();
    const auto frames = port_->receive();
    for (const std::span<const std::byte> frame : frames) {
        if (frame.size() < kEthernetBytes ||
            load_be<std::uint16_t>(frame.data() + 12) != options_.ether_type) {
            ++counters_.rx_foreign;
            continue;
        }
        if (frame.size() < kHeaderBytes || frame[kEthernetBytes + 1] != std::byte{kVersion}) {
            ++counters_.rx_malformed;
            continue;
        }
        // A bridge that does not know where a host is floods what is for it.
        const MacAddress to = mac_at(frame, 0);
        if (to != kBroadcast && to != port_->mac()) {
            ++counters_.rx_other_host;
            continue;
        }
        const MacAddress from = mac_at(frame, 6);
        const auto kind = std::to_integer<std::uint8_t>(frame[kEthernetBytes]);
        const std::span<const std::byte> body = frame.subspan(kHeaderBytes);
        if (kind == kKindHello) {
            on_hello(from, to == kBroadcast, body, now);
            continue;
        }
        if (kind != kKindData && kind != kKindLink) {
            ++counters_.rx_malformed;
            continue;
        }
        Slot* slot = slot_of(from);
        if (slot == nullptr || !slot->up) {
            ++counters_.rx_unknown_peer;
            continue;
        }
        link::Frame in;
        in.start = kind == kKindData ? link::FrameStart::kData : link::FrameStart::kLink;
        in.bytes = packet_in(body, kind);
        slot->link->on_frame(in, now);
    }
    check_silence(now);
    if (now >= next_hello_) say_hello(now);
    return !frames.empty();
}

void IbTrunk::on_hello(const MacAddress& from, bool broadcast, std::span<const std::byte> body, Time now) {
    const auto identity = body.size() < kHelloBytes ? 0 : load_be<std::uint64_t>(body.data());
    if (identity == 0) {  // nobody's: it stands for a peer that is not heard
        ++counters_.rx_malformed;
        return;
    }
    Slot* slot = claim(from);
    if (slot == nullptr) {
        ++counters_.rx_no_slot;
        return;
    }
    const auto heard = load_be<std::uint64_t>(body.data() + 8);
    if (std::to_integer<std::uint8_t>(body[16]) != mtu_code_) {
        ++counters_.mtu_mismatch;
        return;
    }
    const bool fresh = slot->identity != identity;
    // A peer that has started anew knows nothing of the link: it goes down first.
    if (fresh) set_up(*slot, false, now);
    // A broadcast says nothing of whom its sender hears.
    const bool hears_us = broadcast ? !fresh && slot->hears_us : heard == options_.identity;
    const bool news = fresh || hears_us != slot->hears_us;
    slot->identity = identity;
    slot->heard_at = now;
    slot->hears_us = hears_us;
    if (news) send_hello(from, identity);
    set_up(*slot, slot->hears_us, now);
}

void IbTrunk::set_up(Slot& slot, bool up, Time now) {
    if (slot.up == up) return;
    slot.up = up;
    slot.link->set_physical_link(up, now);
}

void IbTrunk::check_silence(Time now) {
    for (const auto& slot : slots_) {
        if (slot->identity == 0 || now - slot->heard_at < kHelloTimeout) continue;
        slot->identity = 0;
        slot->hears_us = false;
        set_up(*slot, false, now);
    }
}

void IbTrunk::say_hello(Time now) {
    next_hello_ = now + kHelloInterval;
    if (mtu_code_ == 0) return;
    for (const auto& slot : slots_)
        if (slot->mac) send_hello(*slot->mac, slot->identity);
    if (options_.peers.empty()) send_hello(kBroadcast, 0);
}

std::span<std::byte> IbTrunk::begin_frame(const MacAddress& to, std::uint8_t kind, std::size_t body) {
    const std::size_t bytes = std::max(kMinFrame, kHeaderBytes + body);
    const std::span<std::byte> frame = port_->allocate(bytes);
    if (frame.empty()) {
        ++counters_.tx_no_buffer;
        return {};
    }
    const MacAddress own = port_->mac();
    std::memcpy(frame.data(), to.data(), to.size());
    std::memcpy(frame.data() + 6, own.data(), own.size());
    store_be<2>(frame.data() + 12, options_.ether_type);
    frame[kEthernetBytes] = std::byte{kind};
    frame[kEthernetBytes + 1] = std::byte{kVersion};
    std::fill(frame.begin() + static_cast<std::ptrdiff_t>(kHeaderBytes + body), frame.end(), std::byte{0});
    return frame.subspan(kHeaderBytes, body);
}

void IbTrunk::send_hello(const MacAddress& to, std::uint64_t heard) {
    const std::span<std::byte> body = begin_frame(to, kKindHello, kHelloBytes);
    if (body.empty()) return;
    store_be<8>(body.data(), options_.identity);
    store_be<8>(body.data() + 8, heard);
    body[16] = std::byte{mtu_code_};
    port_->commit();
}

// The links take turns, one frame each, so that none starves another; a frame that has left its link must
// find room.
void IbTrunk::send(Time now) {
    std::size_t silent = 0;
    for (std::size_t at = first_; silent < slots_.size() && port_->room() > 1;
         at = (at + 1) % slots_.size()) {
        first_ = (at + 1) % slots_.size();
        Slot& slot = *slots_[at];
        const link::Frame out = slot.up ? slot.link->next_frame(now, scratch_) : link::Frame{};
        if (out.bytes.empty()) {
            ++silent;
            continue;
        }
        silent = 0;
        const std::uint8_t kind = out.start == link::FrameStart::kLink ? kKindLink : kKindData;
        const std::span<std::byte> body = begin_frame(*slot.mac, kind, out.bytes.size());
        if (body.empty()) return;
        std::copy(out.bytes.begin(), out.bytes.end(), body.begin());
        port_->commit();
    }
}

void IbTrunk::end_turn() {
    port_->flush();
    port_->release();
}

Time IbTrunk::next_deadline() const {
    if (port_->unsent()) return 0;
    Time at = next_hello_;
    for (const auto& slot : slots_) {
        at = std::min(at, slot->link->next_deadline());
        if (slot->identity != 0) at = std::min(at, slot->heard_at + kHelloTimeout);
    }
    return at;
}

}  // namespace uib::net
