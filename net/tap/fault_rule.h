// A fault rule: which packets of which port it is about, and what happens to them. With the names that people
// give actions and fields.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace uib::net {

enum class FaultAction : std::uint8_t {
    kDrop,
    kDuplicate,     ///< sent twice
    kReorder,       ///< held until `amount` later packets of the port have passed (or a second)
    kDelay,         ///< held for `amount` nanoseconds
    kCorruptBit,    ///< one random bit of the wire form: the receiver's CRCs catch it
    kCorruptField,  ///< the field gets another random value and the CRCs are right: the transport's checks
                    ///< must cope
    kRate,          ///< at most `amount` bytes a second; what comes faster waits
    kLinkDown,      ///< everything is dropped and the port is down while the rule stands
};
/// In the order of the values.
inline constexpr std::array<const char*, 8> kFaultActionNames = {
    "drop", "duplicate", "reorder", "delay", "corrupt-bit", "corrupt-field", "rate", "link-down"};

enum class FaultField : std::uint8_t {
    kOpcode,
    kPsn,
    kDestQp,
    kPkey,
    kQkey,
    kRkey,
    kAddress,
    kLength,
    kDlid,
    kSlid,
    kPayload,
    kAck  ///< the AETH's syndrome
};
inline constexpr std::array<const char*, 12> kFaultFieldNames = {"opcode", "psn",  "dest-qp", "pkey",
                                                                 "qkey",   "rkey", "address", "length",
                                                                 "dlid",   "slid", "payload", "ack"};

inline constexpr std::uint64_t kFaultDelayMax = 60'000'000'000;  ///< nanoseconds
inline constexpr std::uint64_t kFaultReorderMax = 4096;          ///< packets

struct FaultRule {
    // match
    std::optional<std::uint32_t> port{};
    bool outbound = true;               ///< when the port sends
    bool inbound = false;               ///< when the port receives
    std::optional<std::uint32_t> qp{};  ///< destination queue pair
    std::optional<std::uint8_t> opcode{};
    std::optional<std::uint32_t> psn_first{};  ///< with psn_last: a range, which may wrap at 2^24
    std::optional<std::uint32_t> psn_last{};
    std::uint32_t skip = 0;                ///< matching packets let through before the rule may fire
    std::optional<std::uint32_t> count{};  ///< fires so often, then no more
    double probability = 1;
    std::uint64_t seed = 1;
    // action
    FaultAction action = FaultAction::kDrop;
    FaultField field = FaultField::kPsn;  ///< kCorruptField; packets without the field do not match
    std::uint64_t amount = 0;
};

struct FaultStatus {
    std::uint32_t id = 0;
    FaultRule rule;
    std::uint64_t matched = 0;
    std::uint64_t fired = 0;
};

}  // namespace uib::net
