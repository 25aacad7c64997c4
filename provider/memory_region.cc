// Memory regions: how each is to be reached is decided here (region_kind.h) and offered to the engine, which
// may refuse a form; a shared form that is refused is registered as private memory instead.
#include <cerrno>
#include <cstdint>
#include <memory>

#include "provider/context.h"
#include "provider/memory.h"
#include "provider/region_kind.h"

namespace uib::provider {
namespace {

constexpr std::uint32_t kKnownAccess = ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite |
                                       ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic |
                                       ipc::kAccessBindWindow | ipc::kAccessZeroBased | ipc::kAccessOnDemand |
                                       ipc::kAccessHugeTlb | ipc::kAccessRelaxedOrdering;

/// What the data path may do with the region.
struct LocalView {
    RegionPlace place;
    std::uint64_t address;
    bool mapped;  ///< by the engine
};

int check_access(int access) {
    const auto flags = static_cast<std::uint32_t>(access);
    if ((flags & ~(kKnownAccess | IBV_ACCESS_OPTIONAL_RANGE)) != 0) return EINVAL;
    const bool writes = (flags & (ipc::kAccessRemoteWrite | ipc::kAccessRemoteAtomic)) != 0;
    return writes && (flags & ipc::kAccessLocalWrite) == 0 ? EINVAL : 0;
}

LkeyTable::Region to_region(const ibv_mr& mr, std::uint32_t pd, const ipc::RegMrRequest& request,
                            LocalView view) {
    LkeyTable::Region region{};
    region.lkey = mr.lkey;
    region.pd = pd;
    region.place = view.place;
    region.writable = (request.access & ipc::kAccessLocalWrite) != 0;
    region.iova = request.iova;
    region.length = request.length;
    region.address = view.address;
    region.mapped = view.mapped;
    return region;
}

template <typename T>
T* refuse(int why) {
    errno = why;
    return nullptr;
}

/// Registers and makes the handle. `fd` goes with the request unless it is negative.
ibv_mr* enter(ibv_pd* pd, const ipc::RegMrRequest& request, int fd, int type, LocalView view) {
    auto mr = std::make_unique<Mr>();
    Context& context = Context::of(pd->context);
    const int fds[] = {fd};
    ipc::RegMrReply made{};
    const std::span<const int> passed = fd < 0 ? std::span<const int>() : std::span<const int>(fds);
    if (const int error = context.control().call(ipc::Operation::kRegMr, request, made, passed); error != 0)
        return refuse<ibv_mr>(error);
    ibv_mr& handle = mr->handle();
    handle.context = pd->context;
    handle.pd = pd;
    handle.length = request.length;
    handle.handle = made.handle;
    handle.lkey = made.lkey;
    handle.rkey = made.rkey;
    mr->verbs.type = type;
    mr->verbs.access = static_cast<int>(request.access);
    mr->iova = request.iova;
    mr->mapped = view.mapped;
    context.lkeys().insert(to_region(handle, pd->handle, request, view));
    return &mr.release()->handle();
}

ipc::RegMrRequest plain_request(std::uint32_t pd, std::uint64_t address, std::uint64_t length,
                                std::uint64_t iova, std::uint32_t access) {
    ipc::RegMrRequest request{};
    request.pd = pd;
    request.access = access & kKnownAccess;
    request.address = address;
    request.length = length;
    request.iova = iova;
    return request;
}

/// A region that is not on-demand must be there from end to end, as where an adapter pins its pages.
int check_mapped(std::uint64_t address, std::uint64_t length, std::uint32_t access) {
    if ((access & ipc::kAccessOnDemand) != 0) return 0;
    return is_mapped(address, length, (access & ipc::kAccessLocalWrite) != 0) ? 0 : EFAULT;
}

RegionSource source_of(std::uint64_t address, std::uint64_t length, std::uint32_t access) {
    return access & ipc::kAccessOnDemand ? RegionSource{} : find_region_source(address, length);
}

void apply(const RegionSource& source, ipc::RegMrRequest& request) {
    request.kind = static_cast<std::uint32_t>(source.kind);
    request.object_handle = source.object_handle;
    request.file_offset = source.file_offset;
}

LocalView view_of(std::uint64_t address, std::uint32_t access, bool mapped) {
    return {access & ipc::kAccessOnDemand ? RegionPlace::kOnDemand : RegionPlace::kHere, address, mapped};
}

}  // namespace

ibv_mr* reg_mr(ibv_pd* pd, void* memory, std::size_t length, std::uint64_t iova, int access) {
    if (const int error = check_access(access); error != 0) return refuse<ibv_mr>(error);
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    const auto flags = static_cast<std::uint32_t>(access);
    // All of the address space may only be had on demand.
    const bool implicit = memory == nullptr && length == SIZE_MAX;
    if (implicit && (flags & ipc::kAccessOnDemand) == 0) return refuse<ibv_mr>(EINVAL);
    if (!implicit && length > UINT64_MAX - address) return refuse<ibv_mr>(EINVAL);
    ipc::RegMrRequest request =
        plain_request(pd->handle, address, length, flags & ipc::kAccessZeroBased ? 0 : iova, flags);
    if (const int error = check_mapped(address, length, flags); error != 0) return refuse<ibv_mr>(error);
    const RegionSource source = source_of(address, length, flags);
    apply(source, request);
    const bool shared = source.kind != ipc::RegionKind::kPrivate;
    ibv_mr* mr = enter(pd, request, source.file.get(), abi::kMrPlain, view_of(address, flags, shared));
    if (mr != nullptr || !shared || !Context::of(pd->context).alive()) return mr;
    apply(RegionSource{}, request);
    return enter(pd, request, -1, abi::kMrPlain, view_of(address, flags, false));
}

ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                      int access) {
    if (const int error = check_access(access); error != 0) return refuse<ibv_mr>(error);
    ipc::RegMrRequest request =
        plain_request(pd->handle, offset, length, iova, static_cast<std::uint32_t>(access));
    request.kind = static_cast<std::uint32_t>(ipc::RegionKind::kDmaBuf);
    request.file_offset = offset;
    return enter(pd, request, fd, abi::kMrDmaBuf, {RegionPlace::kElsewhere, 0, true});
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* handle, std::uint64_t offset, std::size_t length, unsigned access) {
    Dm& dm = Dm::of(handle);
    if (const int error = check_access(static_cast<int>(access)); error != 0) return refuse<ibv_mr>(error);
    // Device memory has no address but its offset (the manual asks for zero-based regions).
    if ((access & ipc::kAccessZeroBased) == 0 || offset > dm.length || length > dm.length - offset)
        return refuse<ibv_mr>(EINVAL);
    ipc::RegMrRequest request = plain_request(pd->handle, 0, length, 0, access);
    request.kind = static_cast<std::uint32_t>(ipc::RegionKind::kDeviceMemory);
    request.object_handle = dm.verbs.handle;
    request.file_offset = offset;
    const auto here = reinterpret_cast<std::uint64_t>(dm.memory.base() + offset);
    // Not of the plain type: libibverbs must not touch the fork marking of memory that is not the program's.
    return enter(pd, request, -1, abi::kMrDmaBuf, {RegionPlace::kHere, here, true});
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
    ipc::RegMrRequest request = plain_request(pd->handle, 0, SIZE_MAX, 0, ipc::kAccessLocalWrite);
    request.kind = static_cast<std::uint32_t>(ipc::RegionKind::kNull);
    return enter(pd, request, -1, abi::kMrNull, {RegionPlace::kNowhere, 0, true});
}

