// Get and Set of the tables at a node's ports: GUIDs, P_Keys, SL to VL, VL arbitration (IBA 14.2.5.5 to
// 14.2.5.9).
#include <algorithm>

#include "engine/management/agent.h"
#include "net/wire/bytes.h"

namespace uib::management {
namespace {

constexpr std::size_t kVlArbitrationBlocks = 4;

}  // namespace

std::uint16_t guid_info(Node& node, const Request& request, Data data) {
    NodePort& port = node.end_port(request.port);
    const std::size_t first = std::size_t{request.modifier} * kGuidsInBlock;
    if (first >= port.guids.size()) return net::kMadInvalidValue;
    const std::size_t count = std::min(kGuidsInBlock, port.guids.size() - first);
    if (request.set) {
        for (std::size_t i = first == 0 ? 1 : 0; i < count; ++i)  // entry 0 is the port's own
            port.guids[first + i] = net::load_be<std::uint64_t>(&data[i * 8]);
        node.changed(node.is_switch() ? 0 : request.port);
    }
    std::fill(data.begin(), data.end(), std::byte{0});
    for (std::size_t i = 0; i < count; ++i) net::store_be<8>(&data[i * 8], port.guids[first + i]);
    return 0;
}

std::uint16_t pkey_table(Node& node, const Request& request, Data data) {
    const unsigned block = request.modifier & 0xFFFF;
    const unsigned number = node.is_switch() ? request.modifier >> 16 : request.port;
    if (!node.has_port(number)) return net::kMadInvalidValue;
    std::vector<std::uint16_t>& pkeys = node.port(number).pkeys;
    const std::size_t first = std::size_t{block} * kPkeysInBlock;
    if (first >= pkeys.size()) return net::kMadInvalidValue;
    const std::size_t count = std::min(kPkeysInBlock, pkeys.size() - first);
    if (request.set) {
        for (std::size_t i = 0; i < count; ++i) pkeys[first + i] = net::load_be<std::uint16_t>(&data[i * 2]);
        node.changed(number);
    }
    std::fill(data.begin(), data.end(), std::byte{0});
    for (std::size_t i = 0; i < count; ++i) net::store_be<2>(&data[i * 2], pkeys[first + i]);
    return 0;
}

std::uint16_t sl_to_vl_table(Node& node, const Request& request, Data data) {
    const unsigned in = request.modifier >> 8 & 0xFF;
    const unsigned out = request.modifier & 0xFF;
    if (node.is_switch() && (!node.has_port(in) || !node.has_port(out))) return net::kMadInvalidValue;
    SlToVl& table = node.is_switch() ? node.sl_to_vl(in, out) : node.port(request.port).sl_to_vl;
    if (request.set) {
        table = decode_sl_to_vl(data);
        node.changed(node.is_switch() ? out : request.port);
    }
    std::fill(data.begin(), data.end(), std::byte{0});
    encode(table, data);
    return 0;
}

std::uint16_t vl_arbitration_table(Node& node, const Request& request, Data data) {
    const unsigned block = request.modifier >> 16;
    const unsigned number = node.is_switch() ? request.modifier & 0xFFFF : request.port;
    if (!node.has_port(number) || block == 0 || block > kVlArbitrationBlocks) return net::kMadInvalidValue;
    NodePort& port = node.port(number);
    // With one data VL there is nothing to arbitrate.
    if (data_vls(port.info.vl_cap) <= 1) return net::kMadAttributeNotSupported;
    if (request.set) {
        port.vl_arbitration[block - 1] = decode_vl_arbitration(data);
        node.changed(number);
    }
    std::fill(data.begin(), data.end(), std::byte{0});
    encode(port.vl_arbitration[block - 1], data);
    return 0;
}

}  // namespace uib::management
