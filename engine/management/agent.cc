#include "engine/management/agent.h"

#include <algorithm>
#include <cstring>

#include "engine/management/management_key.h"

namespace uib::management {
namespace {

constexpr std::uint8_t kSubnClassVersion = 1;
constexpr std::size_t kMkeyBytes = 8;  // PortInfo starts with the key

std::uint16_t node_info(Node& node, const Request& request, Data data) {
    if (request.set) return net::kMadAttributeNotSupported;
    NodeInfo info = node.info;
    info.port_guid = node.end_port(request.port).guids[0];
    info.partition_cap = node.end_port(request.port).pkeys.size();
    info.local_port = request.port;
    encode(info, data);
    return 0;
}

std::uint16_t node_description(Node& node, const Request& request, Data data) {
    if (request.set) return net::kMadAttributeNotSupported;
    std::memcpy(data.data(), node.description.data(), std::min(node.description.size(), data.size()));
    return 0;
}

std::uint16_t perform(Node& node, AttributeId attribute, const Request& request, Data data) {
    switch (attribute) {
        case AttributeId::kNodeDescription:
            return node_description(node, request, data);
        case AttributeId::kNodeInfo:
            return node_info(node, request, data);
        case AttributeId::kSwitchInfo:
            return switch_info(node, request, data);
        case AttributeId::kGuidInfo:
            return guid_info(node, request, data);
        case AttributeId::kPortInfo:
            return port_info(node, request, data);
        case AttributeId::kPkeyTable:
            return pkey_table(node, request, data);
        case AttributeId::kSlToVlMappingTable:
            return sl_to_vl_table(node, request, data);
        case AttributeId::kVlArbitrationTable:
            return vl_arbitration_table(node, request, data);
        case AttributeId::kLinearForwardingTable:
            return linear_table(node, request, data);
        case AttributeId::kMulticastForwardingTable:
            return multicast_table(node, request, data);
        case AttributeId::kNotice:
        case AttributeId::kSmInfo:  // a manager's, if there is one
            break;
    }
    return net::kMadAttributeNotSupported;
}

}  // namespace

std::optional<net::Smp> answer(Node& node, unsigned port, const net::Smp& request, Time now) {
    const net::MadHeader& header = request.header;
    net::Smp reply = request;
    reply.header.method = net::MadMethod::kGetResponse;
    reply.header.status = 0;
    reply.route.returning = true;
    if (header.base_version != net::kMadBaseVersion || header.class_version != kSubnClassVersion) {
        reply.header.status = net::kMadBadVersion;
        return reply;
    }
    const KeyCheck key = check_management_key(node.end_port(port), request, now);
    if (key == KeyCheck::kFail || header.method == net::MadMethod::kTrapRepress) return std::nullopt;
    const bool set = header.method == net::MadMethod::kSet;
    if (!set && header.method != net::MadMethod::kGet) {
        reply.header.status = net::kMadMethodNotSupported;
        return reply;
    }
    if (!set) reply.data.fill(std::byte{0});
    const auto attribute = static_cast<AttributeId>(header.attribute_id);
    reply.header.status = perform(node, attribute, {set, header.attribute_modifier, port}, reply.data);
    if (key == KeyCheck::kPassHidden && attribute == AttributeId::kPortInfo)
        std::fill_n(reply.data.begin(), kMkeyBytes, std::byte{0});
    return reply;
}

}  // namespace uib::management