int rereg_mr(abi::VerbsMr* verbs, int flags, ibv_pd* pd, void* memory, std::size_t length, int access) {
    Mr& mr = Mr::of(verbs);
    ibv_mr& handle = mr.handle();
    Context& context = Context::of(handle.context);
    const bool translation = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const int new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : verbs->access;
    if (const int error = check_access(new_access); error != 0) return error;
    if ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && (pd == nullptr || pd->context != handle.context))
        return EINVAL;
    const auto access_flags = static_cast<std::uint32_t>(new_access);
    const auto address = reinterpret_cast<std::uint64_t>(translation ? memory : handle.addr);
    const std::uint64_t size = translation ? length : handle.length;
    if (size > UINT64_MAX - address) return EINVAL;
    const std::uint64_t iova = !translation ? mr.iova : access_flags & ipc::kAccessZeroBased ? 0 : address;
    const ibv_pd* owner = flags & IBV_REREG_MR_CHANGE_PD ? pd : handle.pd;

    ipc::ReregMrRequest request{};
    request.handle = handle.handle;
    request.flags = static_cast<std::uint32_t>(flags);
    request.to = plain_request(owner->handle, address, size, iova, access_flags);
    if (translation)
        if (const int mapping = check_mapped(address, size, access_flags); mapping != 0) return mapping;
    const RegionSource source = translation ? source_of(address, size, access_flags) : RegionSource{};
    apply(source, request.to);
    const int fds[] = {source.file.get()};
    const std::span<const int> passed = source.file ? std::span<const int>(fds) : std::span<const int>();
    ipc::RegMrReply made{};
    int error = context.control().call(ipc::Operation::kReregMr, request, made, passed);
    bool mapped = translation ? source.kind != ipc::RegionKind::kPrivate : mr.mapped;
    if (error != 0 && source.kind != ipc::RegionKind::kPrivate && context.alive()) {
        apply(RegionSource{}, request.to);
        mapped = false;
        error = context.control().call(ipc::Operation::kReregMr, request, made);
    }
    if (error != 0) return error;
    context.lkeys().erase(handle.lkey);
    handle.lkey = made.lkey;
    handle.rkey = made.rkey;
    verbs->access = static_cast<int>(request.to.access);
    mr.iova = iova;
    mr.mapped = mapped;
    context.lkeys().insert(
        to_region(handle, owner->handle, request.to, view_of(address, access_flags, mapped)));
    return 0;
}

