// QP1 of the InfiniBand ports, in an engine whose links make it part of a larger subnet: the port's
// memberships of multicast groups are the subnet administration's to know, which may be in another engine.
//
// There a group has one multicast LID, the master's choice. Programs that do not ask subnet administration
// name one of their own: between queue pair and wire the port puts the group's in its place, and what comes
// in is matched by its GID alone.
#include <algorithm>

#include "engine/verbs/adapter.h"
#include "engine/verbs/qp.h"

namespace uib::verbs {

void Adapter::start_general() {
    general_ = std::make_unique<management::GeneralServices>(*subnet());
    multicast_.on_membership([this](const Qp& qp, const net::Gid& gid, net::Lid mlid, bool member) {
        follow_membership(qp, gid, mlid, member);
    });
}

void Adapter::follow_membership(const Qp& qp, const net::Gid& gid, net::Lid mlid, bool member) {
    if (!has_general(qp.device())) return;
    management::GroupMemberships& memberships = general_->memberships();
    const std::size_t adapter = adapter_number(qp.device());
    if (member) {
        memberships.join(adapter, gid, mlid, qp.machine().parameters().qkey, now_);
    } else {
        memberships.leave(adapter, gid, now_);
    }
}

net::Lid Adapter::mlid_on_wire(const net::Packet& packet) const {
    const net::Lid given = packet.has_grh ? general_->memberships().mlid(packet.grh.dgid) : net::Lid{0};
    return given == 0 ? packet.lrh.dlid : given;
}

bool Adapter::send_general() {
    if (general_ == nullptr) return false;
    if (general_->next_deadline() <= now_) general_->on_timer(now_);
    if (!general_->has_outgoing()) return false;
    datagrams_ = general_->take_outgoing();
    for (management::GeneralServices::Datagram& datagram : datagrams_) {
        datagram.packet.payload = datagram.mad;
        put_on_wire(*subnets_.front().devices[datagram.adapter], datagram.packet);
    }
    return true;
}

void Adapter::take_general(const Device& device, const net::Packet& packet) {
    general_->receive(adapter_number(device), packet, now_);
    subnets_due_ =
        std::min(subnets_due_, subnet()->next_deadline());  // the manager may have groups to set up
}

}  // namespace uib::verbs
