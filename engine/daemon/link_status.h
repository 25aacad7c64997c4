// The InfiniBand links that lead out of the engine, as the status report shows them: where they lead, what
// state they are in, and what each layer has counted.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "engine/verbs/adapter.h"

namespace uib::daemon {

/// An Ethernet port a member, with its links. The baton is held.
nlohmann::ordered_json links_json(const verbs::Adapter& adapter);

}  // namespace uib::daemon
