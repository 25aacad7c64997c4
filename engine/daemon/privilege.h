// What a client may do by the rights of its process.
#pragma once

#include <sys/socket.h>

namespace uib::daemon {

/// Whether the peer of a socket may send and receive raw packets: root, or a process with CAP_NET_RAW in the
/// engine's own user namespace (a capability of another namespace says nothing here).
bool may_use_raw_packets(const ucred& peer);

/// Whether the peer may capture everybody's packets and disturb them: root, or the engine's own user.
bool may_use_taps(const ucred& peer);

}  // namespace uib::daemon
