// Which request calls what: the form of each request is checked here, its sense in the context.
#include <cerrno>

#include "engine/daemon/engine.h"
#include "engine/daemon/session.h"
#include "engine/daemon/session_call.h"

namespace uib::daemon {

int Session::dispatch(ipc::Operation operation, Message& message, Reply& reply) {
    using ipc::Operation;
    switch (operation) {
        case Operation::kHello:
            return call<ipc::HelloRequest, None>(message, reply, [&](const ipc::HelloRequest& in, None&) {
                return hello(in, message, reply);
            });
        case Operation::kStatus:
            return call<None, None>(message, reply, [&](None&, None&) { return status(reply); });
        case Operation::kStartCapture:
        case Operation::kStopCapture:
        case Operation::kAddFault:
        case Operation::kRemoveFault:
        case Operation::kListFaults:
            return dispatch_taps(operation, message, reply);
        default:
            break;
    }
    if (context_ == nullptr) return ENOTCONN;  // a command's session has no devices
    const Baton::Hold hold(engine_.baton());
    const int status = operation < Operation::kCreateChannel ? dispatch_memory(operation, message, reply)
                                                             : dispatch_queues(operation, message, reply);
    if (!engine_.adapter().quiet()) engine_.lane().nudge();
    return status;
}

int Session::dispatch_memory(ipc::Operation operation, Message& message, Reply& reply) {
    using ipc::HandleBody;
    using ipc::Operation;
    verbs::Context& context = *context_;
    const int file = message.fds.empty() ? -1 : message.fds[0].get();
    switch (operation) {
        case Operation::kQueryDevice:
            return call<None, ipc::DeviceLimits>(message, reply, [&](None&, ipc::DeviceLimits& out) {
                out = context.device().limits();
                return 0;
            });
        case Operation::kQueryPort:
            return call<ipc::QueryPortRequest, ipc::PortAttributes>(message, reply, [&](auto& in, auto& out) {
                if (in.port != 1) return EINVAL;
                out = context.device().port_attributes();
                return 0;
            });
        case Operation::kImportContext:
            return call<None, None>(message, reply,
                                    [&](None&, None&) { return import_context(message, reply); });
        case Operation::kAllocPd:
            return call<None, HandleBody>(
                message, reply, [&](None&, auto& out) { return context.alloc_pd(*client_, out.handle); });
        case Operation::kDeallocPd:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.dealloc_pd(in.handle); });
        case Operation::kImportPd:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.import_pd(in.handle); });
        case Operation::kRegMr:
            return call<ipc::RegMrRequest, ipc::RegMrReply>(
                message, reply, [&](auto& in, auto& out) { return context.reg_mr(*client_, in, file, out); });
        case Operation::kReregMr:
            return call<ipc::ReregMrRequest, ipc::RegMrReply>(
                message, reply, [&](auto& in, auto& out) { return context.rereg_mr(in, file, out); });
        case Operation::kDeregMr:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.dereg_mr(in.handle); });
        case Operation::kImportMr:
            return call<ipc::ImportMrRequest, ipc::ImportMrReply>(message, reply, [&](auto& in, auto& out) {
                return context.import_mr(in.pd, in.handle, out);
            });
        case Operation::kAllocMw:
            return call<ipc::AllocMwRequest, ipc::AllocMwReply>(
                message, reply, [&](auto& in, auto& out) { return context.alloc_mw(*client_, in, out); });
        case Operation::kDeallocMw:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.dealloc_mw(in.handle); });
        case Operation::kAllocDm:
            return call<ipc::AllocDmRequest, ipc::AllocDmReply>(message, reply, [&](auto& in, auto& out) {
                const int error = context.alloc_dm(*client_, in, out);
                if (error == 0) reply.fds = {context.dm(out.handle)->fd.get()};
                return error;
            });
        case Operation::kFreeDm:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.free_dm(in.handle); });
        case Operation::kImportDm:
            return call<HandleBody, ipc::ImportDmReply>(message, reply, [&](auto& in, auto& out) {
                const verbs::DeviceMemory* memory = context.dm(in.handle);
                if (memory == nullptr) return ENOENT;
                out.length = memory->length;
                reply.fds = {memory->fd.get()};
                return 0;
            });
        default:
            return EOPNOTSUPP;
    }
}

