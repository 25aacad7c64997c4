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
    const bool news = !is_member(gid, qp.device());
    qps.push_back(&qp);
    ++qp.multicast_groups;
    fabric_.join(mlid, qp.device().port());
    if (news) tell(qp, gid, mlid, true);
    return 0;
}

void MulticastGroups::remove(Groups::iterator group, Qp& qp) {
    const auto [gid, mlid] = group->first;
    std::erase(group->second, &qp);
    --qp.multicast_groups;
    fabric_.leave(mlid, qp.device().port());
    if (group->second.empty()) groups_.erase(group);
    if (!is_member(gid, qp.device())) tell(qp, gid, mlid, false);
}

void MulticastGroups::tell(const Qp& qp, const net::Gid& gid, net::Lid mlid, bool member) const {
    if (net::Uplink* const uplink = qp.device().uplink(); uplink != nullptr)
        member ? uplink->join(gid) : uplink->leave(gid);
    if (listener_) listener_(qp, gid, mlid, member);
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

// The keys of a GID are side by side.
std::pair<MulticastGroups::Groups::const_iterator, MulticastGroups::Groups::const_iterator>
MulticastGroups::named(const net::Gid& gid, net::Lid mlid) const {
    if (mlid != kAnyLid) return groups_.equal_range({gid, mlid});
    return {groups_.lower_bound({gid, 0}), groups_.upper_bound({gid, net::kPermissiveLid})};
}

bool MulticastGroups::has_members(const net::Gid& gid, net::Lid mlid) const {
    const auto [first, end] = named(gid, mlid);
    return first != end;
}

void MulticastGroups::find_members(const net::Gid& gid, net::Lid mlid, const Device& device,
                                   std::vector<Qp*>& out) const {
    out.clear();
    const auto [first, end] = named(gid, mlid);
    for (auto group = first; group != end; ++group)
        for (Qp* qp : group->second)
            // One that is attached by several LIDs gets one copy.
            if (&qp->device() == &device && std::find(out.begin(), out.end(), qp) == out.end())
                out.push_back(qp);
}

bool MulticastGroups::is_member(const net::Gid& gid, const Device& device) const {
    const auto [first, end] = named(gid, kAnyLid);
    return std::any_of(first, end, [&](const auto& group) {
        return std::any_of(group.second.begin(), group.second.end(),
                           [&](const Qp* qp) { return &qp->device() == &device; });
    });
}

}  // namespace uib::verbs
