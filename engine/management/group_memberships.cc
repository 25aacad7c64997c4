#include "engine/management/group_memberships.h"

#include <algorithm>

#include "net/wire/gid.h"

namespace uib::management {
namespace {

constexpr std::uint16_t kDefaultPkey = 0xFFFF;
constexpr unsigned kDoublings = 6;  // from the first retry's time to the last's
static_assert(GroupMemberships::kFirstRetry << kDoublings == GroupMemberships::kLastRetry);

}  // namespace

GroupMemberships::Seen GroupMemberships::look(std::size_t adapter) const {
    const NodePort& port = subnet_.port_of(adapter);
    return {port.info.lid, port.info.master_sm_lid, port.info.gid_prefix,
            port.info.port_state == kStateActive, port.reregistrations};
}

void GroupMemberships::join(std::size_t adapter, const net::Gid& group, net::Lid mlid, std::uint32_t qkey,
                            Time now) {
    const auto [at, made] = memberships_.try_emplace({group, adapter});
    Membership& membership = at->second;
    if (!made && membership.wanted) return;
    if (!made) --leaving_;
    membership.wanted = true;
    membership.wanted_mlid = mlid;
    membership.qkey = qkey;
    membership.registered = false;  // a request to leave may be under way
    membership.attempts = 0;
    schedule(membership, now);
}

void GroupMemberships::leave(std::size_t adapter, const net::Gid& group, Time now) {
    const auto found = memberships_.find({group, adapter});
    if (found == memberships_.end() || !found->second.wanted) return;
    if (leaving_ >= kMostLeaving) {
        ++counters_.abandoned;
        memberships_.erase(found);
        return;
    }
    ++leaving_;
    found->second.wanted = false;
    found->second.attempts = 0;
    schedule(found->second, now);
}

void GroupMemberships::port_changed(std::size_t adapter, Time now) {
    const Seen seen = look(adapter);
    if (seen == seen_[adapter]) return;
    seen_[adapter] = seen;
    for (auto& [key, membership] : memberships_) {
        if (key.second != adapter) continue;
        membership.registered = membership.asked = false;
        membership.transaction = 0;
        membership.attempts = 0;
        schedule(membership, now);
    }
}

void GroupMemberships::on_timer(Time now) {
    due_ = kNever;
    const std::uint64_t last = counters_.requests + kBurst;
    for (auto at = memberships_.begin(); at != memberships_.end();) {
        const bool its_turn = at->second.due <= now && counters_.requests < last;
        if (its_turn && !tend(at->first, at->second, now)) {
            --leaving_;
            at = memberships_.erase(at);
            continue;
        }
        due_ = std::min(due_, at->second.due);
        ++at;
    }
}

// What is due. False if the membership is over.
bool GroupMemberships::tend(const Key& key, Membership& membership, Time now) {
    if (membership.transaction != 0) ++counters_.unanswered;
    if (!membership.wanted && (!membership.asked || membership.attempts >= kLeaveAttempts)) return false;
    membership.due = kNever;
    if (!membership.wanted || !membership.registered) request(key, membership, now);
    return true;
}

void GroupMemberships::request(const Key& key, Membership& membership, Time now) {
    const auto& [group, adapter] = key;
    const PortInfo& info = subnet_.port_of(adapter).info;
    // port_changed() comes when it is.
    if (info.port_state != kStateActive || info.master_sm_lid == 0) return;
    McMemberRecord record;
    record.group = group;
    record.port = net::gid_of(info.gid_prefix, subnet_.port_of(adapter).guids[0]);
    record.qkey = membership.qkey;
    record.mlid = membership.wanted_mlid;
    record.pkey = kDefaultPkey;
    record.join_state = kFullMember;
    AdministrationMad mad;
    mad.header.method = membership.wanted ? net::MadMethod::kSet : net::MadMethod::kDelete;
    mad.header.attribute_id = kMcMemberRecordId;
    mad.header.transaction_id = membership.transaction = next_transaction_++;
    mad.component_mask = membership.wanted ? mc_member::kToCreate | mc_member::kMlid : mc_member::kToName;
    encode(record, mad.data);
    membership.asked = true;
    schedule(membership, now + (kFirstRetry << std::min(membership.attempts++, kDoublings)));
    ++counters_.requests;
    send_(adapter, mad);
}

bool GroupMemberships::on_response(std::size_t adapter, const AdministrationMad& response, Time now) {
    const McMemberRecord record = decode_mc_member_record(response.data);
    const auto found = memberships_.find({record.group, adapter});
    if (response.header.attribute_id != kMcMemberRecordId || found == memberships_.end() ||
        found->second.transaction == 0 || found->second.transaction != response.header.transaction_id)
        return false;
    Membership& membership = found->second;
    const bool left = response.header.method == net::MadMethod::kDeleteResponse;
    membership.transaction = 0;
    // Data goes where the answer says, and another engine gave it.
    const bool granted =
        response.header.status == 0 &&
        (left || (record.mlid >= net::kMulticastLidFirst && record.mlid < net::kPermissiveLid));
    if (!granted) ++counters_.refused;
    if (left) {
        membership.registered = membership.asked = false;
        schedule(membership, now);  // it goes, unless it is wanted again
    } else if (granted) {
        membership.registered = true;
        membership.mlid = record.mlid;
        membership.attempts = 0;
        schedule(membership, now);  // unless it is no longer wanted, there is nothing to do
    }
    return true;
}

std::vector<GroupMemberships::Status> GroupMemberships::list() const {
    std::vector<Status> all;
    all.reserve(memberships_.size());
    for (const auto& [key, membership] : memberships_)
        all.push_back({key.first, key.second, membership.mlid, membership.registered});
    return all;
}

net::Lid GroupMemberships::mlid(const net::Gid& group) const {
    for (auto at = memberships_.lower_bound({group, 0}); at != memberships_.end() && at->first.first == group;
         ++at)
        if (at->second.wanted && at->second.mlid != 0) return at->second.mlid;
    return 0;
}

}  // namespace uib::management