int dereg_mr(abi::VerbsMr* verbs) {
    Mr& mr = Mr::of(verbs);
    Context& context = Context::of(mr.handle().context);
    const int error =
        context.control().command(ipc::Operation::kDeregMr, ipc::HandleBody{mr.handle().handle, 0});
    if (context.forgive_death(error) != 0) return error;
    context.lkeys().erase(mr.handle().lkey);
    const std::unique_ptr<Mr> owner(&mr);
    return 0;
}

ibv_mr* import_mr(ibv_pd* pd, std::uint32_t number) {
    auto mr = std::make_unique<Mr>();
    ipc::ImportMrReply found{};
    const int error = Context::of(pd->context)
                          .control()
                          .call(ipc::Operation::kImportMr, ipc::ImportMrRequest{pd->handle, number}, found);
    if (error != 0) return refuse<ibv_mr>(error);
    ibv_mr& handle = mr->handle();
    handle.context = pd->context;
    handle.pd = pd;
    handle.addr = nullptr;
    handle.length = found.length;
    handle.handle = number;
    handle.lkey = found.lkey;
    handle.rkey = found.rkey;
    mr->verbs.type = abi::kMrImported;
    mr->iova = found.iova;
    return &mr.release()->handle();
}

void unimport_mr(ibv_mr* handle) {
    const std::unique_ptr<Mr> owner(&Mr::of(handle));
}

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count) {
    const bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    if (!write && advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH &&
        advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return EOPNOTSUPP;
    if ((flags & ~static_cast<std::uint32_t>(IB_UVERBS_ADVISE_MR_FLAG_FLUSH)) != 0 || count == 0)
        return EINVAL;
    Context& context = Context::of(pd->context);
    if (!context.alive()) return EIO;
    for (std::uint32_t i = 0; i < count; ++i) {
        const LkeyTable::Entry* region = context.lkeys().find(list[i].lkey, pd->handle);
        if (region == nullptr) return EFAULT;
        if (region->place.load(std::memory_order_relaxed) != RegionPlace::kOnDemand) return EINVAL;
        if (write && !region->writable.load(std::memory_order_relaxed)) return EPERM;
        if (list[i].length != 0 && region->locate(list[i].addr, list[i].length) == 0) return EFAULT;
    }
    return 0;  // the engine needs no page tables: pages come when they are touched
}

}  // namespace uib::provider
