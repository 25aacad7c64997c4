#include "engine/cli/fault_rule.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <utility>

#include "engine/cli/environment.h"
#include "net/tap/fault_rule.h"
#include "net/wire/opcode_table.h"

namespace uib::cli {
namespace {

constexpr std::uint32_t kMax24 = 0xFFFFFF;
constexpr std::uint32_t kMax32 = 0xFFFFFFFF;
constexpr double kTooLarge = 0x1p63;  // to be rounded

struct Unit {
    const char* name;
    double factor;
};
constexpr std::array kDurations = {Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};
constexpr std::array kRates = {Unit{"bit", 1.0 / 8}, Unit{"kbit", 1e3 / 8}, Unit{"mbit", 1e6 / 8},
                               Unit{"gbit", 1e9 / 8}};

/// Small letters and digits only, so that "RC SEND Only" and "rc-send-only" are one.
std::string folded(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0)
            out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

/// A number and what stands behind it; false if it starts with none.
bool split_number(const std::string& text, double& value, std::string& unit) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || value < 0 || !std::isfinite(value)) return false;
    unit.assign(rest, end);
    return true;
}

std::uint64_t parse_with_unit(std::string text, std::span<const Unit> units, const std::string& expected) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    double value = 0;
    std::string unit;
    if (split_number(text, value, unit))
        for (const Unit& known : units)
            if ((unit == known.name || unit == std::string(known.name) + "/s") &&
                value * known.factor < kTooLarge)
                return static_cast<std::uint64_t>(std::llround(value * known.factor));
    throw Failure("'" + text + "' is no " + expected);
}

template <std::size_t N>
std::string list(const std::array<const char*, N>& names) {
    std::string out;
    for (const char* name : names) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}

template <std::size_t N>
std::uint32_t index_in(const std::array<const char*, N>& names, const std::string& name, const char* what) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        throw Failure("no " + std::string(what) + " '" + name + "'; it is one of " + list(names));
    return static_cast<std::uint32_t>(found - names.begin());
}

double parse_probability(const std::string& text) {
    double value = 0;
    std::string unit;
    if (split_number(text, value, unit) && (unit.empty() || unit == "%")) {
        if (unit == "%") value /= 100;
        if (value <= 1) return value;
    }
    throw Failure("'" + text + "' is no probability: 0 to 1, or 0% to 100%");
}

void parse_psns(const std::string& text, ipc::AddFaultRequest& request) {
    const std::size_t dash = text.find('-');
    request.psn_first =
        static_cast<std::uint32_t>(parse_number(text.substr(0, dash), kMax24, "packet sequence number"));
    request.psn_last = request.psn_first;
    if (dash != std::string::npos)
        request.psn_last =
            static_cast<std::uint32_t>(parse_number(text.substr(dash + 1), kMax24, "packet sequence number"));
    request.flags |= ipc::kFaultPsn;
}

std::uint64_t parse_amount(net::FaultAction action, const std::string& text) {
    const std::string name = net::kFaultActionNames.at(static_cast<std::size_t>(action));
    switch (action) {
        case net::FaultAction::kReorder:
            if (text.empty()) return 1;
            return std::max<std::uint64_t>(
                parse_number(text, net::kFaultReorderMax, "number of packets to let pass"), 1);
        case net::FaultAction::kDelay: {
            if (text.empty()) throw Failure("delay needs --amount, a time as 250us or 10ms");
            const std::uint64_t amount = parse_duration(text);
            if (amount == 0 || amount > net::kFaultDelayMax)
                throw Failure("a delay is more than nothing and at most 60s");
            return amount;
        }
        case net::FaultAction::kRate: {
            if (text.empty()) throw Failure("rate needs --amount, a rate as 10Mbit or 1Gbit");
            const std::uint64_t amount = parse_rate(text);
            if (amount == 0) throw Failure("a rate is at least 8bit");
            return amount;
        }
        default:
            if (!text.empty()) throw Failure("--amount does not go with " + name);
            return 0;
    }
}

/// Action and field; "corrupt" is one of two actions, as a field is given or not.
void parse_action(const FaultText& text, ipc::AddFaultRequest& request) {
    std::string name = text.action;
    if (name == "corrupt") name = text.field.empty() ? "corrupt-bit" : "corrupt-field";
    request.action = index_in(net::kFaultActionNames, name, "action");
    const auto action = static_cast<net::FaultAction>(request.action);
    if (action == net::FaultAction::kCorruptField) {
        if (text.field.empty()) throw Failure("corrupt-field needs --field: " + list(net::kFaultFieldNames));
        request.field = index_in(net::kFaultFieldNames, text.field, "field");
    } else if (!text.field.empty()) {
        throw Failure("--field goes with corrupt-field, not with " + name);
    }
    request.amount = parse_amount(action, text.amount);
    const bool matches = !text.qp.empty() || !text.opcode.empty() || !text.psn.empty() ||
                         !text.count.empty() || !text.skip.empty() || !text.probability.empty();
    if (action == net::FaultAction::kLinkDown && matches)
        throw Failure("link-down takes the port down for everybody: it goes with --device only");
}

