// What the engine shows of itself: JSON for `uib status`, and devices and counters for the tree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/daemon/device_tree/tree_model.h"
#include "engine/verbs/adapter.h"
#include "engine/verbs/context.h"

namespace uib::daemon {

struct StatusClient {
    int pid = 0;
    std::string command;
    verbs::Client* client = nullptr;
    verbs::Context* context = nullptr;
};

struct StatusInput {
    std::string socket;
    std::uint64_t uptime_s = 0;
    verbs::Adapter& adapter;
    std::vector<StatusClient> clients;
    std::map<std::string, std::uint64_t> counters;
};

/// With the baton held.
std::string make_status_json(const StatusInput& input);
TreePort tree_port(const verbs::Adapter& adapter, const verbs::Device& device);
TreeDevice tree_device(const verbs::Adapter& adapter, const verbs::Device& device);

}  // namespace uib::daemon
