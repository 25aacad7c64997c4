#include "provider/ah.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "provider/context.h"

namespace uib::provider {
namespace {

in6_addr address_of(const void* gid) {
    in6_addr address;
    std::memcpy(&address, gid, sizeof address);
    return address;
}

/// RoCE: from an address that exists to one of the same family; IPv4 addresses are IPv4-mapped.
bool good_ends(const void* source, const void* destination) {
    const in6_addr from = address_of(source);
    const in6_addr to = address_of(destination);
    if (IN6_IS_ADDR_UNSPECIFIED(&from)) return false;
    return (IN6_IS_ADDR_V4MAPPED(&from) != 0) == (IN6_IS_ADDR_V4MAPPED(&to) != 0);
}

int check(Context& context, const ibv_ah_attr& attributes) {
    if (!context.has_port(attributes.port_num) || attributes.sl > 15) return EINVAL;
    PortFacts& port = context.port(attributes.port_num);
    const bool ethernet = port.link_layer.load(std::memory_order_relaxed) == IBV_LINK_LAYER_ETHERNET;
    if (!attributes.is_global) return ethernet ? EINVAL : 0;
    const unsigned index = attributes.grh.sgid_index;
    if (!ethernet && index < port.gid_count.load(std::memory_order_relaxed)) return 0;
    // The table may have grown since it was last looked at; an Ethernet port's follows the interface.
    ipc::PortAttributes now{};
    if (const int error = context.query_port(attributes.port_num, now); error != 0) return error;
    if (index >= now.gid_table_length) return EINVAL;
    return !ethernet || good_ends(now.gids[index], attributes.grh.dgid.raw) ? 0 : EINVAL;
}

}  // namespace

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
    Context& context = Context::of(pd->context);
    if (const int error = check(context, *attributes); error != 0) {
        errno = error;
        return nullptr;
    }
    auto ah = std::make_unique<Ah>();
    ah->pd = pd->handle;
    ipc::AddressVector& vector = ah->vector;
    std::memcpy(vector.dgid, attributes->grh.dgid.raw, sizeof vector.dgid);
    vector.flow_label = attributes->grh.flow_label;
    vector.dlid = attributes->dlid;
    vector.sl = attributes->sl;
    vector.source_path_bits = attributes->src_path_bits;
    vector.static_rate = attributes->static_rate;
    vector.is_global = attributes->is_global;
    vector.sgid_index = attributes->grh.sgid_index;
    vector.hop_limit = attributes->grh.hop_limit;
    vector.traffic_class = attributes->grh.traffic_class;
    vector.port = attributes->port_num;
    return &ah.release()->ah;
}

int destroy_ah(ibv_ah* handle) {
    const std::unique_ptr<Ah> owner(&Ah::of(handle));
    return 0;
}

ipc::PathAttributes to_path(const ibv_ah_attr& attributes) {
    ipc::PathAttributes path{};
    std::memcpy(path.dgid, attributes.grh.dgid.raw, sizeof path.dgid);
    path.flow_label = attributes.grh.flow_label;
    path.dlid = attributes.dlid;
    path.sgid_index = attributes.grh.sgid_index;
    path.hop_limit = attributes.grh.hop_limit;
    path.traffic_class = attributes.grh.traffic_class;
    path.sl = attributes.sl;
    path.source_path_bits = attributes.src_path_bits;
    path.static_rate = attributes.static_rate;
    path.is_global = attributes.is_global;
    path.port = attributes.port_num;
    return path;
}

ibv_ah_attr from_path(const ipc::PathAttributes& path) {
    ibv_ah_attr attributes{};
    std::memcpy(attributes.grh.dgid.raw, path.dgid, sizeof path.dgid);
    attributes.grh.flow_label = path.flow_label;
    attributes.dlid = path.dlid;
    attributes.grh.sgid_index = path.sgid_index;
    attributes.grh.hop_limit = path.hop_limit;
    attributes.grh.traffic_class = path.traffic_class;
    attributes.sl = path.sl;
    attributes.src_path_bits = path.source_path_bits;
    attributes.static_rate = path.static_rate;
    attributes.is_global = path.is_global;
    attributes.port_num = path.port;
    return attributes;
}

}  // namespace uib::provider
