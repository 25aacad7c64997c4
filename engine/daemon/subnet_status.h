// The subnets of the engine as the status report shows them: who manages them, and what has which LID.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/verbs/adapter.h"

namespace uib::daemon {

/// The baton is held.
nlohmann::ordered_json subnets_json(const verbs::Adapter& adapter);
/// What the router between them did; null without one.
nlohmann::ordered_json router_json(const verbs::Adapter& adapter);

}  // namespace uib::daemon
