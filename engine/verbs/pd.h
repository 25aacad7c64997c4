// A protection domain.
#pragma once

#include <cstdint>

#include "engine/memory/slice.h"

namespace uib::verbs {

class Client;

struct Pd {
    Client* owner = nullptr;
    memory::PdId id = 0;
    std::uint32_t uses = 0;  ///< objects made in it; it cannot go before they do
};

}  // namespace uib::verbs
