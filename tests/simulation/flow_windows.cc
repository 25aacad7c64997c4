// Type 2 memory windows: bound by one end, used by the other, invalidated by either.
//
// The rules of a legal client: the other end may use the key once the bind has completed, and nothing of the
// other end that uses it may be under way when the owner invalidates it; a SEND with Invalidate comes behind
// a fence, as a READ that has to be asked for again would find the key gone.
#include <algorithm>

#include "tests/simulation/flow.h"

namespace uib::simulation {

using ipc::WorkOpcode;

void Flow::add_window() {
    WindowUse& window = windows_.emplace_back();
    memory::Window* made = from_.adapter->add_window();
    window.key = made->key();
    window.handle = from_.adapter->last_window();
}

bool Flow::plan_window_work(Message& message, transport::SendRequest& request) {
    if (windows_.empty() && (reverse == nullptr || reverse->windows_.empty())) return false;
    Random& random = world_.random;
    if (plan_invalidating_send(message, request)) return true;
    if (windows_.empty() || !random.chance(0.4)) return false;
    WindowUse& window = windows_.front();
    if (window.state == WindowState::kFree) {
        message.opcode = WorkOpcode::kBindWindow;
        plan_bind(request);
        return true;
    }
    if (window.state == WindowState::kBound && reverse->next_done_ >= window.last_use && random.chance(0.3)) {
        message.opcode = WorkOpcode::kLocalInvalidate;
        request.immediate = window.key;
        window.state = WindowState::kInvalidating;
        window.request = messages_.size();
        return true;
    }
    return false;
}

void Flow::plan_bind(transport::SendRequest& request) {
    constexpr std::uint32_t kVariant = 0xFF;
    WindowUse& window = windows_.front();
    window.length = 2 * plan_.mtu + 64;
    window.at = from_.adapter->allocate(world_.random, window.length, 1).front().at;
    window.key = (window.key & ~kVariant) | ((window.key + 1) & kVariant);
    window.used = 0;
    window.state = WindowState::kBinding;
    window.request = messages_.size();
    request.rkey = window.key;
    request.window_handle = window.handle;
    request.bind_window_type = 2;
    request.remote_address = Adapter::kBase + window.at;
    request.compare_add = window.length;
    request.swap =
        std::uint64_t{ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead} << 32 | from_.adapter->key();
}

// Puts the target into the peer's window, if it has one that is bound and has room.
bool Flow::use_window(Message& message, transport::SendRequest& request) {
    if (reverse == nullptr || reverse->windows_.empty()) return false;
    WindowUse& window = reverse->windows_.front();
    if (window.state != WindowState::kBound || message.length > window.length - window.used) return false;
    message.target = window.at + window.used;
    window.used += message.length;
    window.last_use = messages_.size() + 1;
    request.rkey = window.key;
    return true;
}

bool Flow::plan_invalidating_send(Message& message, transport::SendRequest& request) {
    if (reverse == nullptr || reverse->windows_.empty()) return false;
    WindowUse& window = reverse->windows_.front();
    if (window.state != WindowState::kBound || !world_.random.chance(0.15)) return false;
    message.opcode = WorkOpcode::kSendWithInvalidate;
    message.flags |= ipc::kWorkFence;
    message.immediate = request.immediate = window.key;
    window.state = WindowState::kInvalidating;
    window.request = ~std::size_t{0};
    return true;
}

void Flow::window_work_done(std::size_t index) {
    if (windows_.empty() || windows_.front().request != index) return;
    WindowUse& window = windows_.front();
    if (messages_[index].opcode == WorkOpcode::kBindWindow && window.state == WindowState::kBinding)
        window.state = WindowState::kBound;
    if (messages_[index].opcode == WorkOpcode::kLocalInvalidate && window.state == WindowState::kInvalidating)
        window.state = WindowState::kFree;
}

}  // namespace uib::simulation
