// Fault rules between the control socket and the adapter.
#pragma once

#include <cstdint>
#include <string>

#include "engine/ipc/control.h"
#include "engine/ipc/control_taps.h"
#include "engine/verbs/adapter.h"

namespace uib::daemon {

inline constexpr std::size_t kMaxFaultRules = 256;

/// With the baton held. Returns 0 or an errno; `id` is the new rule's.
int add_fault(verbs::Adapter& adapter, const ipc::AddFaultRequest& request, std::uint32_t& id);
/// `id` 0: all rules.
int remove_fault(verbs::Adapter& adapter, std::uint32_t id);
/// The rules in their order, each with what it has done: an array of objects, as JSON text.
std::string faults_json(verbs::Adapter& adapter);

}  // namespace uib::daemon
