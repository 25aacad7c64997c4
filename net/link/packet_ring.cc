#include "net/link/packet_ring.h"

#include <algorithm>

#include "net/wire/length.h"

namespace uib::net::link {
namespace {

/// A block and room for the VCRC, which flow control does not count.
constexpr std::size_t kStride = 72;
static_assert(kStride >= kBlockBytes + kVcrcBytes);

}  // namespace

PacketRing::PacketRing(std::uint32_t blocks, std::uint32_t max_packet_words)
    : max_packet_words_(max_packet_words),
      blocks_(std::max(blocks, blocks_of(max_packet_words))),
      bytes_((blocks_ + blocks_of(max_packet_words)) * kStride),
      entries_(blocks_) {}

std::span<std::byte> PacketRing::reserve(std::uint32_t words) {
    if (words > max_packet_words_ || blocks_of(words) > free_blocks()) return {};
    const std::size_t at = wrapped(head_ + used_) * kStride;
    return std::span(bytes_).subspan(at, std::size_t{words} * 4 + kVcrcBytes);
}

void PacketRing::commit(std::uint32_t words, Time now) {
    entries_[wrapped(first_ + packets_)] = {now, words};
    ++packets_;
    used_ += blocks_of(words);
}

std::span<const std::byte> PacketRing::front() const {
    return std::span(bytes_).subspan(head_ * kStride, std::size_t{front_words()} * 4 + kVcrcBytes);
}

void PacketRing::pop() {
    const std::uint32_t blocks = blocks_of(front_words());
    head_ = wrapped(head_ + blocks);
    used_ -= blocks;
    first_ = wrapped(first_ + 1);
    --packets_;
}

}  // namespace uib::net::link
