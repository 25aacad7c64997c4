#include "net/fabric/forwarding_tables.h"

#include <algorithm>

namespace uib::net {

ForwardingTables::ForwardingTables(std::uint16_t linear_cap, std::uint16_t multicast_cap)
    : linear_(linear_cap, kNoRoute), multicast_(multicast_cap) {}

bool ForwardingTables::set_top(Lid top) {
    if (top >= linear_.size()) return false;
    top_ = top;
    return true;
}

bool ForwardingTables::set_linear_block(std::uint32_t block,
                                        std::span<const PortNumber, kLinearBlock> ports) {
    const std::size_t first = std::size_t{block} * kLinearBlock;
    if (first >= linear_.size()) return false;
    const std::size_t count = std::min(kLinearBlock, linear_.size() - first);
    std::copy_n(ports.begin(), count, linear_.begin() + static_cast<std::ptrdiff_t>(first));
    return true;
}

std::array<PortNumber, kLinearBlock> ForwardingTables::linear_block(std::uint32_t block) const {
    std::array<PortNumber, kLinearBlock> ports{};
    for (std::size_t i = 0; i < kLinearBlock; ++i) {
        const std::size_t lid = std::size_t{block} * kLinearBlock + i;
        ports[i] = lid < linear_.size() ? linear_[lid] : kNoRoute;
    }
    return ports;
}

bool ForwardingTables::set_multicast_block(std::uint32_t block, unsigned position,
                                           std::span<const std::uint16_t, kMulticastBlock> masks) {
    const std::size_t first = std::size_t{block} * kMulticastBlock;
    if (first >= multicast_.size() || position >= kPositions) return false;
    for (std::size_t i = 0; i < std::min(kMulticastBlock, multicast_.size() - first); ++i)
        for (unsigned bit = 0; bit < kPortsPerPosition; ++bit)
            multicast_[first + i].set(std::size_t{position} * kPortsPerPosition + bit,
                                      (masks[i] >> bit & 1U) != 0);
    return true;
}

std::array<std::uint16_t, kMulticastBlock> ForwardingTables::multicast_block(std::uint32_t block,
                                                                             unsigned position) const {
    std::array<std::uint16_t, kMulticastBlock> masks{};
    const std::size_t first = std::size_t{block} * kMulticastBlock;
    if (position >= kPositions) return masks;
    for (std::size_t i = 0; i < kMulticastBlock && first + i < multicast_.size(); ++i)
        for (unsigned bit = 0; bit < kPortsPerPosition; ++bit)
            if (multicast_[first + i].test(std::size_t{position} * kPortsPerPosition + bit))
                masks[i] = static_cast<std::uint16_t>(masks[i] | 1U << bit);
    return masks;
}

PortMask ForwardingTables::multicast(Lid mlid) const {
    const auto at = static_cast<std::size_t>(mlid) - kMulticastLidFirst;
    if (at < multicast_.size()) return multicast_[at];
    PortMask mask;
    if (default_multicast_ != kNoRoute) mask.set(default_multicast_);
    return mask;
}

}  // namespace uib::net
