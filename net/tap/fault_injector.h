// Faults on demand at a running port: a list of rules, each with a match, an action and a count of what it
// did.
//
// Packets go through pass() one by one, in the order of the port; what comes out goes on to the caller. The
// first rule that matches and fires decides; the others do not see the packet. Everything random comes from
// the rule's own seed, so that one rule on one stream of packets does the same every time. Held packets
// (delay, reorder, rate) own a copy of their payload; release() lets them go when their time has come. What
// is emitted stays valid until end_turn(). One thread; nothing here fails.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "net/encap/uplink.h"
#include "net/wire/packet.h"

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
    kAck
};

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
    FaultField field = FaultField::kPsn;
    std::uint64_t amount = 0;
};

struct FaultStatus {
    std::uint32_t id = 0;
    FaultRule rule;
    std::uint64_t matched = 0;
    std::uint64_t fired = 0;
};

class FaultInjector {
  public:
    using Emit = std::function<void(const Packet&)>;

    /// Rules apply in the order in which they were added. The identifier is never used again.
    std::uint32_t add(const FaultRule& rule);
    /// False if there is no such rule. Packets that it holds go on at the next release().
    bool remove(std::uint32_t id);
    [[nodiscard]] std::vector<FaultStatus> rules() const;
    [[nodiscard]] bool empty() const { return rules_.empty() && held_.empty(); }
    /// A rule of kLinkDown stands for the port.
    [[nodiscard]] bool link_down(std::uint32_t port) const;

    /// `outbound`: the port sends the packet, else it receives it.
    void pass(Time now, std::uint32_t port, bool outbound, const Packet& packet, const Emit& emit);
    /// Emits held packets whose time has come, with the port and direction that they were held at.
    void release(Time now, const std::function<void(std::uint32_t port, bool outbound, const Packet&)>& emit);
    /// Payloads that pass() and release() have made are no longer looked at.
    void end_turn() {
        released_.clear();
        altered_.clear();
    }
    [[nodiscard]] Time next_deadline() const;

  private:
    struct Rule {
        FaultStatus status;
        std::mt19937_64 random;
        Time free_at = 0;  ///< kRate: when the next packet may go
    };
    struct Held {
        Time at = 0;
        std::uint64_t order = 0;
        std::uint32_t rule = 0;
        std::uint32_t port = 0;
        bool outbound = true;
        std::uint64_t packets_left = 0;  ///< kReorder: later packets to let pass
        Packet packet;
        std::vector<std::byte> payload;
    };

    static bool matches(const FaultRule& rule, std::uint32_t port, bool outbound, const Packet& packet);
    bool fires(Rule& rule);
    void act(Rule& rule, Time now, std::uint32_t port, bool outbound, const Packet& packet, const Emit& emit);
    void hold(const Rule& rule, Time at, std::uint64_t packets, std::uint32_t port, bool outbound,
              const Packet& packet);
    void corrupt_field(Rule& rule, const Packet& packet, const Emit& emit);
    void overtaken(Time now, std::uint32_t port, bool outbound);

    std::vector<Rule> rules_;
    std::deque<Held> held_;
    std::deque<Held> released_;                   ///< of this turn
    std::deque<std::vector<std::byte>> altered_;  ///< payloads of this turn
    std::uint32_t next_id_ = 1;
    std::uint64_t order_ = 0;
};

}  // namespace uib::net
