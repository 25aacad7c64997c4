// The subnet manager finds out what there is, and who is master.
#include <algorithm>
#include <utility>

#include "engine/management/subnet_manager.h"

namespace uib::management {
namespace {

/// Discoveries in a row that wait for a manager that does not answer.
constexpr unsigned kPatience = 4;

}  // namespace

/// An answer that says that the request was not carried out counts as none.
SmpRequests::Done SubnetManager::checked(SmpRequests::Done done) {
    return [this, done = std::move(done)](const net::Smp* reply) {
        if (reply == nullptr || reply->header.status != 0) {
            incomplete_ = true;
        } else {
            done(reply);
        }
    };
}

void SubnetManager::sweep() {
    requests_.clear();
    topology_.clear();
    others_.clear();
    fresh_.clear();
    incomplete_ = changed_ = silent_rival_ = false;
    looks_ = 0;
    due_ = kNever;
    ++act_count_;
    phase_ = Phase::kDiscover;
    probe({}, kNoNode, 0);
}

void SubnetManager::probe(const DirectedPath& path, NodeIndex from, unsigned from_port) {
    requests_.get(path, AttributeId::kNodeInfo, 0,
                  checked([=, this](const net::Smp* reply) { on_node(*reply, path, from, from_port); }));
}

void SubnetManager::on_node(const net::Smp& reply, const DirectedPath& path, NodeIndex from,
                            unsigned from_port) {
    const NodeInfo info = decode_node_info(reply.data);
    NodeIndex index = topology_.find(info.port_guid);
    const bool known = index != kNoNode;
    if (!known) {
        NodeRecord record;
        record.info = info;
        record.path = path;
        record.ports.resize((info.type == kNodeIsSwitch ? info.ports : info.local_port) + 1);
        index = topology_.add(std::move(record));
    }
    if (from != kNoNode) topology_.link(from, from_port, index, static_cast<unsigned>(info.local_port));
    if (known) return;
    if (info.type == kNodeIsSwitch) {
        ask_switch(index);
    } else {
        ask_ports(index);
    }
}

void SubnetManager::ask_switch(NodeIndex index) {
    const DirectedPath path = topology_.node(index).path;
    requests_.get(path, AttributeId::kSwitchInfo, 0, checked([=, this](const net::Smp* reply) {
                      SwitchInfo& info = topology_.node(index).switch_info;
                      info = decode_switch_info(reply->data);
                      if (state_ != SmState::kMaster || info.port_state_change == 0) {
                          ask_ports(index);
                          return;
                      }
                      // Cleared before the ports are asked, so that a change after that is seen later.
                      std::array<std::byte, net::kSmpDataBytes> data{};
                      encode(info, data);
                      requests_.set(path, AttributeId::kSwitchInfo, 0, data,
                                    checked([=, this](const net::Smp*) { ask_ports(index); }));
                      info.port_state_change = 0;
                  }));
}

void SubnetManager::ask_ports(NodeIndex index) {
    const NodeRecord& node = topology_.node(index);
    const unsigned first = node.end_port();
    for (unsigned port = first; port < node.ports.size(); ++port)
        requests_.get(node.path, AttributeId::kPortInfo, port,
                      checked([=, this](const net::Smp* reply) { on_port(*reply, index, port); }));
}

void SubnetManager::on_port(const net::Smp& reply, NodeIndex index, unsigned port) {
    NodeRecord& node = topology_.node(index);
    PortRecord& record = node.ports[port];
    record.info = decode_port_info(reply.data);
    record.known = true;
    if (port == node.end_port() && record.info.lid == 0) fresh_.insert(node.guid());
    // Links lead on from switches, and from the port that this manager is at.
    const bool leads_on = node.is_switch() ? port != 0 : node.path.empty();
    if (!leads_on || record.linked() || record.info.port_state < kStateInitialize) return;
    DirectedPath path = node.path;
    if (path.size() + 1 >= net::kSmpPathEntries) return;
    path.push_back(static_cast<std::uint8_t>(port));
    probe(path, index, port);
}

void SubnetManager::ask_managers() {
    for (const NodeRecord& node : topology_.nodes()) {
        const PortRecord& end = node.ports[node.end_port()];
        if (node.guid() == guid_ || !end.known || (end.info.capability_mask & kIsSm) == 0) continue;
        const DirectedPath path = node.path;
        requests_.get(path, AttributeId::kSmInfo, 0, [=, this](const net::Smp* reply) {
            silent_rival_ = silent_rival_ || reply == nullptr;
            // One that no longer runs is no rival.
            if (reply != nullptr && reply->header.status == 0)
                others_.push_back({decode_sm_info(reply->data), path});
        });
    }
}

void SubnetManager::elect() {
    const bool taking_over = std::exchange(handed_over_, false);
    const OtherManager* best = nullptr;  // of those that are better than this one
    for (const OtherManager& other : others_) {
        const bool master = other.info.sm_state() == SmState::kMaster;
        if (master && state_ != SmState::kMaster) return follow(other);
        if (other.info.sm_state() == SmState::kNotActive || !better(other.info)) continue;
        const auto rank = [](const SmInfo& info) { return std::pair(info.priority, ~info.guid); };
        if (best == nullptr || rank(other.info) > rank(best->info)) best = &other;
    }
    if (best != nullptr && state_ != SmState::kMaster) return follow(*best);
    if (best != nullptr && !taking_over) return hand_over(*best);
    if (silent_rival_) {
        // Its node has answered, so it may well be there: two masters at once are worse than none for a
        // while.
        incomplete_ = true;
        if (state_ != SmState::kMaster && failures_ < kPatience) return finish();
    }
    // Another master, or one before, may have set anything anywhere.
    const auto is_master = [](const OtherManager& other) {
        return other.info.sm_state() == SmState::kMaster;
    };
    const bool new_term = taking_over || state_ != SmState::kMaster;
    if (new_term || std::any_of(others_.begin(), others_.end(), is_master)) {
        programmed_.clear();
        lanes_set_.clear();
    }
    // Who was a member is known by those who have been master since; the ports tell it again.
    if (new_term) {
        groups_.clear();
        mlids_.clear();
        present_.clear();
    }
    state_ = SmState::kMaster;
    identify();
}

void SubnetManager::hand_over(const OtherManager& other) {
    phase_ = Phase::kHandOver;
    std::array<std::byte, net::kSmpDataBytes> data{};
    encode(own_info(), data);
    requests_.set(other.path, AttributeId::kSmInfo, kSmHandover, data,
                  checked([=, this](const net::Smp*) { follow(other); }));
}

void SubnetManager::follow(const OtherManager& other) {
    state_ = SmState::kStandby;
    followed_ = other;
    phase_ = Phase::kIdle;
    failures_ = 0;
    schedule(now_ + options_.poll_interval);
}

void SubnetManager::poll() {
    phase_ = Phase::kPoll;
    requests_.get(followed_.path, AttributeId::kSmInfo, 0, [this](const net::Smp* reply) {
        if (state_ != SmState::kStandby) return;
        const SmInfo info = reply == nullptr ? SmInfo{} : decode_sm_info(reply->data);
        // It is gone, or follows somebody itself: the way to the master is to be found anew.
        if (reply == nullptr || reply->header.status != 0 || info.guid != followed_.info.guid ||
            info.sm_state() == SmState::kStandby || info.sm_state() == SmState::kNotActive)
            state_ = SmState::kDiscovering;
    });
}

void SubnetManager::look() {
    bool switches = false;
    for (const NodeRecord& node : topology_.nodes()) {
        if (!node.is_switch()) continue;
        switches = true;
        if (changed_) break;
        requests_.get(node.path, AttributeId::kSwitchInfo, 0, [this](const net::Smp* reply) {
            if (reply == nullptr || decode_switch_info(reply->data).port_state_change != 0) changed_ = true;
        });
    }
    changed_ = changed_ || !switches;
    phase_ = Phase::kLook;
}

}  // namespace uib::management
