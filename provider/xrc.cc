#include "provider/xrc.h"

#include <cerrno>
#include <memory>
#include <span>

#include "engine/ipc/control_srq.h"
#include "provider/context.h"

namespace uib::provider {

ibv_xrcd* open_xrcd(ibv_context* verbs, ibv_xrcd_init_attr* attributes) {
    constexpr std::uint32_t kWanted = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    if (attributes->comp_mask != kWanted) {
        errno = (attributes->comp_mask & ~kWanted) != 0 ? EOPNOTSUPP : EINVAL;
        return nullptr;
    }
    auto xrcd = std::make_unique<Xrcd>();
    const bool has_file = attributes->fd != -1;
    const ipc::OpenXrcdRequest request{static_cast<std::uint32_t>(attributes->oflags), has_file};
    const std::span<const int> file(&attributes->fd, has_file ? 1 : 0);
    ipc::HandleBody made{};
    const int error = Context::of(verbs).control().call(ipc::Operation::kOpenXrcd, request, made, file);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    xrcd->verbs.xrcd.context = verbs;
    xrcd->verbs.comp_mask = abi::kVerbsXrcdHandle;
    xrcd->verbs.handle = made.handle;
    return &xrcd.release()->verbs.xrcd;
}

int close_xrcd(ibv_xrcd* handle) {
    Xrcd& xrcd = Xrcd::of(handle);
    Context& context = Context::of(handle->context);
    const int error =
        context.control().command(ipc::Operation::kCloseXrcd, ipc::HandleBody{xrcd.verbs.handle, 0});
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<Xrcd> owner(&xrcd);
    return 0;
}

}  // namespace uib::provider
