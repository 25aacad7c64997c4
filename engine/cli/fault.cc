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
        text += (text.empty() ? "" : " ") + std::string(key) + "=" + value;
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
    if (rule.contains("field")) text += " " + rule["field"].get<std::string>();
    if (rule.contains("amount")) text += " " + amount_text(text, rule["amount"].get<std::uint64_t>());
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

FaultCommand::FaultCommand(CLI::App& app)
    : app_(app.add_subcommand("fault", "Make faults at the ports of a running engine")),
      add_(app_->add_subcommand("add", "Add a rule; prints its identifier")),
      list_(app_->add_subcommand("list", "Show the rules and what they have done")),
      remove_(app_->add_subcommand("remove", "Remove a rule, or all")) {
    app_->require_subcommand(1);
    define_add();
    list_->add_flag("--json", as_json_, "As JSON");
    remove_->add_option("ID", which_, "Identifier of the rule, or all")->required();
}

void FaultCommand::define_add() {
    add_->add_option(
            "ACTION", rule_.action,
            "drop, duplicate, reorder, delay, corrupt (corrupt-bit, corrupt-field), rate or link-down")
        ->required();
    const auto option = [&](const char* name, std::string& value, const char* help, const char* type) {
        add_->add_option(name, value, help)->option_text(type);
    };
    option("--device", rule_.device, "At this device's port only", "NAME");
    option("--direction", rule_.direction, "When the port sends (default), receives, or both", "out|in|both");
    option("--qp", rule_.qp, "Packets to this queue pair only", "NUMBER");
    option("--opcode", rule_.opcode, "Packets of this operation only: rc-send-only, ud-send-only, 0x04",
           "NAME|0xNN");
    option("--psn", rule_.psn, "Packets with these sequence numbers only", "A[-B]");
    option("--count", rule_.count, "At most so often", "N");
    option("--skip", rule_.skip, "Let so many matching packets through first", "N");
    option("--probability", rule_.probability, "Of each matching packet: 0.01 or 1%", "P");
    option("--seed", rule_.seed, "Of the rule's chance (default 1): the same seed does the same", "N");
    option("--field", rule_.field,
           "What corrupt changes (the CRCs are right then): opcode, psn, dest-qp, pkey, qkey, rkey, address, "
           "length, dlid, slid, payload, ack",
           "NAME");
    option("--amount", rule_.amount,
           "delay: a time, 250us; rate: 10Mbit; reorder: packets that overtake (default 1)", "VALUE");
}

int FaultCommand::run() {
    std::string subject;
    try {
        if (*add_) {
            subject = rule_.device;
            const ipc::AddFaultRequest request = fault_request(rule_);
            std::printf("%u\n", EngineClient(ipc::socket_path()).add_fault(request));
        } else if (*list_) {
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
