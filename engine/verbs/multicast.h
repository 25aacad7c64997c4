// Which queue pairs are attached to which multicast group (IBA 10.5.2, 11.3). The internal switch knows the
// ports; this table knows the QPs behind them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "net/fabric/internal_switch.h"

namespace uib::verbs {

class Device;
class Qp;

class MulticastGroups {
  public:
    /// What matches every multicast LID.
    static constexpr net::Lid kAnyLid = 0;
    /// A port's first QP has attached to a group, whichever LID it named, or its last one has detached.
    using Listener = std::function<void(const Qp& qp, const net::Gid& gid, net::Lid mlid, bool member)>;

    explicit MulticastGroups(net::InternalSwitch& fabric) : fabric_(fabric) {}
    void on_membership(Listener listener) { listener_ = std::move(listener); }

    /// EINVAL for anything but a UD QP and a multicast GID, ENOMEM beyond the limits. Attaching twice counts
    /// once.
    int attach(Qp& qp, const net::Gid& gid, net::Lid mlid);
    /// EINVAL when the QP is not attached.
    int detach(Qp& qp, const net::Gid& gid, net::Lid mlid);
    void detach_all(Qp& qp);

    /// Whether a QP of any port is attached to the group.
    [[nodiscard]] bool has_members(const net::Gid& gid, net::Lid mlid) const;
    /// Fills `out` with the device's QPs that are attached to the group.
    void find_members(const net::Gid& gid, net::Lid mlid, const Device& device, std::vector<Qp*>& out) const;

  private:
    using Key = std::pair<net::Gid, net::Lid>;
    using Groups = std::map<Key, std::vector<Qp*>>;
    void remove(Groups::iterator group, Qp& qp);
    [[nodiscard]] std::pair<Groups::const_iterator, Groups::const_iterator> named(const net::Gid& gid,
                                                                                  net::Lid mlid) const;
    [[nodiscard]] bool is_member(const net::Gid& gid, const Device& device) const;
    void tell(const Qp& qp, const net::Gid& gid, net::Lid mlid, bool member) const;

    net::InternalSwitch& fabric_;
    Groups groups_;
    Listener listener_;
};

}  // namespace uib::verbs
