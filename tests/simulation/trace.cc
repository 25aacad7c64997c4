#include "tests/simulation/trace.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "net/wire/opcode.h"

namespace uib::simulation {
namespace {

constexpr std::array<const char*, 12> kWords = {"sent",      "LOST",  "DAMAGED", "PARTITIONED",
                                                "delivered", "post",  "post",    "done",
                                                "received",  "event", "timer",   "state"};
constexpr std::array<const char*, 30> kOperations = {"SEND_FIRST",    "SEND_MIDDLE",
                                                     "SEND_LAST",     "SEND_LAST_IMM",
                                                     "SEND_ONLY",     "SEND_ONLY_IMM",
                                                     "WRITE_FIRST",   "WRITE_MIDDLE",
                                                     "WRITE_LAST",    "WRITE_LAST_IMM",
                                                     "WRITE_ONLY",    "WRITE_ONLY_IMM",
                                                     "READ_REQUEST",  "READ_FIRST",
                                                     "READ_MIDDLE",   "READ_LAST",
                                                     "READ_ONLY",     "ACK",
                                                     "ATOMIC_ACK",    "COMPARE_SWAP",
                                                     "FETCH_ADD",     "RESYNC",
                                                     "SEND_LAST_INV", "SEND_ONLY_INV",
                                                     "?18",           "?19",
                                                     "?1A",           "?1B",
                                                     "FLUSH",         "ATOMIC_WRITE"};
constexpr std::array<const char*, 6> kServices = {"RC", "UC", "RD", "UD", "CNP", "XRC"};
constexpr std::array<const char*, 11> kWorks = {"SEND",      "SEND_IMM",   "SEND_INV",     "WRITE",
                                                "WRITE_IMM", "READ",       "COMPARE_SWAP", "FETCH_ADD",
                                                "BIND",      "INVALIDATE", "ATOMIC_WRITE"};

std::string line_of(const TraceEntry& e) {
    char text[200];
    const auto time = static_cast<unsigned long long>(e.at);
    const auto id = static_cast<unsigned long long>(e.id);
    const char* word = kWords[static_cast<std::size_t>(e.what)];
    switch (e.what) {
        case Happening::kSent:
        case Happening::kLost:
        case Happening::kDamaged:
        case Happening::kPartitioned:
        case Happening::kDelivered:
            std::snprintf(text, sizeof text,
                          "%11llu  %u->%u  qp %06x  %-18s psn %06x  %4u bytes%s  aeth %02x/%llu  %s", time,
                          e.lid, e.peer_lid, e.qp, packet_name(e.opcode).c_str(), e.psn, e.length,
                          e.ack_req ? " ackreq" : "", e.status, id, word);
            break;
        case Happening::kPost:
        case Happening::kSendDone:
            std::snprintf(text, sizeof text, "%11llu  %u     qp %06x  %s #%llu %s %u bytes status %u", time,
                          e.lid, e.qp, word, id, work_name(e.opcode).c_str(), e.length, e.status);
            break;
        case Happening::kPostReceive:
        case Happening::kReceiveDone:
            std::snprintf(text, sizeof text,
                          "%11llu  %u     qp %06x  %s, receive buffer %llu, %u bytes status %u", time, e.lid,
                          e.qp, word, id, e.length, e.status);
            break;
        default:
            std::snprintf(text, sizeof text, "%11llu  %u     qp %06x  %s %llu", time, e.lid, e.qp, word, id);
            break;
    }
    return text;
}

}  // namespace

std::string packet_name(std::uint8_t bth_opcode) {
    const auto service = static_cast<std::size_t>(bth_opcode >> 5);
    const std::size_t operation = bth_opcode & 0x1F;
    if (service >= kServices.size() || operation >= kOperations.size())
        return "?" + std::to_string(bth_opcode);
    return std::string(kServices[service]) + '_' + kOperations[operation];
}

std::string work_name(std::uint8_t opcode) {
    return opcode < kWorks.size() ? kWorks[opcode] : "?" + std::to_string(opcode);
}

void Trace::note(const TraceEntry& e) {
    mix(e.at);
    mix(e.id);
    mix(static_cast<std::uint64_t>(e.what) << 56 | std::uint64_t{e.opcode} << 48 |
        std::uint64_t{e.status} << 40 | std::uint64_t{e.ack_req} << 39 | e.psn);
    mix(std::uint64_t{e.lid} << 48 | std::uint64_t{e.peer_lid} << 32 | e.qp);
    mix(e.length);
    entries_.push_back(e);
}

std::string Trace::text(std::size_t lines) const {
    std::string out;
    const std::size_t shown = std::min(lines, entries_.size());
    if (shown < entries_.size()) out = "... " + std::to_string(entries_.size() - shown) + " entries before\n";
    for (std::size_t i = entries_.size() - shown; i < entries_.size(); ++i)
        out += line_of(entries_[i]) + '\n';
    return out;
}

}  // namespace uib::simulation
