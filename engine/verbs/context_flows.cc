// Flow rules of raw packet queue pairs, and who may have either.
#include <cerrno>

#include "engine/verbs/context.h"

namespace uib::verbs {

FlowObject::FlowObject(const FlowRule& wanted, FlowTable& port) : rule(wanted), table(port) {
    table.add(rule);
    ++rule.qp->flow_rules;
}

FlowObject::~FlowObject() {
    table.remove(rule);
    --rule.qp->flow_rules;
}

int Context::check_raw_packets(const Client& client) const {
    if (!device_.ethernet()) return EOPNOTSUPP;
    return client.may_use_raw_packets() ? 0 : EPERM;
}

int Context::create_flow(Client& client, const ipc::CreateFlowRequest& request, std::uint32_t& handle) {
    if (const int error = check_raw_packets(client); error != 0) return error;
    if (const int error = check_flow(request); error != 0) return error;
    Qp* qp = qp_of(request.qp);
    if (qp == nullptr) return ENOENT;
    if (qp->init().service != transport::Service::kRaw || qp->init().client != &client) return EINVAL;
    if (device_.flows().size() >= Limits::kMaxFlows) return ENOMEM;
    FlowRule rule{qp,
                  static_cast<ipc::FlowType>(request.type),
                  request.priority,
                  request.flags,
                  request.layers,
                  request.value,
                  request.mask,
                  qp->init().hash.table != nullptr ? &qp->init().hash : nullptr};
    const bool tagged = (rule.mask.vlan_tag[0] | rule.mask.vlan_tag[1]) != 0;
    if (tagged) rule.layers |= ipc::kFlowVlan;
    handle = flows_.add(std::make_unique<FlowObject>(rule, device_.flows()));
    return 0;
}

int Context::destroy_flow(std::uint32_t handle) {
    if (flows_.get(handle) == nullptr) return ENOENT;
    flows_.take(handle);
    return 0;
}

}  // namespace uib::verbs
