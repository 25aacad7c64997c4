// Names of control operations for log lines.
#pragma once

#include "engine/ipc/control.h"

namespace uib::daemon {

/// "create_qp"; "?" for numbers that are none.
const char* operation_name(ipc::Operation operation);

}  // namespace uib::daemon
