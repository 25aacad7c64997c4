// The trap by which a switch tells the master that the state of one of its links has changed (IBA 14.3, trap
// 128), so that the subnet need not wait for the master's next look.
//
// It goes by LID from the switch's own port to the manager that has set it up, is repeated each
// SubnetTimeOut until the manager represses it, and not more often than that; a change meanwhile is one more
// trap. After kAttempts it is left to the master's sweeps. No thread, no clock.
#pragma once

#include <cstdint>

#include "engine/management/smp_node.h"

namespace uib::management {

class LinkTrap {
  public:
    static constexpr unsigned kAttempts = 5;

    /// `node` is a switch and outlives this.
    explicit LinkTrap(SmpNode& node);
    LinkTrap(const LinkTrap&) = delete;
    LinkTrap& operator=(const LinkTrap&) = delete;

    /// A link has come up or gone down.
    void raise(Time now);
    void on_timer(Time now);
    [[nodiscard]] Time next_deadline() const { return due_; }
    [[nodiscard]] std::uint64_t sent() const { return sent_; }

  private:
    void send(Time now);
    void on_repress(std::uint64_t transaction);
    [[nodiscard]] Time interval() const;

    SmpNode& node_;
    std::uint64_t transaction_;
    unsigned attempts_ = 0;  ///< of the trap under way; 0: none
    bool news_ = false;      ///< another change since that trap was first sent
    Time next_allowed_ = 0;
    Time due_ = kNever;
    std::uint64_t sent_ = 0;
};

}  // namespace uib::management