std::uint32_t parse_direction(const std::string& text) {
    if (text == "out") return ipc::kFaultOutbound;
    if (text == "in") return ipc::kFaultInbound;
    if (text == "both") return ipc::kFaultOutbound | ipc::kFaultInbound;
    throw Failure("no direction '" + text + "'; it is one of in, out, both");
}

}  // namespace

std::uint64_t parse_number(const std::string& text, std::uint64_t limit, const std::string& what) {
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    const char* begin = text.data() + (hexadecimal ? 2 : 0);
    const char* end = text.data() + text.size();
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(begin, end, value, hexadecimal ? 16 : 10);
    if (error != std::errc() || rest != end || value > limit)
        throw Failure("'" + text + "' is no " + what + ": 0 to " + std::to_string(limit) + ", or 0x...");
    return value;
}

std::uint64_t parse_duration(const std::string& text) {
    return parse_with_unit(text, kDurations, "time: a number with ns, us, ms or s");
}

std::uint64_t parse_rate(const std::string& text) {
    return parse_with_unit(text, kRates, "rate: a number with bit, kbit, Mbit or Gbit, of a second");
}

std::uint8_t parse_opcode(const std::string& text) {
    if (text.starts_with("0x") || text.starts_with("0X"))
        return static_cast<std::uint8_t>(parse_number(text, 0xFF, "operation code"));
    const std::string wanted = folded(text);
    for (unsigned code = 0; code < net::kOpcodes.size(); ++code) {
        if (!net::kOpcodes.at(code).defined) continue;
        const std::string name = folded(net::opcode_name(static_cast<std::uint8_t>(code)));
        if (wanted == name || "rc" + wanted == name) return static_cast<std::uint8_t>(code);
    }
    throw Failure("no operation code '" + text +
                  "'; give one as rc-send-only, rc-rdma-write-first, rc-acknowledge, ud-send-only or 0x04");
}

ipc::AddFaultRequest fault_request(const FaultText& text) {
    ipc::AddFaultRequest request{};
    parse_action(text, request);
    if (text.device.size() >= sizeof request.device) throw Failure("no device '" + text.device + "'");
    text.device.copy(request.device, sizeof request.device - 1);
    request.flags = parse_direction(text.direction);
    if (!text.qp.empty()) {
        request.qp = static_cast<std::uint32_t>(parse_number(text.qp, kMax24, "queue pair number"));
        request.flags |= ipc::kFaultQp;
    }
    if (!text.opcode.empty()) {
        request.opcode = parse_opcode(text.opcode);
        request.flags |= ipc::kFaultOpcode;
    }
    if (!text.psn.empty()) parse_psns(text.psn, request);
    if (!text.count.empty()) {
        request.count = static_cast<std::uint32_t>(parse_number(text.count, kMax32, "count"));
        request.flags |= ipc::kFaultCount;
    }
    if (!text.skip.empty())
        request.skip =
            static_cast<std::uint32_t>(parse_number(text.skip, kMax32, "number of packets to skip"));
    request.probability = text.probability.empty() ? 1 : parse_probability(text.probability);
    request.seed =
        text.seed.empty() ? 1 : parse_number(text.seed, std::numeric_limits<std::uint64_t>::max(), "seed");
    return request;
}

std::string amount_text(const std::string& action, std::uint64_t amount) {
    const auto scaled = [](double value, std::span<const Unit> units, std::span<const char* const> names) {
        std::size_t i = units.size();
        while (i > 1 && value < units[i - 1].factor) --i;
        char text[48];
        std::snprintf(text, sizeof text, "%.6g%s", value / units[i - 1].factor, names[i - 1]);
        return std::string(text);
    };
    constexpr std::array kTimes = {"ns", "us", "ms", "s"};
    constexpr std::array kSpeeds = {"bit", "kbit", "Mbit", "Gbit"};
    if (action == "delay") return scaled(static_cast<double>(amount), kDurations, kTimes);
    if (action == "rate") return scaled(static_cast<double>(amount), kRates, kSpeeds);
    return std::to_string(amount);
}

}  // namespace uib::cli
