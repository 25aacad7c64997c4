// Get and Set of what only a switch has: SwitchInfo and its forwarding tables (IBA 14.2.5.4, 14.2.5.10,
// 14.2.5.12).
#include <algorithm>

#include "engine/management/agent.h"
#include "net/wire/bytes.h"

namespace uib::management {
namespace {

/// Takes over what may be set. False if LinearFDBTop is beyond the table.
bool set_switch_info(Node& node, const SwitchInfo& wanted) {
    SwitchInfo& held = node.switch_info;
    const bool good = node.fabric().set_top(static_cast<net::Lid>(wanted.linear_top));
    if (good) held.linear_top = wanted.linear_top;
    held.default_port = wanted.default_port;
    held.default_multicast_primary = wanted.default_multicast_primary;
    held.default_multicast_other = wanted.default_multicast_other;
    held.life_time = wanted.life_time;
    held.multicast_top = wanted.multicast_top;
    if (wanted.port_state_change != 0) held.port_state_change = 0;
    node.fabric().set_default_multicast_port(static_cast<net::PortNumber>(held.default_multicast_primary));
    return good;
}

}  // namespace

std::uint16_t switch_info(Node& node, const Request& request, Data data) {
    if (!node.is_switch()) return net::kMadAttributeNotSupported;
    const bool good = !request.set || set_switch_info(node, decode_switch_info(data));
    if (request.set) node.changed(0);
    std::fill(data.begin(), data.end(), std::byte{0});
    encode(node.switch_info, data);
    return good ? 0 : net::kMadInvalidValue;
}

std::uint16_t linear_table(Node& node, const Request& request, Data data) {
    if (!node.is_switch()) return net::kMadAttributeNotSupported;
    const std::uint32_t block = request.modifier;
    if (block * net::kLinearBlock >= node.fabric().tables().linear_cap()) return net::kMadInvalidValue;
    std::array<net::PortNumber, net::kLinearBlock> ports{};
    if (request.set) {
        std::transform(data.begin(), data.end(), ports.begin(),
                       [](std::byte b) { return std::to_integer<net::PortNumber>(b); });
        node.fabric().set_linear_block(block, ports);
    }
    ports = node.fabric().tables().linear_block(block);
    std::transform(ports.begin(), ports.end(), data.begin(), [](net::PortNumber p) { return std::byte{p}; });
    return 0;
}

std::uint16_t multicast_table(Node& node, const Request& request, Data data) {
    if (!node.is_switch()) return net::kMadAttributeNotSupported;
    const std::uint32_t block = request.modifier & 0x1FF;
    const unsigned position = request.modifier >> 28;
    if (block * net::kMulticastBlock >= node.fabric().tables().multicast_cap()) return net::kMadInvalidValue;
    std::array<std::uint16_t, net::kMulticastBlock> masks{};
    if (request.set) {
        for (std::size_t i = 0; i < masks.size(); ++i) masks[i] = net::load_be<std::uint16_t>(&data[i * 2]);
        node.fabric().set_multicast_block(block, position, masks);
    }
    masks = node.fabric().tables().multicast_block(block, position);
    for (std::size_t i = 0; i < masks.size(); ++i) net::store_be<2>(&data[i * 2], masks[i]);
    return 0;
}

}  // namespace uib::management
