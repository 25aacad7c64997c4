#include "net/link/port_state.h"

#include "net/wire/link_packet.h"

namespace uib::net::link {

const char* name_of(PortState state) {
    switch (state) {
        case PortState::kDown:
            return "Down";
        case PortState::kInit:
            return "Init";
        case PortState::kArm:
            return "Arm";
        case PortState::kActive:
            return "Active";
        case PortState::kActDefer:
            return "ActDefer";
    }
    return "unknown";
}

PortEnables PortStateMachine::enables() const {
    switch (state_) {
        case PortState::kInit:
            return {.smp = true, .link_packets = true};
        case PortState::kArm:
            return {.data_send = forward_in_arm_,
                    .data_receive = receive_in_arm_,
                    .smp = true,
                    .link_packets = true};
        case PortState::kActive:
            return {.data_send = true, .data_receive = true, .smp = true, .link_packets = true};
        default:
            return {};
    }
}

bool PortStateMachine::enter(PortState state) {
    if (state_ == PortState::kInit) active_enable_ = false;
    state_ = state;
    return true;
}

bool PortStateMachine::enter_down() {
    enter(PortState::kDown);
    if (physical_up_) enter(PortState::kInit);
    return true;
}

bool PortStateMachine::reset() {
    return enter_down();
}

bool PortStateMachine::set_physical_link(bool up, Time now) {
    if (up == physical_up_) return false;
    physical_up_ = up;
    switch (state_) {
        case PortState::kDown:
            return up && enter(PortState::kInit);
        case PortState::kInit:
        case PortState::kArm:
            return !up && enter_down();
        case PortState::kActive:
            deferred_at_ = now;
            return !up && enter(PortState::kActDefer);
        case PortState::kActDefer:
            return up && enter(PortState::kActive);
    }
    return false;
}

bool PortStateMachine::command(std::uint8_t port_state) {
    switch (static_cast<PortState>(port_state)) {
        case PortState::kDown:
            return enter_down();
        case PortState::kArm:
            return (state_ == PortState::kInit || state_ == PortState::kActive) && enter(PortState::kArm);
        case PortState::kActive:
            return state_ == PortState::kArm && active_enable_ && enter(PortState::kActive);
        default:
            return false;
    }
}

bool PortStateMachine::on_flow_control(std::uint8_t operand) {
    if (operand == kFlowControlNormal) {
        if (state_ == PortState::kArm) active_enable_ = true;
        return false;
    }
    const bool listens = state_ == PortState::kActive || (state_ == PortState::kArm && active_enable_);
    return listens && enter(PortState::kInit);
}

bool PortStateMachine::active_trigger() {
    return state_ == PortState::kArm && active_enable_ && enter(PortState::kActive);
}

bool PortStateMachine::expire(Time now) {
    return now >= deadline() && enter_down();
}

Time PortStateMachine::deadline() const {
    return state_ == PortState::kActDefer ? deferred_at_ + kLinkDownTimeout : kNoDeadline;
}

}  // namespace uib::net::link
