#include "net/tap/fault_injector.h"

#include <algorithm>

#include "net/wire/length.h"
#include "net/wire/opcode_table.h"

namespace uib::net {
namespace {

constexpr std::uint32_t kMask24 = 0xFFFFFF;
constexpr Time kReorderLimit = 1'000'000'000;
constexpr std::uint64_t kNanoseconds = 1'000'000'000;

/// A value of `bits` bits other than `old`.
template <typename T>
T other_value(std::mt19937_64& random, T old, unsigned bits) {
    const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    std::uint64_t value = 0;
    do value = random() & mask;
    while (value == static_cast<std::uint64_t>(old));
    return static_cast<T>(value);
}

/// Whether the packet has what the rule would corrupt.
bool has_field(FaultField field, const Packet& packet) {
    if (field == FaultField::kPayload) return !packet.payload.empty();
    if (packet.kind != PacketKind::kTransport) return false;
    const std::uint16_t headers = kOpcodes[packet.bth.opcode].headers;
    switch (field) {
        case FaultField::kQkey:
            return (headers & kDeth) != 0;
        case FaultField::kRkey:
        case FaultField::kAddress:
            return (headers & (kReth | kAtomicEth)) != 0;
        case FaultField::kLength:
            return (headers & kReth) != 0;
        case FaultField::kAck:
            return (headers & kAeth) != 0;
        default:
            return true;
    }
}

}  // namespace

std::uint32_t FaultInjector::add(const FaultRule& rule) {
    rules_.push_back({{next_id_++, rule, 0, 0}, std::mt19937_64(rule.seed), 0});
    return rules_.back().status.id;
}

bool FaultInjector::remove(std::uint32_t id) {
    for (Held& held : held_)
        if (held.rule == id) held.at = 0;
    return std::erase_if(rules_, [&](const Rule& rule) { return rule.status.id == id; }) != 0;
}

std::vector<FaultStatus> FaultInjector::rules() const {
    std::vector<FaultStatus> out;
    out.reserve(rules_.size());
    for (const Rule& rule : rules_) out.push_back(rule.status);
    return out;
}

bool FaultInjector::link_down(std::uint32_t port) const {
    return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
        return rule.status.rule.action == FaultAction::kLinkDown &&
               rule.status.rule.port.value_or(port) == port;
    });
}

bool FaultInjector::matches(const FaultRule& rule, std::uint32_t port, bool outbound, const Packet& packet) {
    if (rule.port && *rule.port != port) return false;
    if (rule.action == FaultAction::kLinkDown) return true;
    if (outbound ? !rule.outbound : !rule.inbound) return false;
    const bool transport = packet.kind == PacketKind::kTransport;
    if (!transport && (rule.qp || rule.opcode || rule.psn_first)) return false;
    if (rule.qp && *rule.qp != packet.bth.dest_qp) return false;
    if (rule.opcode && *rule.opcode != packet.bth.opcode) return false;
    if (rule.action == FaultAction::kCorruptField && !has_field(rule.field, packet)) return false;
    if (!rule.psn_first) return true;
    const std::uint32_t first = *rule.psn_first & kMask24;
    const std::uint32_t length = (rule.psn_last.value_or(first) - first) & kMask24;
    return ((packet.bth.psn - first) & kMask24) <= length;
}

bool FaultInjector::fires(Rule& rule) {
    FaultStatus& status = rule.status;
    ++status.matched;
    if (status.matched <= status.rule.skip) return false;
    if (status.rule.count && status.fired >= *status.rule.count) return false;
    if (status.rule.probability < 1 &&
        std::uniform_real_distribution<>(0, 1)(rule.random) >= status.rule.probability)
        return false;
    ++status.fired;
    return true;
}

void FaultInjector::pass(Time now, std::uint32_t port, bool outbound, const Packet& packet,
                         const Emit& emit) {
    for (Rule& rule : rules_) {
        if (!matches(rule.status.rule, port, outbound, packet) || !fires(rule)) continue;
        act(rule, now, port, outbound, packet, emit);
        if (rule.status.rule.action != FaultAction::kReorder) overtaken(now, port, outbound);
        return;
    }
    emit(packet);
    overtaken(now, port, outbound);
}

// A packet has passed those that wait to be overtaken.
void FaultInjector::overtaken(Time now, std::uint32_t port, bool outbound) {
    for (Held& held : held_) {
        if (held.packets_left == 0 || held.port != port || held.outbound != outbound) continue;
        if (--held.packets_left == 0) held.at = now;
    }
}