int Session::dispatch_queues(ipc::Operation operation, Message& message, Reply& reply) {
    using ipc::HandleBody;
    using ipc::Operation;
    verbs::Context& context = *context_;
    switch (operation) {
        case Operation::kCreateChannel:
            return call<None, HandleBody>(message, reply, [&](None&, auto& out) {
                return context.create_channel(*client_, message.take_fd(0), out.handle);
            });
        case Operation::kDestroyChannel:
            return call<HandleBody, None>(
                message, reply, [&](auto& in, None&) { return context.destroy_channel(in.handle); });
        case Operation::kCreateCq:
            return call<ipc::CreateCqRequest, ipc::CqReply>(
                message, reply, [&](auto& in, auto& out) { return context.create_cq(*client_, in, out); });
        case Operation::kResizeCq:
            return call<ipc::ResizeCqRequest, ipc::CqReply>(
                message, reply, [&](auto& in, auto& out) { return context.resize_cq(in, out); });
        case Operation::kModifyCq:
            return call<ipc::ModifyCqRequest, None>(message, reply,
                                                    [&](auto& in, None&) { return context.modify_cq(in); });
        case Operation::kDestroyCq:
            return call<HandleBody, ipc::EventsReply>(
                message, reply, [&](auto& in, auto& out) { return context.destroy_cq(in.handle, out); });
        case Operation::kCreateSrq:
            return call<ipc::CreateSrqRequest, ipc::SrqReply>(
                message, reply, [&](auto& in, auto& out) { return context.create_srq(*client_, in, out); });
        case Operation::kModifySrq:
            return call<ipc::ModifySrqRequest, None>(message, reply,
                                                     [&](auto& in, None&) { return context.modify_srq(in); });
        case Operation::kQuerySrq:
            return call<HandleBody, ipc::QuerySrqReply>(
                message, reply, [&](auto& in, auto& out) { return context.query_srq(in.handle, out); });
        case Operation::kDestroySrq:
            return call<HandleBody, ipc::EventsReply>(
                message, reply, [&](auto& in, auto& out) { return context.destroy_srq(in.handle, out); });
        case Operation::kCreateQp:
            return call<ipc::CreateQpRequest, ipc::QpReply>(
                message, reply, [&](auto& in, auto& out) { return context.create_qp(*client_, in, out); });
        case Operation::kModifyQp:
            return call<ipc::ModifyQpRequest, None>(message, reply,
                                                    [&](auto& in, None&) { return context.modify_qp(in); });
        case Operation::kQueryQp:
            return call<HandleBody, ipc::QueryQpReply>(
                message, reply, [&](auto& in, auto& out) { return context.query_qp(in.handle, out); });
        case Operation::kDestroyQp:
            return call<HandleBody, ipc::EventsReply>(
                message, reply, [&](auto& in, auto& out) { return context.destroy_qp(in.handle, out); });
        case Operation::kAttachMulticast:
            return call<ipc::MulticastRequest, None>(
                message, reply, [&](auto& in, None&) { return context.attach_multicast(in); });
        case Operation::kDetachMulticast:
            return call<ipc::MulticastRequest, None>(
                message, reply, [&](auto& in, None&) { return context.detach_multicast(in); });
        case Operation::kCreateFlow:
            return call<ipc::CreateFlowRequest, HandleBody>(message, reply, [&](auto& in, auto& out) {
                return context.create_flow(*client_, in, out.handle);
            });
        case Operation::kDestroyFlow:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.destroy_flow(in.handle); });
        case Operation::kAllocStaging:
            return call<ipc::AllocStagingRequest, ipc::AllocStagingReply>(
                message, reply, [&](auto& in, auto& out) { return client_->alloc_staging(in, out); });
        default:
            return dispatch_xrc(operation, message, reply);
    }
}

int Session::dispatch_xrc(ipc::Operation operation, Message& message, Reply& reply) {
    using ipc::HandleBody;
    using ipc::Operation;
    verbs::Context& context = *context_;
    switch (operation) {
        case Operation::kOpenXrcd:
            return call<ipc::OpenXrcdRequest, HandleBody>(message, reply, [&](auto& in, auto& out) {
                return context.open_xrcd(*client_, in, message.take_fd(0), out.handle);
            });
        case Operation::kCloseXrcd:
            return call<HandleBody, None>(message, reply,
                                          [&](auto& in, None&) { return context.close_xrcd(in.handle); });
        case Operation::kOpenQp:
            return call<ipc::OpenQpRequest, ipc::QpReply>(
                message, reply, [&](auto& in, auto& out) { return context.open_qp(*client_, in, out); });
        default:
            return dispatch_scaling(operation, message, reply);
    }
}

int Session::dispatch_scaling(ipc::Operation operation, Message& message, Reply& reply) {
    using ipc::HandleBody;
    using ipc::Operation;
    verbs::Context& context = *context_;
    switch (operation) {
        case Operation::kCreateWq:
            return call<ipc::CreateWqRequest, ipc::QpReply>(
                message, reply, [&](auto& in, auto& out) { return context.create_wq(*client_, in, out); });
        case Operation::kModifyWq:
            return call<ipc::ModifyWqRequest, None>(message, reply,
                                                    [&](auto& in, None&) { return context.modify_wq(in); });
        case Operation::kDestroyWq:
            return call<HandleBody, ipc::EventsReply>(
                message, reply, [&](auto& in, auto& out) { return context.destroy_wq(in.handle, out); });
        case Operation::kCreateRwqTable:
            return call<ipc::CreateRwqTableRequest, HandleBody>(message, reply, [&](auto& in, auto& out) {
                return context.create_rwq_table(*client_, in, out.handle);
            });
        case Operation::kDestroyRwqTable:
            return call<HandleBody, None>(
                message, reply, [&](auto& in, None&) { return context.destroy_rwq_table(in.handle); });
        case Operation::kCreateHashQp:
            return call<ipc::CreateHashQpRequest, ipc::QpReply>(message, reply, [&](auto& in, auto& out) {
                return context.create_hash_qp(*client_, in, out);
            });
        default:
            return EOPNOTSUPP;
    }
}

}  // namespace uib::daemon
