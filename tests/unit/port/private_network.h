// A network namespace for one test process, with a pair of joined interfaces.
#pragma once

#include <string>

namespace uib::testing {

/// Moves this process into a new network namespace (with a user namespace if it is not root) and makes the
/// veth pair va <-> vb with `mtu`, both up. Returns an empty string, or why that cannot be done here (the
/// test then skips).
std::string enter_private_network(unsigned mtu);

/// Runs a shell command; false if it fails.
bool shell(const std::string& command);

}  // namespace uib::testing
