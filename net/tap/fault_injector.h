// Faults on demand at a running port: a list of rules, each with a match, an action and a count of what it
// did.
//
// Packets go through pass() one by one, in the order of the port; what comes out goes on to the caller. The
// first rule that matches and fires decides; the others do not see the packet. Everything random comes from
// the rule's own seed, so that one rule on one stream of packets does the same every time. Held packets
// (delay, reorder, rate) own a copy of their payload; release() lets them go when their time has come. What
// is emitted stays valid until end_turn(). What held packets may take is limited (kHeldBytes); beyond it they
// are dropped, as by a queue that is full. One thread; nothing here fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "net/tap/fault_rule.h"
#include "net/wire/packet.h"
#include "net/wire/time.h"

namespace uib::net {

/// What rules did, living and gone, by port and action.
class FaultTotals {
  public:
    void count(std::uint32_t port, FaultAction action) {
        if (port >= counts_.size()) counts_.resize(port + 1);
        ++counts_[port][static_cast<std::size_t>(action)];
    }
    [[nodiscard]] std::uint64_t of(std::uint32_t port, FaultAction action) const {
        return port < counts_.size() ? counts_[port][static_cast<std::size_t>(action)] : 0;
    }

  private:
    std::vector<std::array<std::uint64_t, kFaultActionNames.size()>> counts_;
};

class FaultInjector {
  public:
    using Emit = std::function<void(const Packet&)>;
    static constexpr std::size_t kHeldBytes = std::size_t{16} << 20;

    /// `totals` outlives this.
    explicit FaultInjector(FaultTotals& totals) : totals_(totals) {}

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

    FaultTotals& totals_;
    std::vector<Rule> rules_;
    std::size_t held_bytes_ = 0;
    std::deque<Held> held_;
    std::deque<Held> released_;                   ///< of this turn
    std::deque<std::vector<std::byte>> altered_;  ///< payloads of this turn
    std::uint32_t next_id_ = 1;
    std::uint64_t order_ = 0;
};

}  // namespace uib::net
