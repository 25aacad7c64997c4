// Captures and faults, asked for by the `uib` command.

#include <cerrno>
#include <cstring>

#include "engine/daemon/capture_run.h"
#include "engine/daemon/engine.h"
#include "engine/daemon/faults.h"
#include "engine/daemon/log.h"
#include "engine/daemon/privilege.h"
#include "engine/daemon/session.h"
#include "engine/daemon/session_call.h"

namespace uib::daemon {

int Session::dispatch_taps(ipc::Operation operation, Message& message, Reply& reply) {
    using ipc::HandleBody;
    using ipc::Operation;
    if (client_ != nullptr || !may_use_taps(credentials_)) return EPERM;
    verbs::Adapter& adapter = engine_.adapter();
    switch (operation) {
        case Operation::kStartCapture:
            return call<ipc::StartCaptureRequest, None>(
                message, reply, [&](auto& in, None&) { return start_capture(in, message); });
        case Operation::kStopCapture:
            return call<None, ipc::StopCaptureReply>(message, reply,
                                                     [&](None&, auto& out) { return stop_capture(out); });
        case Operation::kAddFault:
            return call<ipc::AddFaultRequest, HandleBody>(message, reply, [&](auto& in, auto& out) {
                const Baton::Hold hold(engine_.baton());
                const int error = add_fault(adapter, in, out.handle);
                if (error == 0)
                    log_info("client {} ({}): fault rule {} added", credentials_.pid, command_, out.handle);
                return error;
            });
        case Operation::kRemoveFault:
            return call<HandleBody, None>(message, reply, [&](auto& in, None&) {
                const Baton::Hold hold(engine_.baton());
                const int error = remove_fault(adapter, in.handle);
                engine_.lane().nudge();  // what the rule held goes on
                return error;
            });
        default:
            return call<None, None>(message, reply, [&](None&, None&) {
                std::string text;
                {
                    const Baton::Hold hold(engine_.baton());
                    text = faults_json(adapter);
                }
                return reply_text("uib-faults", text, reply);
            });
    }
}

int Session::start_capture(const ipc::StartCaptureRequest& request, Message& message) {
    if (message.fds.size() != 2) return EINVAL;
    if (engine_.capture() != nullptr) return EBUSY;
    net::CaptureOptions options;
    const std::string name(request.device, ::strnlen(request.device, sizeof request.device));
    if (!name.empty()) {
        const verbs::Device* device = engine_.adapter().device_named(name);
        if (device == nullptr) return ENODEV;
        options.port = device->port();
    }
    if (request.has_qp != 0) options.qp = request.qp;
    options.snap = request.snap_bytes;
    options.count = request.packets;
    engine_.start_capture(id_, options, message.take_fd(0), message.take_fd(1));
    log_info("client {} ({}): captures at {}", credentials_.pid, command_, name.empty() ? "all ports" : name);
    return 0;
}

int Session::stop_capture(ipc::StopCaptureReply& reply) {
    CaptureRun* capture = engine_.capture();
    if (capture == nullptr || capture->session() != id_) return ENOENT;
    capture->stop();
    reply.packets = capture->packets();
    reply.dropped = capture->dropped();
    reply.error = static_cast<std::uint32_t>(capture->error());
    return 0;
}

}  // namespace uib::daemon
