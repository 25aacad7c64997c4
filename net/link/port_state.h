// The link state machine (7.2, figure 50).
//
//   Down -phy up-> Init -Arm-> Arm -Active_enable and (Active or ActiveTrigger)-> Active
//   Active -phy down-> ActDefer -phy up-> Active, or after LinkDownTimeout -> Down
//   Active, and Arm with Active_enable, -Remote_init-> Init;  Active -Arm-> Arm
//   Init, Arm -phy down-> Down;  from everywhere: Reset, command Down
//
// A command that is no exit of the state in which it arrives is forgotten at once, so nothing of it is kept.
// Every input says whether the machine moved; it may pass several states at once (Active -> Down -> Init),
// and so be in the state from which it started.
#pragma once

#include "net/link/link_types.h"

namespace uib::net::link {

/// LinkDownTimeout: 10 ms + 3 % / - 51 %, and a caller that polls comes late rather than early.
inline constexpr Time kLinkDownTimeout = 8'000'000;

/// What may pass in a state.
struct PortEnables {
    bool data_send = false;     ///< DataPktXmitEnable
    bool data_receive = false;  ///< DataPktRcvEnable
    bool smp = false;           ///< SMPEnable, both ways
    bool link_packets = false;  ///< LinkPktEnable, both ways
};

class PortStateMachine {
  public:
    PortStateMachine(PortRole role, bool forward_in_arm)
        : receive_in_arm_(role != PortRole::kEnhancedPort0),
          forward_in_arm_(role != PortRole::kChannelAdapter && forward_in_arm) {}

    [[nodiscard]] PortState state() const { return state_; }
    [[nodiscard]] PortEnables enables() const;
    [[nodiscard]] bool active_enable() const { return active_enable_; }

    bool reset();
    bool set_physical_link(bool up, Time now);
    /// CPortState by its PortInfo code; codes other than Down, Arm and Active do nothing.
    bool command(std::uint8_t port_state);
    /// The operand of a link packet that passed its checks.
    bool on_flow_control(std::uint8_t operand);
    /// A packet of a data VL passed the VCRC check: on this port, or on any port of its switch.
    bool active_trigger();
    bool expire(Time now);
    /// When expire() is due.
    [[nodiscard]] Time deadline() const;

  private:
    bool enter(PortState state);
    bool enter_down();

    bool receive_in_arm_;
    bool forward_in_arm_;
    bool physical_up_ = false;
    bool active_enable_ = false;
    PortState state_ = PortState::kDown;
    Time deferred_at_ = 0;
};

/// E.g. "Init".
const char* name_of(PortState state);

}  // namespace uib::net::link
