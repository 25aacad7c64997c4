// The host's multicast memberships on one interface: so that the adapter, and switches that listen to IGMP
// and MLD, let the groups' packets through.
//
// A socket a group, because the kernel limits the memberships of one socket; closing it is leaving. The
// sockets receive nothing: they are not bound.
#pragma once

#include <map>
#include <string>

#include "engine/ipc/unique_fd.h"
#include "net/wire/packet.h"

namespace uib::net {

class GroupMemberships {
  public:
    explicit GroupMemberships(std::string interface) : interface_(std::move(interface)) {}

    /// False if the kernel refuses (errno tells why); the group is remembered all the same.
    bool join(const Gid& group);
    void leave(const Gid& group) { groups_.erase(group); }
    /// Joins all groups anew: the interface is another than before. The number of groups refused.
    std::size_t join_again();

  private:
    [[nodiscard]] ipc::UniqueFd joined(const Gid& group) const;

    std::string interface_;
    std::map<Gid, ipc::UniqueFd> groups_;
};

}  // namespace uib::net
