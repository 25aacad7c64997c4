#include "engine/daemon/subnet_status.h"

#include <nlohmann/json.hpp>

#include "engine/daemon/status_text.h"
#include "net/wire/text.h"

namespace uib::daemon {

namespace {

using nlohmann::ordered_json;

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

ordered_json general_json(const management::GeneralServices& general) {
    const management::GroupMemberships::Counters& counters = general.memberships().counters();
    const management::GeneralServices::Drops& drops = general.drops();
    ordered_json memberships = ordered_json::array();
    for (const auto& membership : general.memberships().list())
        memberships.push_back({{"group", net::gid_text(membership.group)},
                               {"adapter", membership.adapter},
                               {"mlid", membership.mlid},
                               {"registered", membership.registered}});
    return {{"memberships", memberships},
            {"membership_requests", counters.requests},
            {"membership_refused", counters.refused},
            {"membership_unanswered", counters.unanswered},
            {"membership_abandoned", counters.abandoned},
            {"drops",
             {{"pkey", drops.pkey},
              {"qkey", drops.qkey},
              {"malformed", drops.malformed},
              {"management_class", drops.management_class},
              {"not_master", drops.not_master},
              {"unexpected", drops.unexpected}}}};
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
            shown["settled"] = manager->settled();
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
        if (all.empty() && adapter.general() != nullptr)  // of the first subnet
            shown["general_services"] = general_json(*adapter.general());
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
