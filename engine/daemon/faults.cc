#include "engine/daemon/faults.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "net/tap/fault_rule.h"
#include "net/wire/opcode_table.h"

namespace uib::daemon {
namespace {

using nlohmann::ordered_json;

constexpr std::uint32_t kMax24 = 0xFFFFFF;
constexpr std::uint32_t kKnownFlags = ipc::kFaultOutbound | ipc::kFaultInbound | ipc::kFaultQp |
                                      ipc::kFaultOpcode | ipc::kFaultPsn | ipc::kFaultCount;

bool good_amount(net::FaultAction action, std::uint64_t amount) {
    switch (action) {
        case net::FaultAction::kReorder:
            return amount >= 1 && amount <= net::kFaultReorderMax;
        case net::FaultAction::kDelay:
            return amount >= 1 && amount <= net::kFaultDelayMax;
        case net::FaultAction::kRate:
            return amount >= 1;
        default:
            return true;
    }
}

bool in_range(const ipc::AddFaultRequest& request) {
    return (request.flags & ~kKnownFlags) == 0 &&
           (request.flags & (ipc::kFaultOutbound | ipc::kFaultInbound)) != 0 && request.qp <= kMax24 &&
           request.opcode <= 0xFF && request.psn_first <= kMax24 && request.psn_last <= kMax24 &&
           request.action < net::kFaultActionNames.size() && request.field < net::kFaultFieldNames.size() &&
           request.probability >= 0 && request.probability <= 1 &&
           good_amount(static_cast<net::FaultAction>(request.action), request.amount);
}

ordered_json rule_json(const net::FaultStatus& status, const std::string& device) {
    const net::FaultRule& rule = status.rule;
    ordered_json out = {{"id", status.id},
                        {"action", net::kFaultActionNames.at(static_cast<std::size_t>(rule.action))}};
    if (rule.action == net::FaultAction::kCorruptField)
        out["field"] = net::kFaultFieldNames.at(static_cast<std::size_t>(rule.field));
    if (rule.amount != 0) out["amount"] = rule.amount;
    if (!device.empty()) out["device"] = device;
    out["direction"] = rule.outbound && rule.inbound ? "both" : rule.outbound ? "out" : "in";
    if (rule.qp) out["qp"] = *rule.qp;
    if (rule.opcode) out["opcode"] = net::opcode_name(*rule.opcode);
    if (rule.psn_first) out["psn"] = {*rule.psn_first, rule.psn_last.value_or(*rule.psn_first)};
    if (rule.skip != 0) out["skip"] = rule.skip;
    if (rule.count) out["count"] = *rule.count;
    if (rule.probability < 1) {
        out["probability"] = rule.probability;
        out["seed"] = rule.seed;
    }
    out["matched"] = status.matched;
    out["fired"] = status.fired;
    return out;
}

}  // namespace

int add_fault(verbs::Adapter& adapter, const ipc::AddFaultRequest& request, std::uint32_t& id) {
    if (!in_range(request)) return EINVAL;
    if (adapter.faults().size() >= kMaxFaultRules) return ENOSPC;
    net::FaultRule rule;
    const std::string device(request.device, ::strnlen(request.device, sizeof request.device));
    if (!device.empty()) {
        const verbs::Device* found = adapter.device_named(device);
        if (found == nullptr) return ENODEV;
        rule.port = found->port();
    }
    rule.outbound = (request.flags & ipc::kFaultOutbound) != 0;
    rule.inbound = (request.flags & ipc::kFaultInbound) != 0;
    if ((request.flags & ipc::kFaultQp) != 0) rule.qp = request.qp;
    if ((request.flags & ipc::kFaultOpcode) != 0) rule.opcode = static_cast<std::uint8_t>(request.opcode);
    if ((request.flags & ipc::kFaultPsn) != 0) {
        rule.psn_first = request.psn_first;
        rule.psn_last = request.psn_last;
    }
    if ((request.flags & ipc::kFaultCount) != 0) rule.count = request.count;
    rule.skip = request.skip;
    rule.probability = request.probability;
    rule.seed = request.seed;
    rule.action = static_cast<net::FaultAction>(request.action);
    rule.field = static_cast<net::FaultField>(request.field);
    rule.amount = request.amount;
    id = adapter.add_fault(rule);
    return 0;
}

int remove_fault(verbs::Adapter& adapter, std::uint32_t id) {
    if (id != 0) return adapter.remove_fault(id) ? 0 : ENOENT;
    for (const net::FaultStatus& status : adapter.faults()) adapter.remove_fault(status.id);
    return 0;
}

std::string faults_json(verbs::Adapter& adapter) {
    ordered_json rules = ordered_json::array();
    for (const net::FaultStatus& status : adapter.faults()) {
        std::string device;
        for (const auto& one : adapter.devices())
            if (status.rule.port == one->port()) device = one->name();
        rules.push_back(rule_json(status, device));
    }
    return rules.dump();
}

}  // namespace uib::daemon