void FaultInjector::act(Rule& rule, Time now, std::uint32_t port, bool outbound, const Packet& packet,
                        const Emit& emit) {
    const FaultRule& what = rule.status.rule;
    totals_.count(port, what.action);
    switch (what.action) {
        case FaultAction::kDrop:
        case FaultAction::kLinkDown:
            return;
        case FaultAction::kDuplicate:
            emit(packet);
            emit(packet);
            return;
        case FaultAction::kReorder:
            hold(rule, now + kReorderLimit, std::max<std::uint64_t>(what.amount, 1), port, outbound, packet);
            return;
        case FaultAction::kDelay:
            hold(rule, now + what.amount, 0, port, outbound, packet);
            return;
        case FaultAction::kCorruptBit: {
            Packet damaged = packet;
            damaged.damaged_bit = static_cast<std::uint32_t>(rule.random() | 1);
            emit(damaged);
            return;
        }
        case FaultAction::kCorruptField:
            corrupt_field(rule, packet, emit);
            return;
        case FaultAction::kRate: {
            const Time start = std::max(rule.free_at, now);
            rule.free_at =
                start + packet_bytes(packet) * kNanoseconds / std::max<std::uint64_t>(what.amount, 1);
            if (start <= now) {
                emit(packet);
            } else {
                hold(rule, start, 0, port, outbound, packet);
            }
            return;
        }
    }
}

void FaultInjector::hold(const Rule& rule, Time at, std::uint64_t packets, std::uint32_t port, bool outbound,
                         const Packet& packet) {
    const std::size_t bytes = sizeof(Held) + packet.payload.size();
    if (held_bytes_ + bytes > kHeldBytes) {
        totals_.count(port, FaultAction::kDrop);
        return;
    }
    held_bytes_ += bytes;
    Held held;
    held.at = at;
    held.order = order_++;
    held.rule = rule.status.id;
    held.port = port;
    held.outbound = outbound;
    held.packets_left = packets;
    held.packet = packet;
    held.payload.assign(packet.payload.begin(), packet.payload.end());
    held_.push_back(std::move(held));
}

void FaultInjector::corrupt_field(Rule& rule, const Packet& packet, const Emit& emit) {
    Packet out = packet;
    std::mt19937_64& random = rule.random;
    switch (rule.status.rule.field) {
        case FaultField::kOpcode:
            out.bth.opcode = static_cast<std::uint8_t>(
                (out.bth.opcode & 0xE0) | other_value<unsigned>(random, out.bth.opcode & 0x1F, 5));
            break;
        case FaultField::kPsn:
            out.bth.psn = other_value(random, out.bth.psn, 24);
            break;
        case FaultField::kDestQp:
            out.bth.dest_qp = other_value(random, out.bth.dest_qp, 24);
            break;
        case FaultField::kPkey:
            out.bth.pkey = other_value(random, out.bth.pkey, 15);
            break;
        case FaultField::kQkey:
            out.deth.qkey = other_value(random, out.deth.qkey, 32);
            break;
        case FaultField::kRkey:
            out.reth.rkey = other_value(random, out.reth.rkey, 32);
            break;
        case FaultField::kAddress:
            out.reth.address = other_value(random, out.reth.address, 64);
            break;
        case FaultField::kLength:
            out.reth.dma_length = other_value(random, out.reth.dma_length, 32);
            break;
        case FaultField::kDlid:
            out.lrh.dlid = other_value(random, out.lrh.dlid, 16);
            break;
        case FaultField::kSlid:
            out.lrh.slid = other_value(random, out.lrh.slid, 16);
            break;
        case FaultField::kAck:
            out.aeth.syndrome = other_value(random, out.aeth.syndrome, 7);
            break;
        case FaultField::kPayload:
            altered_.emplace_back(packet.payload.begin(), packet.payload.end());
            altered_.back()[random() % altered_.back().size()] ^=
                static_cast<std::byte>(1U << (random() % 8));
            out.payload = altered_.back();
            break;
    }
    emit(out);
}

void FaultInjector::release(Time now, const std::function<void(std::uint32_t, bool, const Packet&)>& emit) {
    std::vector<Held> due;
    for (auto it = held_.begin(); it != held_.end();) {
        if (it->at > now) {
            ++it;
            continue;
        }
        held_bytes_ -= sizeof(Held) + it->payload.size();
        due.push_back(std::move(*it));
        it = held_.erase(it);
    }
    std::sort(due.begin(), due.end(),
              [](const Held& a, const Held& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; });
    for (Held& held : due) {
        released_.push_back(std::move(held));
        Held& kept = released_.back();
        kept.packet.payload = kept.payload;
        emit(kept.port, kept.outbound, kept.packet);
    }
}

Time FaultInjector::next_deadline() const {
    Time at = kNoDeadline;
    for (const Held& held : held_) at = std::min(at, held.at);
    return at;
}

}  // namespace uib::net
