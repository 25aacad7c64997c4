// Control operations on XRC domains, and what SRQs and QPs have to do with them.
#include <cerrno>

#include "engine/verbs/context.h"

namespace uib::verbs {

int Context::open_xrcd(Client& client, const ipc::OpenXrcdRequest& request, ipc::UniqueFd file,
                       std::uint32_t& handle) {
    if (xrcds_.live() >= Limits::kMaxXrcd) return ENOMEM;
    auto xrcd = std::make_unique<XrcdObject>();
    const int error =
        adapter_.xrc().open(device_, request.flags, request.has_file != 0, std::move(file), xrcd->domain);
    if (error != 0) return error;
    xrcd->owner = &client;
    handle = xrcds_.add(std::move(xrcd));
    return 0;
}

int Context::close_xrcd(std::uint32_t handle) {
    const XrcdObject* xrcd = xrcds_.get(handle);
    if (xrcd == nullptr) return ENOENT;
    if (xrcd->uses != 0) return EBUSY;
    xrcds_.take(handle);
    return 0;
}

// Objects of a client that left must not hold another's handle: each client opens the domain for itself.
XrcdObject* Context::xrcd_of(const Client& client, std::uint32_t handle) const {
    XrcdObject* xrcd = xrcds_.get(handle);
    return xrcd != nullptr && xrcd->owner == &client ? xrcd : nullptr;
}

int Context::bind_xrc_srq(const Client& client, const ipc::CreateSrqRequest& request,
                          SharedReceiveQueue& srq) {
    XrcdObject* xrcd = request.xrcd == 0 ? nullptr : xrcd_of(client, request.xrcd - 1);
    CompletionQueue* cq = request.cq == 0 ? nullptr : cqs_.get(request.cq - 1);
    if (xrcd == nullptr || cq == nullptr || &cq->client() != &client) return EINVAL;
    srq.xrc = std::make_unique<XrcBinding>(adapter_.xrc(), *xrcd, *cq, srq);
    return 0;
}

int Context::create_target(Client& client, const ipc::CreateQpRequest& request, ipc::QpReply& reply) {
    XrcdObject* xrcd = request.xrcd == 0 ? nullptr : xrcd_of(client, request.xrcd - 1);
    if (xrcd == nullptr || request.create_flags != 0) return EINVAL;
    if (qps_.live() >= Limits::kMaxQp) return ENOMEM;
    QpInit init;
    init.service = transport::Service::kXrcTarget;
    init.device = &device_;
    init.xrc_domain = xrcd->domain;
    auto qp = std::make_shared<Qp>(adapter_, init);
    if (const int error = qp->start(); error != 0) return error;
    xrcd->domain->add_target(qp);
    reply = qp->description();
    reply.handle = qps_.add(std::make_unique<QpHandle>(std::move(qp), client, request.user_handle, xrcd));
    return 0;
}

int Context::open_qp(Client& client, const ipc::OpenQpRequest& request, ipc::QpReply& reply) {
    XrcdObject* xrcd = xrcd_of(client, request.xrcd);
    if (xrcd == nullptr) return EINVAL;
    auto qp = xrcd->domain->target(request.qp_number);
    if (qp == nullptr) return EINVAL;
    if (qps_.live() >= Limits::kMaxQp) return ENOMEM;
    reply = qp->description();
    reply.handle = qps_.add(std::make_unique<QpHandle>(std::move(qp), client, request.user_handle, xrcd));
    return 0;
}

}  // namespace uib::verbs
