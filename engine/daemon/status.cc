#include "engine/daemon/status.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/daemon/faults.h"
#include "engine/daemon/link_status.h"
#include "engine/daemon/status_text.h"
#include "engine/daemon/subnet_status.h"
#include "engine/verbs/qp_counter_names.h"
#include "net/wire/text.h"

namespace uib::daemon {

namespace {

using nlohmann::ordered_json;

ordered_json objects_json(const verbs::ObjectCounts& counts) {
    return {{"pd", counts.pd},
            {"mr", counts.mr},
            {"mw", counts.mw},
            {"cq", counts.cq},
            {"qp", counts.qp},
            {"srq", counts.srq},
            {"channel", counts.channel},
            {"dm", counts.dm},
            {"xrcd", counts.xrcd},
            {"wq", counts.wq},
            {"rwq_table", counts.rwq_table}};
}

const char* port_state_name(std::uint32_t state) {
    constexpr std::array kNames = {"NOP",   "DOWN",   "INIT",
                                   "ARMED", "ACTIVE", "ACTIVE_DEFER"};  // ibv_port_state
    return state < kNames.size() ? kNames.at(state) : "?";
}

ordered_json device_json(const verbs::Adapter& adapter, const verbs::Device& device) {
    ordered_json gids = ordered_json::array();
    for (const net::Gid& gid : device.gids())
        if (gid != net::Gid{}) gids.push_back(net::gid_text(gid));
    const TreePort port = tree_port(adapter, device);
    ordered_json counters = port.counters;
    for (const auto& [name, value] : port.hw_counters) counters[name] = value;
    ordered_json shown = {{"number", 1},
                          {"state", port_state_name(port.state)},
                          {"link_layer", port.link_layer},
                          {"lid", port.lid},
                          {"gids", gids},
                          {"counters", counters}};
    if (device.ethernet()) shown["mac"] = mac_text(device.mac());
    if (device.uplink() != nullptr)
        shown["ingress_drop"] = device.uplink()->ingress_error() == 0 ? "on" : "off";
    return {
        {"name", device.name()}, {"node_guid", hex(device.guid())}, {"ports", ordered_json::array({shown})}};
}

}  // namespace

TreePort tree_port(const verbs::Adapter& adapter, const verbs::Device& device) {
    const ipc::PortAttributes attributes = device.port_attributes();
    const net::PortCounters& counters = device.counters();
    TreePort port;
    port.number = 1;
    port.state = attributes.state;
    port.phys_state = attributes.phys_state;
    port.lid = attributes.lid;
    port.lid_mask_count = attributes.lmc;
    port.sm_lid = attributes.sm_lid;
    port.sm_sl = attributes.sm_sl;
    port.cap_mask = attributes.port_cap_flags;
    port.rate = "100 Gb/sec (4X EDR)";
    port.link_layer = device.ethernet() ? "Ethernet" : "InfiniBand";
    port.gids.assign(device.gids().begin(), device.gids().end());
    if (device.ethernet()) port.gid_types.assign(port.gids.size(), "RoCE v2");
    if (device.uplink() != nullptr) {
        for (const net::Gid& gid : device.gids())
            port.gid_ndevs.push_back(gid == net::Gid{} ? std::string() : device.host_interface());
    }
    port.pkeys = device.pkeys();
    port.counters = {
        {"port_xmit_data", counters.xmit_words},
        {"port_rcv_data", counters.rcv_words},
        {"port_xmit_packets", counters.xmit_packets},
        {"port_rcv_packets", counters.rcv_packets},
        {"unicast_xmit_packets", counters.unicast_xmit_packets},
        {"unicast_rcv_packets", counters.unicast_rcv_packets},
        {"multicast_xmit_packets", counters.multicast_xmit_packets},
        {"multicast_rcv_packets", counters.multicast_rcv_packets},
        {"port_xmit_discards", counters.xmit_discards},
        {"port_rcv_errors", counters.rcv_errors},
        {"link_downed", device.link_downed},
    };
    // The internal fabric has no wire: these stay zero, but programs that read sysfs expect them.
    for (const char* name :
         {"symbol_error", "link_error_recovery", "port_rcv_remote_physical_errors",
          "port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_rcv_constraint_errors",
          "local_link_integrity_errors", "excessive_buffer_overrun_errors", "VL15_dropped", "port_xmit_wait"})
        port.counters.emplace(name, 0);
    const transport::QpCounters sums = adapter.qp_counters(device);
    for (const verbs::QpCounterName& counter : verbs::kQpCounterNames)
        port.hw_counters.emplace(counter.name, sums.*counter.member);
    port.hw_counters.emplace("unknown_qp_drops", counters.unknown_qp_drops);
    port.hw_counters.emplace("multicast_drops", counters.multicast_drops);
    port.hw_counters.emplace("unsteered_frames", counters.unsteered_frames);
    port.hw_counters.emplace("inactive_drops", counters.inactive_drops);
    for (std::size_t action = 0; action < net::kFaultActionNames.size(); ++action) {
        std::string name = std::string("fault_") + net::kFaultActionNames.at(action);
        std::replace(name.begin(), name.end(), '-', '_');
        port.hw_counters.emplace(
            name, adapter.fault_totals().of(device.port(), static_cast<net::FaultAction>(action)));
    }
    if (device.uplink() != nullptr) {
        for (const auto& [name, value] : device.uplink()->counters())
            port.hw_counters.emplace("port_" + name, value);
        port.hw_counters.emplace("np_ecn_marked_roce_packets", device.congestion.marked);
        port.hw_counters.emplace("np_cnp_sent", device.congestion.sent);
        port.hw_counters.emplace("rp_cnp_handled", device.congestion.received);
    }
    return port;
}

TreeDevice tree_device(const verbs::Adapter& adapter, const verbs::Device& device) {
    TreeDevice tree;
    tree.name = device.name();
    tree.index = device.index();
    tree.node_guid = device.limits().node_guid;
    tree.sys_image_guid = device.limits().sys_image_guid;
    tree.node_desc = "uib " + device.name();
    tree.fw_ver = UIB_VERSION;
    tree.board_id = "uib";
    tree.hca_type = "uib";
    tree.hw_rev = "1";
    tree.ports.push_back(tree_port(adapter, device));
    return tree;
}

std::string make_status_json(const StatusInput& input) {
    ordered_json devices = ordered_json::array();
    for (const auto& device : input.adapter.devices()) devices.push_back(device_json(input.adapter, *device));
    ordered_json clients = ordered_json::array();
    verbs::ObjectCounts totals;
    std::set<const verbs::Context*> counted;
    for (const StatusClient& client : input.clients) {
        const verbs::ObjectCounts counts = client.context->counts();
        if (counted.insert(client.context).second) totals += counts;
        clients.push_back({{"pid", client.pid},
                           {"command", client.command},
                           {"device", client.context->device().name()},
                           {"queue_bytes", client.client->arena().bytes_allocated()},
                           {"objects", objects_json(counts)}});
    }
    ordered_json counters = input.counters;
    const verbs::Adapter::Statistics& statistics = input.adapter.statistics();
    counters["turns"] = statistics.turns;
    counters["busy_turns"] = statistics.busy_turns;
    counters["doorbells"] = statistics.doorbells;
    counters["packets"] = statistics.packets;
    const ordered_json root = {{"version", UIB_VERSION},
                               {"pid", ::getpid()},
                               {"socket", input.socket},
                               {"uptime_s", input.uptime_s},
                               {"devices", devices},
                               {"subnets", subnets_json(input.adapter)},
                               {"router", router_json(input.adapter)},
                               {"links", links_json(input.adapter)},
                               {"clients", clients},
                               {"faults", ordered_json::parse(faults_json(input.adapter))},
                               {"objects", objects_json(totals)},
                               {"counters", counters}};
    return root.dump(2);
}

}  // namespace uib::daemon
