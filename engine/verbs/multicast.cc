#include "engine/verbs/multicast.h"

#include <algorithm>
#include <cerrno>

#include "engine/verbs/ethernet_paths.h"
#include "engine/verbs/qp.h"
#include "net/wire/gid.h"

namespace uib::verbs {
namespace {

/// On Ethernet the program names a group by its GID alone.
net::Lid lid_on_port(const Qp& qp, const net::Gid& gid, net::Lid given) {
    return qp.device().ethernet() ? EthernetPaths::multicast_lid(gid) : given;
}

/// Whether a QP of the same port as `qp` is in the list.
bool has_port_of(const std::vector<Qp*>& qps, const Qp& qp) {
    return std::any_of(qps.begin(), qps.end(),
                       [&qp](const Qp* other) { return &other->device() == &qp.device(); });
}

}  // namespace

int MulticastGroups::attach(Qp& qp, const net::Gid& gid, net::Lid given_mlid) {
    const net::Lid mlid = lid_on_port(qp, gid, given_mlid);
    if (qp.init().service != transport::Service::kUd || !net::is_multicast(gid) ||
        mlid < net::kMulticastLidFirst || mlid == net::kPermissiveLid)
        return EINVAL;
    const Key key{gid, mlid};
    if (groups_.size() >= Limits::kMaxMulticastGroups && !groups_.contains(key)) return ENOMEM;
    std::vector<Qp*>& qps = groups_[key];
    if (std::find(qps.begin(), qps.end(), &qp) != qps.end()) return 0;
    if (qps.size() >= Limits::kMaxMulticastQps) return ENOMEM;
    net::Uplink* const uplink = qp.device().uplink();
    if (uplink != nullptr && !has_port_of(qps, qp)) uplink->join(gid);
    qps.push_back(&qp);
    ++qp.multicast_groups;
    fabric_.join(mlid, qp.device().port());
    return 0;
}

void MulticastGroups::remove(std::map<Key, std::vector<Qp*>>::iterator group, Qp& qp) {
    std::erase(group->second, &qp);
    --qp.multicast_groups;
    fabric_.leave(group->first.second, qp.device().port());
    net::Uplink* const uplink = qp.device().uplink();
    if (uplink != nullptr && !has_port_of(group->second, qp)) uplink->leave(group->first.first);
    if (group->second.empty()) groups_.erase(group);
}

int MulticastGroups::detach(Qp& qp, const net::Gid& gid, net::Lid mlid) {
    const auto group = groups_.find({gid, lid_on_port(qp, gid, mlid)});
    if (group == groups_.end() ||
        std::find(group->second.begin(), group->second.end(), &qp) == group->second.end())
        return EINVAL;
    remove(group, qp);
    return 0;
}

void MulticastGroups::detach_all(Qp& qp) {
    for (auto group = groups_.begin(); qp.multicast_groups != 0 && group != groups_.end();) {
        const auto next = std::next(group);
        if (std::find(group->second.begin(), group->second.end(), &qp) != group->second.end())
            remove(group, qp);
        group = next;
    }
}

const std::vector<Qp*>& MulticastGroups::members(const net::Gid& gid, net::Lid mlid) const {
    static const std::vector<Qp*> kNobody;
    const auto group = groups_.find({gid, mlid});
    return group == groups_.end() ? kNobody : group->second;
}

}  // namespace uib::verbs
