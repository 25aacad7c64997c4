#include "engine/cli/fault.h"

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/cli/engine_client.h"
#include "engine/cli/environment.h"
#include "engine/cli/table.h"
#include "engine/ipc/socket_path.h"

namespace uib::cli {
namespace {

using nlohmann::json;

/// Says in the user's words what the engine refuses.
Failure explained(const Refusal& refusal, const std::string& subject) {
    switch (refusal.error) {
        case EPERM:
            return Failure("only root and the user who runs the engine may make faults");
        case ENODEV:
            return Failure("no device '" + subject + "'; `uib status` lists them");
        case ENOENT:
            return Failure("no rule " + subject + "; `uib fault list` lists them");
        case ENOSPC:
            return Failure("the engine takes no more rules; `uib fault remove` takes some away");
        default:
            return refusal;
    }
}

std::string match_text(const json& rule) {
    std::string text;
    const auto add = [&](const char* key, const std::string& value) {
        if (!text.empty()) text += ' ';
        text.append(key).append("=").append(value);
    };
    if (rule.contains("qp")) add("qp", rule["qp"].dump());
    if (rule.contains("opcode")) add("opcode", rule["opcode"].get<std::string>());
    if (rule.contains("psn")) {
        const json& psn = rule["psn"];
        add("psn", psn[0] == psn[1] ? psn[0].dump() : psn[0].dump() + "-" + psn[1].dump());
    }
    if (rule.contains("skip")) add("skip", rule["skip"].dump());
    if (rule.contains("count")) add("count", rule["count"].dump());
    if (rule.contains("probability")) add("probability", rule["probability"].dump());
    if (rule.contains("seed")) add("seed", rule["seed"].dump());
    return text.empty() ? "every packet" : text;
}

std::string action_text(const json& rule) {
    std::string text = rule.at("action").get<std::string>();
    if (rule.contains("field")) text.append(" ").append(rule["field"].get<std::string>());
    if (rule.contains("amount")) {
        const std::string amount = amount_text(text, rule["amount"].get<std::uint64_t>());
        text.append(" ").append(amount);
    }
    return text;
}

}  // namespace

std::string faults_table(const std::string& json_text) {
    try {
        std::vector<Row> rows = {{"ID", "ACTION", "DEVICE", "DIRECTION", "MATCH", "MATCHED", "FIRED"}};
        for (const json& rule : json::parse(json_text))
            rows.push_back({rule.at("id").dump(), action_text(rule), rule.value("device", "all"),
                            rule.value("direction", "-"), match_text(rule), rule.at("matched").dump(),
                            rule.at("fired").dump()});
        return rows.size() == 1 ? "no fault rules\n" : table(rows);
    } catch (const json::exception& error) {
        throw Failure(std::string("the engine's list of rules cannot be read: ") + error.what());
    }
}

int FaultCommand::run() {
    std::string subject;
    try {
        if (adds()) {
            subject = rule_.device;
            const ipc::AddFaultRequest request = fault_request(rule_);
            std::printf("%u\n", EngineClient(ipc::socket_path()).add_fault(request));
        } else if (lists()) {
            const std::string rules = EngineClient(ipc::socket_path()).faults();
            std::fputs((as_json_ ? nlohmann::ordered_json::parse(rules).dump(2) + "\n" : faults_table(rules))
                           .c_str(),
                       stdout);
        } else {
            subject = which_;
            constexpr std::uint32_t kMaxId = 0xFFFFFFFF;
            const std::uint64_t id = which_ == "all" ? 0 : parse_number(which_, kMaxId, "rule identifier");
            if (which_ != "all" && id == 0) throw Failure("no rule 0; `uib fault remove all` removes all");
            EngineClient(ipc::socket_path()).remove_fault(static_cast<std::uint32_t>(id));
        }
    } catch (const Refusal& refusal) {
        throw explained(refusal, subject);
    }
    return 0;
}

}  // namespace uib::cli
