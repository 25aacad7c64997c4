// The local sockets by which drivers find their other end (memif, vhost, virtio_user).
#pragma once

#include <string>

namespace uib::net::dpdk {

/// Removes the local socket at `path` if nobody listens on it: drivers that serve (memif, vhost) do not bind
/// over one, and an engine that was killed could not start again. True if somebody does listen.
bool remove_stale_socket(const std::string& path);

/// Why nobody can serve, or find, a socket at `path`: something that does not go away by waiting. Empty if
/// nothing speaks against it. Frees a server of a stale one.
std::string socket_trouble(const std::string& path, bool server);

}  // namespace uib::net::dpdk
