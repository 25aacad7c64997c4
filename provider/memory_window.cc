// Memory windows. Binding goes through the send queue: bind_mw and IBV_WR_BIND_MW in post_send.cc.
#include <cerrno>
#include <memory>

#include "engine/ipc/control_memory.h"
#include "provider/context.h"
#include "provider/memory.h"

namespace uib::provider {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
    auto mw = std::make_unique<ibv_mw>();
    int error = type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2 ? 0 : EINVAL;
    ipc::AllocMwReply made{};
    if (error == 0)
        error = Context::of(pd->context)
                    .control()
                    .call(ipc::Operation::kAllocMw,
                          ipc::AllocMwRequest{pd->handle, static_cast<std::uint32_t>(type)}, made);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    mw->context = pd->context;
    mw->pd = pd;
    mw->rkey = made.rkey;
    mw->handle = made.handle;
    mw->type = type;
    return mw.release();
}

int dealloc_mw(ibv_mw* mw) {
    Context& context = Context::of(mw->context);
    const int error = context.control().command(ipc::Operation::kDeallocMw, ipc::HandleBody{mw->handle, 0});
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<ibv_mw> owner(mw);
    return 0;
}

}  // namespace uib::provider
