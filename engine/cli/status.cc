#include "engine/cli/status.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/cli/environment.h"
#include "engine/cli/fault.h"
#include "engine/cli/table.h"

namespace uib::cli {
namespace {

using nlohmann::json;

constexpr const char* kObjects[] = {"pd", "mr", "mw", "cq", "qp", "srq", "channel", "dm"};

json parsed(const std::string& text) {
    try {
        json report = json::parse(text);
        if (!report.is_object()) throw Failure("the engine's status is not an object");
        return report;
    } catch (const json::exception& error) {
        throw Failure(std::string("the engine's status is not JSON: ") + error.what());
    }
}

/// A value as text: strings bare, what is missing as "-".
std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return "-";
    return found->is_string() ? found->get<std::string>() : found->dump();
}

json member(const json& object, const char* key, const json& fallback) {
    const auto found = object.find(key);
    return found != object.end() && found->type() == fallback.type() ? *found : fallback;
}

bool is_empty_gid(const std::string& gid) {
    return gid.find_first_not_of("0:") == std::string::npos;
}

std::string devices_table(const json& report) {
    std::vector<Row> rows = {{"DEVICE", "NODE GUID", "PORT", "STATE", "LID", "INGRESS DROP", "GID"}};
    for (const json& device : member(report, "devices", json::array())) {
        for (const json& port : member(device, "ports", json::array())) {
            Row row = {text_of(device, "name"), text_of(device, "node_guid"), text_of(port, "number"),
                       text_of(port, "state"),  text_of(port, "lid"),         text_of(port, "ingress_drop")};
            std::vector<std::string> gids;
            for (const json& gid : member(port, "gids", json::array()))
                if (gid.is_string() && !is_empty_gid(gid)) gids.push_back(gid);
            row.push_back(gids.empty() ? "-" : gids.front());
            rows.push_back(row);
            for (std::size_t i = 1; i < gids.size(); ++i) rows.push_back({"", "", "", "", "", "", gids[i]});
        }
    }
    return rows.size() == 1 ? "no devices\n" : table(rows);
}

std::string subnets_table(const json& report) {
    std::vector<Row> rows = {{"SUBNET", "PREFIX", "MANAGER", "MASTER LID", "NODE", "GUID", "LID", "LMC"}};
    for (const json& subnet : member(report, "subnets", json::array())) {
        const std::string name = text_of(subnet, "name");
        Row front = {name.empty() ? "-" : name, text_of(subnet, "prefix"), text_of(subnet, "manager"),
                     text_of(subnet, "master_lid")};
        for (const json& node : member(subnet, "nodes", json::array())) {
            Row row = front;
            for (const char* key : {"description", "guid", "lid", "lmc"}) row.push_back(text_of(node, key));
            rows.push_back(row);
            front.assign(front.size(), "");
        }
    }
    return rows.size() == 1 ? "" : table(rows) + "\n";
}

std::string clients_table(const json& report) {
    Row head = {"PID", "COMMAND", "DEVICE"};
    for (const char* object : kObjects) {
        std::string title = object;
        std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
        head.push_back(title);
    }
    std::vector<Row> rows = {head};
    const auto add = [&](Row row, const json& counts) {
        for (const char* object : kObjects) row.push_back(text_of(counts, object));
        rows.push_back(row);
    };
    const json clients = member(report, "clients", json::array());
    for (const json& client : clients)
        add({text_of(client, "pid"), text_of(client, "command"), text_of(client, "device")},
            member(client, "objects", json::object()));
    add({"all", std::to_string(clients.size()) + " clients", ""}, member(report, "objects", json::object()));
    return table(rows);
}

std::string faults_section(const json& report) {
    const json faults = member(report, "faults", json::array());
    return faults.empty() ? "" : "\n" + faults_table(faults.dump());
}

std::string counters_table(const json& report) {
    std::vector<Row> rows;
    const json counters = member(report, "counters", json::object());
    for (const auto& [name, value] : counters.items())
        if (value != 0) rows.push_back({name, value.dump()});
    return rows.empty() ? "" : "\n" + table(rows);
}

}  // namespace

std::string status_tables(const std::string& json_text) {
    const json report = parsed(json_text);
    return "engine " + text_of(report, "version") + ", pid " + text_of(report, "pid") + ", up " +
           text_of(report, "uptime_s") + " s, socket " + text_of(report, "socket") + "\n\n" +
           devices_table(report) + "\n" + subnets_table(report) + clients_table(report) +
           faults_section(report) + counters_table(report);
}

std::string status_json(const std::string& json_text) {
    return parsed(json_text).dump(2) + "\n";
}

}  // namespace uib::cli
