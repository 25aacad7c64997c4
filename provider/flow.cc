#include "provider/flow.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "engine/ipc/control_flow.h"
#include "provider/context.h"
#include "provider/qp.h"

namespace uib::provider {
namespace {

constexpr std::uint32_t kNetworkLayers = ipc::kFlowIpv4 | ipc::kFlowIpv6;
constexpr std::uint32_t kTransportLayers = ipc::kFlowTcp | ipc::kFlowUdp;

template <std::size_t N, typename T>
void put(std::uint8_t (&to)[N], const T& from) {
    static_assert(sizeof from <= N);
    std::memcpy(to, &from, sizeof from);
}

void put(ipc::FlowFields& to, const ibv_flow_eth_filter& from) {
    put(to.destination_mac, from.dst_mac);
    put(to.source_mac, from.src_mac);
    put(to.ether_type, from.ether_type);
    put(to.vlan_tag, from.vlan_tag);
}
void put(ipc::FlowFields& to, const ibv_flow_ipv4_filter& from) {
    put(to.source_ip, from.src_ip);
    put(to.destination_ip, from.dst_ip);
}
void put(ipc::FlowFields& to, const ibv_flow_ipv4_ext_filter& from) {
    put(to.source_ip, from.src_ip);
    put(to.destination_ip, from.dst_ip);
    to.protocol = from.proto;
    to.traffic_class = from.tos;
    to.hop_limit = from.ttl;
    to.ip_flags = from.flags;
}
void put(ipc::FlowFields& to, const ibv_flow_ipv6_filter& from) {
    put(to.source_ip, from.src_ip);
    put(to.destination_ip, from.dst_ip);
    put(to.flow_label, from.flow_label);
    to.protocol = from.next_hdr;
    to.traffic_class = from.traffic_class;
    to.hop_limit = from.hop_limit;
}
void put(ipc::FlowFields& to, const ibv_flow_tcp_udp_filter& from) {
    put(to.source_port, from.src_port);
    put(to.destination_port, from.dst_port);
}

template <typename Spec>
int take(ipc::CreateFlowRequest& request, const ibv_flow_spec& spec) {
    if (spec.hdr.size != sizeof(Spec)) return EINVAL;
    Spec copy;  // behind specifications of other sizes it may lie at any address
    std::memcpy(&copy, &spec, sizeof copy);
    put(request.value, copy.val);
    put(request.mask, copy.mask);
    return 0;
}

/// Notes that the rule asks for `layer`; EINVAL if it does so for another of `alternatives` already.
int add_layer(ipc::CreateFlowRequest& request, std::uint32_t layer, std::uint32_t alternatives) {
    if ((request.layers & alternatives) != 0) return EINVAL;
    request.layers |= layer;
    return 0;
}

int take_spec(ipc::CreateFlowRequest& request, const ibv_flow_spec& spec, std::uint32_t type,
              bool& ethernet) {
    int error = 0;
    switch (type) {
        case IBV_FLOW_SPEC_ETH:
            if (ethernet) return EINVAL;
            ethernet = true;
            return take<ibv_flow_spec_eth>(request, spec);
        case IBV_FLOW_SPEC_IPV4:
            error = add_layer(request, ipc::kFlowIpv4, kNetworkLayers);
            return error != 0 ? error : take<ibv_flow_spec_ipv4>(request, spec);
        case IBV_FLOW_SPEC_IPV4_EXT:
            error = add_layer(request, ipc::kFlowIpv4, kNetworkLayers);
            return error != 0 ? error : take<ibv_flow_spec_ipv4_ext>(request, spec);
        case IBV_FLOW_SPEC_IPV6:
            error = add_layer(request, ipc::kFlowIpv6, kNetworkLayers);
            return error != 0 ? error : take<ibv_flow_spec_ipv6>(request, spec);
        case IBV_FLOW_SPEC_TCP:
        case IBV_FLOW_SPEC_UDP:
            error = add_layer(request, type == IBV_FLOW_SPEC_TCP ? ipc::kFlowTcp : ipc::kFlowUdp,
                              kTransportLayers);
            return error != 0 ? error : take<ibv_flow_spec_tcp_udp>(request, spec);
        default:
            return EOPNOTSUPP;
    }
}

int to_request(const ibv_flow_attr& attributes, ipc::CreateFlowRequest& request) {
    if (attributes.comp_mask != 0) return EOPNOTSUPP;
    if ((attributes.flags & ~std::uint32_t{IBV_FLOW_ATTR_FLAGS_DONT_TRAP}) != 0) return EOPNOTSUPP;
    if (attributes.type != IBV_FLOW_ATTR_NORMAL && attributes.num_of_specs != 0) return EINVAL;
    request.port = attributes.port;
    request.type = attributes.type;
    request.priority = attributes.priority;
    request.flags = attributes.flags;
    const auto* at = reinterpret_cast<const std::byte*>(&attributes + 1);
    bool ethernet = false;
    for (unsigned i = 0; i < attributes.num_of_specs; ++i) {
        const auto& spec = *reinterpret_cast<const ibv_flow_spec*>(at);
        std::uint32_t type = 0;
        std::memcpy(&type, at, sizeof type);
        if (const int error = take_spec(request, spec, type, ethernet); error != 0) return error;
        at += spec.hdr.size;
    }
    return 0;
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) {
    ipc::CreateFlowRequest request{};
    request.qp = qp->handle;
    ipc::HandleBody made{};
    int error = to_request(*attributes, request);
    auto flow = std::make_unique<ibv_flow>();
    if (error == 0) error = Qp::of(qp).context->control().call(ipc::Operation::kCreateFlow, request, made);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    flow->context = qp->context;
    flow->handle = made.handle;
    return flow.release();
}

int destroy_flow(ibv_flow* handle) {
    Context& context = Context::of(handle->context);
    const int error =
        context.control().command(ipc::Operation::kDestroyFlow, ipc::HandleBody{handle->handle, 0});
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<ibv_flow> owner(handle);
    return 0;
}

}  // namespace uib::provider
