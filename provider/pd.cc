#include "provider/pd.h"

#include <cerrno>
#include <memory>

#include "provider/context.h"

namespace uib::provider {
namespace {

ibv_pd* hand_out(std::unique_ptr<Pd> pd, ibv_context* context, std::uint32_t handle) {
    pd->pd.context = context;
    pd->pd.handle = handle;
    return &pd.release()->pd;
}

template <typename T>
T* refuse(int why) {
    errno = why;
    return nullptr;
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* verbs) {
    auto pd = std::make_unique<Pd>();
    ipc::HandleBody made{};
    if (const int error = Context::of(verbs).control().query(ipc::Operation::kAllocPd, made); error != 0)
        return refuse<ibv_pd>(error);
    return hand_out(std::move(pd), verbs, made.handle);
}

ibv_pd* alloc_parent_domain(ibv_context* verbs, ibv_parent_domain_init_attr* attributes) {
    constexpr std::uint32_t kKnown =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if (attributes->pd == nullptr || (attributes->comp_mask & ~kKnown) != 0) return refuse<ibv_pd>(EINVAL);
    Pd& base = Pd::of(attributes->pd);
    if (base.parent != nullptr || base.pd.context != verbs) return refuse<ibv_pd>(EINVAL);
    auto pd = std::make_unique<Pd>();
    pd->parent = &base;
    ++base.users;
    if (attributes->td != nullptr) {
        pd->thread_domain = &Td::of(attributes->td);
        ++pd->thread_domain->users;
    }
    return hand_out(std::move(pd), verbs, base.pd.handle);
}

int dealloc_pd(ibv_pd* handle) {
    Pd& pd = Pd::of(handle);
    if (pd.users != 0) return EBUSY;
    Context& context = Context::of(handle->context);
    if (pd.parent == nullptr && !pd.imported) {
        const int error =
            context.control().command(ipc::Operation::kDeallocPd, ipc::HandleBody{handle->handle, 0});
        if (context.forgive_death(error) != 0) return error;
    }
    const std::unique_ptr<Pd> owner(&pd);
    if (pd.parent != nullptr) --pd.parent->users;
    if (pd.thread_domain != nullptr) --pd.thread_domain->users;
    return 0;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes) {
    if (attributes->comp_mask != 0) return refuse<ibv_td>(EINVAL);
    auto td = std::make_unique<Td>();
    td->td.context = context;
    return &td.release()->td;
}

int dealloc_td(ibv_td* handle) {
    Td& td = Td::of(handle);
    if (td.users != 0) return EBUSY;
    const std::unique_ptr<Td> owner(&td);
    return 0;
}

ibv_pd* import_pd(ibv_context* verbs, std::uint32_t handle) {
    auto pd = std::make_unique<Pd>();
    pd->imported = true;
    const ipc::HandleBody named{handle, 0};
    if (const int error = Context::of(verbs).control().command(ipc::Operation::kImportPd, named); error != 0)
        return refuse<ibv_pd>(error);
    return hand_out(std::move(pd), verbs, handle);
}

void unimport_pd(ibv_pd* handle) {
    const std::unique_ptr<Pd> owner(&Pd::of(handle));
}

}  // namespace uib::provider
