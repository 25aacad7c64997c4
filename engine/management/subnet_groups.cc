// The master's multicast groups, and as much of subnet administration as tells of them (IBA 15.2.5.17).
//
// A membership is a port's, by its GUID; a request is believed if it came from that port's own LID. Groups
// whose makers want the same multicast LID share it: the switches then copy to the members of all of them,
// and each port takes what its own groups' GIDs name.
#include <algorithm>

#include "engine/management/subnet_manager.h"
#include "net/wire/gid.h"

namespace uib::management {
namespace {

constexpr std::uint8_t kReceives = kFullMember | kNonMember;
constexpr std::uint8_t kJoinStates = kReceives | kSendOnlyMember;
constexpr std::uint8_t kRate100Gbps = 16;
constexpr std::uint8_t kScopeMask = 0xF;

bool has_all(std::uint64_t components, std::uint64_t wanted) {
    return (components & wanted) == wanted;
}

}  // namespace

std::optional<AdministrationMad> SubnetManager::on_administration(const AdministrationMad& request,
                                                                  net::Lid from, Time now) {
    if (state_ != SmState::kMaster) return std::nullopt;
    AdministrationMad reply = request;
    reply.header.status = administer(reply, from, now);
    reply.header.method = request.header.method == net::MadMethod::kDelete ? net::MadMethod::kDeleteResponse
                                                                           : net::MadMethod::kGetResponse;
    return reply;
}

// Carries out what the datagram asks for and puts the record as it is then there.
std::uint16_t SubnetManager::administer(AdministrationMad& mad, net::Lid from, Time now) {
    const net::MadHeader& header = mad.header;
    if (header.base_version != net::kMadBaseVersion || header.class_version != kAdministrationClassVersion)
        return net::kMadBadVersion;
    if (header.attribute_id != kMcMemberRecordId) return net::kMadAttributeNotSupported;
    const McMemberRecord wanted = decode_mc_member_record(mad.data);
    const std::uint64_t port_guid = net::interface_id_of(wanted.port);
    switch (header.method) {
        case net::MadMethod::kGet:
            if (!has_all(mad.component_mask, mc_member::kGroup)) return kSaInsufficientComponents;
            if (!groups_.contains(wanted.group)) return kSaNoRecords;
            break;
        case net::MadMethod::kSet:
            if (const std::uint16_t status = set_membership(wanted, mad.component_mask, from, now))
                return status;
            break;
        case net::MadMethod::kDelete:
            if (!has_all(mad.component_mask, mc_member::kToName)) return kSaInsufficientComponents;
            if (const std::uint16_t status = check_member(wanted, from)) return status;
            return leave(wanted.group, port_guid, wanted.join_state, now) ? std::uint16_t{0}
                                                                          : kSaInvalidRequest;
        default:
            return net::kMadMethodNotSupported;
    }
    encode(record_of(wanted.group, wanted.port), mad.data);
    return 0;
}

std::uint16_t SubnetManager::set_membership(const McMemberRecord& wanted, std::uint64_t components,
                                            net::Lid from, Time now) {
    if (!has_all(components, mc_member::kToName)) return kSaInsufficientComponents;
    if (!net::is_multicast(wanted.group)) return kSaInvalidGid;
    if (const std::uint16_t status = check_member(wanted, from)) return status;
    if (!groups_.contains(wanted.group)) {
        if (!has_all(components, mc_member::kToCreate)) return kSaInsufficientComponents;
        if ((wanted.join_state & kFullMember) == 0) return kSaInvalidRequest;
    }
    McMemberRecord made = wanted;
    if ((components & mc_member::kMlid) == 0) made.mlid = 0;
    return join(made, net::interface_id_of(wanted.port), now) != 0 ? std::uint16_t{0} : kSaNoResources;
}

// 0, or why the request is refused. During a sweep a port may be on its way to being known.
std::uint16_t SubnetManager::check_member(const McMemberRecord& wanted, net::Lid from) const {
    if (wanted.join_state == 0 || (wanted.join_state & ~kJoinStates) != 0 || wanted.proxy_join)
        return kSaInvalidRequest;
    const std::uint64_t prefix = net::prefix_of(wanted.port);
    if (prefix != options_.gid_prefix && prefix != kDefaultGidPrefix) return kSaInvalidGid;
    const std::uint64_t guid = net::interface_id_of(wanted.port);
    const NodeIndex index = topology_.find(guid);
    if (index == kNoNode || topology_.node(index).is_switch())
        return phase_ == Phase::kIdle ? kSaInvalidGid : net::kMadBusy;
    if (lids_.lid(guid) >> options_.lmc != from >> options_.lmc) return kSaInvalidRequest;
    const auto group = groups_.find(wanted.group);
    const NodeRecord& node = topology_.node(index);
    const bool fits =
        group == groups_.end() || group->second.record.mtu <= node.ports[node.end_port()].info.mtu_cap;
    return fits ? std::uint16_t{0} : kSaInvalidRequest;
}

// All switches must have an entry for it.
net::Lid SubnetManager::choose_mlid(net::Lid wanted) {
    Number entries = net::kPermissiveLid - net::kMulticastLidFirst;
    for (const NodeRecord& node : topology_.nodes())
        if (node.is_switch()) entries = std::min(entries, node.switch_info.multicast_cap);
    if (wanted >= net::kMulticastLidFirst && wanted < net::kMulticastLidFirst + entries) return wanted;
    return mlids_.lowest_free(entries);
}

SubnetManager::Groups::iterator SubnetManager::forget_group(Groups::iterator group) {
    mlids_.give_back(group->second.record.mlid);
    return groups_.erase(group);
}

net::Lid SubnetManager::join(const McMemberRecord& wanted, std::uint64_t port_guid, Time now) {
    if (state_ != SmState::kMaster) return 0;
    auto found = groups_.find(wanted.group);
    if (found == groups_.end()) {
        if (groups_.size() >= kMaxGroups) return 0;
        McMemberRecord made = wanted;
        made.mlid = choose_mlid(wanted.mlid);
        if (made.mlid == 0) return 0;
        made.mtu_selector = made.rate_selector = made.life_time_selector = kExactly;
        const PortInfo& own = node_.node().end_port(port_).info;
        made.mtu = static_cast<std::uint8_t>(own.neighbor_mtu);
        made.rate = kRate100Gbps;
        made.life_time = static_cast<std::uint8_t>(own.subnet_timeout);
        made.scope = wanted.group[1] & kScopeMask;
        found = groups_.emplace(wanted.group, Group{made, {}}).first;
        mlids_.take(made.mlid);
    }
    std::uint8_t& state = found->second.ports[port_guid];
    const bool received = (state & kReceives) != 0;
    state |= wanted.join_state;
    now_ = now;
    groups_changed_ = groups_changed_ || received != ((state & kReceives) != 0);
    return found->second.record.mlid;
}

bool SubnetManager::leave(const net::Gid& gid, std::uint64_t port_guid, std::uint8_t join_state, Time now) {
    const auto group = groups_.find(gid);
    if (group == groups_.end()) return false;
    const auto port = group->second.ports.find(port_guid);
    if (port == group->second.ports.end() || (port->second & join_state) != join_state) return false;
    port->second &= static_cast<std::uint8_t>(~join_state);
    if (port->second == 0) group->second.ports.erase(port);
    const auto is_full = [](const auto& member) { return (member.second & kFullMember) != 0; };
    if (std::none_of(group->second.ports.begin(), group->second.ports.end(), is_full)) forget_group(group);
    now_ = now;
    groups_changed_ = true;
    return true;
}

McMemberRecord SubnetManager::record_of(const net::Gid& gid, const net::Gid& port) const {
    const Group& group = groups_.at(gid);
    McMemberRecord record = group.record;
    record.port = port;
    const auto member = group.ports.find(net::interface_id_of(port));
    record.join_state = member == group.ports.end() ? std::uint8_t{0} : member->second;
    return record;
}

MulticastMembers SubnetManager::members() const {
    MulticastMembers all;
    for (const auto& [gid, group] : groups_)
        for (const auto& [port, state] : group.ports)
            if ((state & kReceives) != 0) all[group.record.mlid].insert(port);
    return all;
}

// Ports that are gone; those that come back are told to register anew.
void SubnetManager::forget_absent_members() {
    for (auto group = groups_.begin(); group != groups_.end();) {
        std::erase_if(group->second.ports,
                      [&](const auto& member) { return topology_.find(member.first) == kNoNode; });
        group = group->second.ports.empty() ? forget_group(group) : std::next(group);
    }
}

// The switches' tables, for all changes since the last time.
void SubnetManager::regroup() {
    groups_changed_ = false;
    if (state_ != SmState::kMaster) return;
    incomplete_ = false;
    routes_ = compute_routes(topology_, lids_, options_.lmc, members());
    phase_ = Phase::kTables;
    set_tables();
}

}  // namespace uib::management
