#include "engine/daemon/subnet_status.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace uib::daemon {

namespace {

using nlohmann::ordered_json;

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(value));
    return text;
}

const char* name_of(management::SmState state) {
    switch (state) {
        case management::SmState::kNotActive:
            return "not active";
        case management::SmState::kDiscovering:
            return "discovering";
        case management::SmState::kStandby:
            return "standby";
        case management::SmState::kMaster:
            return "master";
    }
    return "?";
}

const char* type_of(const management::Node& node) {
    if (node.is_switch()) return "switch";
    return node.info.type == management::kNodeIsRouter ? "router" : "adapter";
}

ordered_json node_json(const management::Node& node, unsigned port) {
    const management::PortInfo& info = node.port(port).info;
    return {{"type", type_of(node)},
            {"description", node.description},
            {"guid", hex(node.info.node_guid)},
            {"lid", info.lid},
            {"lmc", info.lmc}};
}

}  // namespace

ordered_json subnets_json(const verbs::Adapter& adapter) {
    ordered_json all = ordered_json::array();
    for (const verbs::Adapter::Subnet& subnet : adapter.subnets()) {
        if (subnet.nodes == nullptr) continue;
        const management::EngineSubnet& nodes = *subnet.nodes;
        const management::PortInfo& first = nodes.port_of(0).info;
        ordered_json shown = {{"name", subnet.config.name},
                              {"prefix", hex(first.gid_prefix)},
                              {"master_lid", first.master_sm_lid},
                              {"manager", "none"}};
        if (const management::SubnetManager* manager = nodes.manager(); manager != nullptr) {
            shown["manager"] = name_of(manager->state());
            shown["manager_guid"] = hex(manager->guid());
            shown["sweeps"] = manager->sweeps();
        }
        ordered_json list = ordered_json::array();
        for (std::size_t i = 0; i < nodes.adapters(); ++i)
            list.push_back(node_json(nodes.adapter(i).node(), 1));
        list.push_back(node_json(nodes.switch_node().node(), 0));
        shown["nodes"] = list;
        ordered_json drops;
        for (std::size_t cause = 0; cause < net::kSwitchDropCount; ++cause)
            drops[net::name_of(static_cast<net::SwitchDrop>(cause))] =
                subnet.fabric->dropped(static_cast<net::SwitchDrop>(cause));
        shown["switch_drops"] = drops;
        all.push_back(shown);
    }
    return all;
}

ordered_json router_json(const verbs::Adapter& adapter) {
    const net::Router* router = adapter.router();
    if (router == nullptr) return nullptr;
    ordered_json drops;
    for (std::size_t cause = 0; cause < net::kRouterDropCount; ++cause)
        drops[net::name_of(static_cast<net::RouterDrop>(cause))] =
            router->dropped(static_cast<net::RouterDrop>(cause));
    return {{"forwarded", router->forwarded()}, {"drops", drops}};
}

}  // namespace uib::daemon
