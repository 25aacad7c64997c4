// A file descriptor with one owner.
#pragma once

#include "engine/ipc/unique_fd.h"

namespace uib::memory {

using OwnedFd = ipc::UniqueFd;

}  // namespace uib::memory
