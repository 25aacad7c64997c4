// A fault rule as it is written on the command line, with units for people, made into the engine's request.
#pragma once

#include <cstdint>
#include <string>

#include "engine/ipc/control.h"
#include "engine/ipc/control_taps.h"

namespace uib::cli {

/// Texts as the user gave them; empty: not given.
struct FaultText {
    std::string action{};
    std::string device{};
    std::string direction = "out";  ///< out, in, both
    std::string qp{};
    std::string opcode{};
    std::string psn{};  ///< A or A-B
    std::string count{};
    std::string skip{};
    std::string probability{};  ///< 0.01 or 1%
    std::string seed{};
    std::string field{};
    std::string amount{};
};

/// Throws Failure that says which part is wrong and what it should be.
ipc::AddFaultRequest fault_request(const FaultText& text);

/// Decimal or 0x hexadecimal, at most `limit`. `what` is how messages call it. Throws Failure.
std::uint64_t parse_number(const std::string& text, std::uint64_t limit, const std::string& what);
/// "250us", "10ms", "1.5s", "800ns": nanoseconds. Throws Failure.
std::uint64_t parse_duration(const std::string& text);
/// "10Mbit", "1.5Gbit", "64kbit" (a second): bytes a second. Throws Failure.
std::uint64_t parse_rate(const std::string& text);
/// "0x04", "rc-send-only", "RC SEND Only", "send-only" (RC is meant). Throws Failure.
std::uint8_t parse_opcode(const std::string& text);

/// An amount of an action as people write it.
std::string amount_text(const std::string& action, std::uint64_t amount);

}  // namespace uib::cli
