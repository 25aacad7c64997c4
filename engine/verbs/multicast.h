// Which queue pairs are attached to which multicast group (IBA 10.5.2, 11.3). The internal switch knows the
// ports; this table knows the QPs behind them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "net/fabric/internal_switch.h"

namespace uib::verbs {

class Qp;

class MulticastGroups {
  public:
    explicit MulticastGroups(net::InternalSwitch& fabric) : fabric_(fabric) {}

    /// EINVAL for anything but a UD QP and a multicast GID, ENOMEM beyond the limits. Attaching twice counts
    /// once.
    int attach(Qp& qp, const net::Gid& gid, net::Lid mlid);
    /// EINVAL when the QP is not attached.
    int detach(Qp& qp, const net::Gid& gid, net::Lid mlid);
    void detach_all(Qp& qp);

    /// QPs attached to the group, on all ports.
    [[nodiscard]] const std::vector<Qp*>& members(const net::Gid& gid, net::Lid mlid) const;

  private:
    using Key = std::pair<net::Gid, net::Lid>;
    void remove(std::map<Key, std::vector<Qp*>>::iterator group, Qp& qp);

    net::InternalSwitch& fabric_;
    std::map<Key, std::vector<Qp*>> groups_;
};

}  // namespace uib::verbs
