// Where packets between the engine's Ethernet devices go: DGIDs in, LIDs of the internal fabric out.
//
// Ethernet ports have no LIDs that a program could see; on the internal fabric they have some all the same,
// from kFirstLid on, where no InfiniBand port is. A unicast DGID names a port by the GID it has, a multicast
// DGID is folded into a multicast LID. A packet to nobody gets LID 0, which the fabric discards at the
// sender, as a network does that nobody answers in. Neither link layer reaches the other.
#pragma once

#include <map>
#include <vector>

#include "net/wire/packet.h"

namespace uib::verbs {

class EthernetPaths {
  public:
    static constexpr net::Lid kFirstLid = 0x8000;

    /// The port at `lid` has these GIDs from now on; zeros stand for unused entries.
    void set_port(net::Lid lid, const std::vector<net::Gid>& gids);

    /// Sets the DLID of a packet that leaves a port; `ethernet`: that port is an Ethernet port.
    void resolve(bool ethernet, net::Packet& packet) const;

    /// The LID of multicast group `gid` on Ethernet ports.
    static net::Lid multicast_lid(const net::Gid& gid);

  private:
    std::map<net::Gid, net::Lid> ports_;
};

}  // namespace uib::verbs
