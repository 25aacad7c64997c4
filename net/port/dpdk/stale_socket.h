// Socket files that killed engines leave behind.
#pragma once

#include <string>

namespace uib::net::dpdk {

/// Removes the local socket at `path` if nobody listens on it: drivers that serve (memif, vhost) do not bind
/// over one, and an engine that was killed could not start again. Anything else at `path` stays, for the
/// driver to refuse.
void remove_stale_socket(const std::string& path);

}  // namespace uib::net::dpdk
