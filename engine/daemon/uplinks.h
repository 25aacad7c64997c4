// Opens the ports that the configuration gives to devices and hands them to the adapter.
#pragma once

#include <vector>

#include "engine/verbs/adapter.h"

namespace uib::daemon {

/// Before the lane starts. Throws std::runtime_error that says which port failed and why.
void open_uplinks(verbs::Adapter& adapter, const std::vector<verbs::DeviceConfig>& devices);

}  // namespace uib::daemon
