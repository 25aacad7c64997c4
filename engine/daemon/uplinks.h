// Opens the ports that the configuration gives to devices and hands them to the adapter.
#pragma once

#include <memory>
#include <vector>

#include "engine/daemon/config.h"
#include "engine/verbs/adapter.h"
#include "net/encap/ib_trunk.h"

namespace uib::daemon {

/// The engine's InfiniBand links, and its devices with the engine's number in their GUIDs: where the
/// configuration gives none, it is made of the first link's MAC address, so that engines on one network
/// differ.
struct OpenedLinks {
    std::vector<verbs::DeviceConfig> devices;
    std::vector<std::unique_ptr<net::IbTrunk>> trunks;
};
/// Throws std::runtime_error that says which link failed and why.
OpenedLinks open_links(const Config& config);

/// Before the lane starts. Throws std::runtime_error that says which port failed and why.
void open_uplinks(verbs::Adapter& adapter, const std::vector<verbs::DeviceConfig>& devices);

}  // namespace uib::daemon
