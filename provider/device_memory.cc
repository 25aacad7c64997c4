// Device memory: a piece of the engine's memory, mapped here for ibv_memcpy_to_dm and ibv_memcpy_from_dm.
#include <cerrno>
#include <cstring>
#include <memory>

#include "engine/ipc/control_memory.h"
#include "provider/context.h"
#include "provider/memory.h"

namespace uib::provider {
namespace {

/// Adapters that have such memory access it by words of four bytes, and programs are tested against that.
constexpr std::uint64_t kDmAlignment = 4;

int check_range(const Dm& dm, std::uint64_t offset, std::size_t length) {
    if (offset > dm.length || length > dm.length - offset) return EFAULT;
    return offset % kDmAlignment != 0 || length % kDmAlignment != 0 ? EINVAL : 0;
}

int copy_to(ibv_dm* handle, std::uint64_t offset, const void* from, std::size_t length) {
    const Dm& dm = Dm::of(handle);
    if (const int error = check_range(dm, offset, length); error != 0) return error;
    std::memcpy(dm.memory.base() + offset, from, length);
    return 0;
}

int copy_from(void* to, ibv_dm* handle, std::uint64_t offset, std::size_t length) {
    const Dm& dm = Dm::of(handle);
    if (const int error = check_range(dm, offset, length); error != 0) return error;
    std::memcpy(to, dm.memory.base() + offset, length);
    return 0;
}

ibv_dm* hand_out(std::unique_ptr<Dm> dm, ibv_context* context, std::uint32_t handle, std::uint64_t length,
                 const std::vector<UniqueFd>& fds) {
    if (fds.empty() || !dm->memory.map(fds[0].get(), PROT_READ | PROT_WRITE) || dm->memory.size() < length) {
        errno = EPROTO;
        return nullptr;
    }
    dm->length = length;
    dm->verbs.handle = handle;
    ibv_dm& verbs = dm->handle();
    verbs.context = context;
    verbs.memcpy_to_dm = copy_to;
    verbs.memcpy_from_dm = copy_from;
    verbs.comp_mask = IBV_DM_MASK_HANDLE;
    verbs.handle = handle;
    return &dm.release()->handle();
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* verbs, ibv_alloc_dm_attr* attributes) {
    Context& context = Context::of(verbs);
    auto dm = std::make_unique<Dm>();
    std::vector<UniqueFd> fds;
    ipc::AllocDmReply made{};
    int error = 0;
    if (attributes->comp_mask != 0 || attributes->length == 0) error = EINVAL;
    if (error == 0 && attributes->length > context.limits().max_dm_size) error = EINVAL;
    if (error == 0) {
        const ipc::AllocDmRequest request{attributes->length, attributes->log_align_req, 0};
        error = context.control().call(ipc::Operation::kAllocDm, request, made, {}, &fds);
    }
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return hand_out(std::move(dm), verbs, made.handle, attributes->length, fds);
}

int free_dm(ibv_dm* handle) {
    Dm& dm = Dm::of(handle);
    Context& context = Context::of(handle->context);
    const int error = context.control().command(ipc::Operation::kFreeDm, ipc::HandleBody{dm.verbs.handle, 0});
    if (context.forgive_death(error) != 0) return error;
    const std::unique_ptr<Dm> owner(&dm);
    return 0;
}

ibv_dm* import_dm(ibv_context* verbs, std::uint32_t handle) {
    auto dm = std::make_unique<Dm>();
    dm->imported = true;
    std::vector<UniqueFd> fds;
    ipc::ImportDmReply found{};
    const int error = Context::of(verbs).control().call(ipc::Operation::kImportDm, ipc::HandleBody{handle, 0},
                                                        found, {}, &fds);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    return hand_out(std::move(dm), verbs, handle, found.length, fds);
}

void unimport_dm(ibv_dm* handle) {
    const std::unique_ptr<Dm> owner(&Dm::of(handle));
}

}  // namespace uib::provider
