// Control operations on protection domains, regions, windows and device memory.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "engine/memory/null_space.h"
#include "engine/verbs/context.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kKnownAccess =
    ipc::kAccessLocalWrite | ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead | ipc::kAccessRemoteAtomic |
    ipc::kAccessBindWindow | ipc::kAccessZeroBased | ipc::kAccessOnDemand | ipc::kAccessHugeTlb;
/// Rights that a client may ask for and an implementation may ignore (IBV_ACCESS_OPTIONAL_RANGE).
constexpr std::uint32_t kOptionalAccess = 0x3FF00000;
constexpr std::uint64_t kWholeAddressSpace = ~std::uint64_t{0};

int check_access(std::uint32_t access) {
    if ((access & ~(kKnownAccess | kOptionalAccess)) != 0) return EINVAL;
    // IBA 10.6.3.1: remote write and atomic rights need local write.
    const std::uint32_t remote_change = ipc::kAccessRemoteWrite | ipc::kAccessRemoteAtomic;
    if ((access & remote_change) != 0 && (access & ipc::kAccessLocalWrite) == 0) return EINVAL;
    return 0;
}

/// The provider has looked at the mappings of the whole range; this is for clients that are none: the
/// region's ends must be there.
int check_private(memory::ProcessSpace& space, std::uint64_t address, std::uint64_t length) {
    if (length == 0) return 0;
    std::byte probe[2];
    const memory::RemoteRange ends[] = {{address, 1}, {address + length - 1, 1}};
    return space.read(ends, probe) ? 0 : EFAULT;
}

}  // namespace

int Context::alloc_pd(Client& client, std::uint32_t& handle) {
    if (pds_.live() >= Limits::kMaxPd) return ENOMEM;
    auto pd = std::make_unique<Pd>();
    pd->owner = &client;
    pd->id = adapter_.next_pd();
    handle = pds_.add(std::move(pd));
    return 0;
}

int Context::dealloc_pd(std::uint32_t handle) {
    const Pd* pd = pds_.get(handle);
    if (pd == nullptr) return ENOENT;
    if (pd->uses != 0) return EBUSY;
    pds_.take(handle);
    return 0;
}

int Context::make_space(Client& client, const ipc::RegMrRequest& request, int file,
                        memory::RegionInit& init) {
    const bool writable = (request.access & ipc::kAccessLocalWrite) != 0;
    init.space_address = request.file_offset;
    memory::MappedSpace::Made made;
    switch (static_cast<ipc::RegionKind>(request.kind)) {
        case ipc::RegionKind::kPrivate:
            init.space = client.space();
            init.space_address = request.address;
            // Implicit regions start at 0 in both views; on-demand ones may fault later.
            if ((request.access & ipc::kAccessOnDemand) != 0) return 0;
            return check_private(*client.space(), request.address, request.length);
        case ipc::RegionKind::kShared:
            if (file < 0) return EBADF;
            made = memory::MappedSpace::map_file(file, request.file_offset, request.length, writable);
            break;
        case ipc::RegionKind::kDmaBuf:
            if (file < 0) return EBADF;
            made = memory::MappedSpace::map_dma_buf(file, request.file_offset, request.length, writable);
            break;
        case ipc::RegionKind::kSysvShm:
            made = memory::MappedSpace::map_sysv(static_cast<int>(request.object_handle), request.file_offset,
                                                 request.length, writable, client.credentials());
            break;
        case ipc::RegionKind::kDeviceMemory: {
            DeviceMemory* memory = dms_.get(request.object_handle);
            if (memory == nullptr) return EINVAL;
            if (request.file_offset > memory->length || request.length > memory->length - request.file_offset)
                return EINVAL;
            init.space = memory->space;
            return 0;
        }
        case ipc::RegionKind::kNull:
            init.space = std::make_shared<memory::NullSpace>();
            return 0;
        default:
            return EINVAL;
    }
    init.space = made.space;
    return made.error;
}

int Context::make_region(Client& client, const ipc::RegMrRequest& request, int file,
                         memory::RegionInit& init) {
    const Pd* pd = pds_.get(request.pd);
    if (pd == nullptr) return EINVAL;
    if (const int error = check_access(request.access); error != 0) return error;
    init.pd = pd->id;
    init.access = request.access;
    init.length = request.length;
    if (static_cast<ipc::RegionKind>(request.kind) != ipc::RegionKind::kDmaBuf)
        init.placing_client = client.id();
    init.iova = (request.access & ipc::kAccessZeroBased) != 0 ? 0 : request.iova;
    const bool whole = request.length == kWholeAddressSpace;
    const auto kind = static_cast<ipc::RegionKind>(request.kind);
    if (whole) {
        // Implicit on-demand region, or a null region: any address.
        const bool implicit = (request.access & ipc::kAccessOnDemand) != 0 && request.address == 0;
        if (kind != ipc::RegionKind::kNull && !(kind == ipc::RegionKind::kPrivate && implicit)) return EINVAL;
    } else if (request.address + request.length < request.address || init.iova + request.length < init.iova) {
        return EINVAL;
    }
    return make_space(client, request, file, init);
}

int Context::reg_mr(Client& client, const ipc::RegMrRequest& request, int file, ipc::RegMrReply& reply) {
    if (regions_.live() >= Limits::kMaxMr) return ENOMEM;
    memory::RegionInit init;
    if (const int error = make_region(client, request, file, init); error != 0) return error;
    auto object = std::make_unique<RegionObject>();
    object->region = adapter_.keys().add_region(std::move(init));
    object->owner = &client;
    object->pd = pds_.get(request.pd);
    object->definition = request;
    if (static_cast<ipc::RegionKind>(request.kind) == ipc::RegionKind::kDeviceMemory) {
        object->device_memory = dms_.get(request.object_handle);
        ++object->device_memory->uses;
    }
    ++object->pd->uses;
    reply.lkey = reply.rkey = object->region->key();
    reply.handle = regions_.add(std::move(object));
    return 0;
}

int Context::change_rights(const RegionObject& object, ipc::RegMrRequest& wanted) {
    const Pd* pd = pds_.get(wanted.pd);
    if (pd == nullptr) return EINVAL;
    if (const int error = check_access(wanted.access); error != 0) return error;
    const ipc::RegMrRequest& old = object.definition;
    // A mapping made for reading cannot become writable; the memory itself must be given again.
    const bool more = (wanted.access & ~old.access & ipc::kAccessLocalWrite) != 0;
    if (more && static_cast<ipc::RegionKind>(old.kind) != ipc::RegionKind::kPrivate) return EACCES;
    // What the base address means cannot change with it in place.
    if (((wanted.access ^ old.access) & ipc::kAccessZeroBased) != 0) return EINVAL;
    const std::uint32_t pd_handle = wanted.pd, access = wanted.access;
    wanted = old;
    wanted.pd = pd_handle;
    wanted.access = access;
    return adapter_.keys().change_rights(object.region, pd->id, access);
}

int Context::rereg_mr(const ipc::ReregMrRequest& request, int file, ipc::RegMrReply& reply) {
    RegionObject* object = regions_.get(request.handle);
    if (object == nullptr) return ENOENT;
    constexpr std::uint32_t kKnown = ipc::kReregTranslation | ipc::kReregPd | ipc::kReregAccess;
    if (object->owner == nullptr || request.flags == 0 || (request.flags & ~kKnown) != 0) return EINVAL;
    const auto kind = static_cast<ipc::RegionKind>(object->definition.kind);
    if (kind == ipc::RegionKind::kDeviceMemory || kind == ipc::RegionKind::kNull ||
        kind == ipc::RegionKind::kDmaBuf)
        return EOPNOTSUPP;
    ipc::RegMrRequest wanted = request.to;
    if ((request.flags & ipc::kReregPd) == 0) wanted.pd = object->definition.pd;
    if ((request.flags & ipc::kReregAccess) == 0) wanted.access = object->definition.access;
    int error = 0;
    if ((request.flags & ipc::kReregTranslation) == 0) {
        error = change_rights(*object, wanted);
    } else {
        memory::RegionInit init;
        error = make_region(*object->owner, wanted, file, init);
        if (error == 0) error = adapter_.keys().change_region(object->region, std::move(init));
    }
    if (error != 0) return error;
    --object->pd->uses;
    object->pd = pds_.get(wanted.pd);
    ++object->pd->uses;
    object->definition = wanted;
    reply.handle = request.handle;
    reply.lkey = reply.rkey = object->region->key();
    return 0;
}

int Context::dereg_mr(std::uint32_t handle) {
    RegionObject* object = regions_.get(handle);
    if (object == nullptr) return ENOENT;
    if (const int error = adapter_.keys().remove_region(object->region); error != 0) return error;
    --object->pd->uses;
    if (object->device_memory != nullptr) --object->device_memory->uses;
    regions_.take(handle);
    return 0;
}

int Context::import_mr(std::uint32_t pd, std::uint32_t handle, ipc::ImportMrReply& reply) {
    const RegionObject* object = regions_.get(handle);
    if (object == nullptr) return ENOENT;
    if (pds_.get(pd) == nullptr) return EINVAL;
    reply.lkey = reply.rkey = object->region->key();
    reply.length = object->region->length();
    reply.iova = object->region->iova();
    return 0;
}

int Context::alloc_mw(Client& client, const ipc::AllocMwRequest& request, ipc::AllocMwReply& reply) {
    Pd* pd = pds_.get(request.pd);
    if (pd == nullptr || (request.type != 1 && request.type != 2)) return EINVAL;
    if (windows_.live() >= Limits::kMaxMw) return ENOMEM;
    auto object = std::make_unique<WindowObject>();
    object->owner = &client;
    object->pd = pd;
    object->window = adapter_.keys().add_window(pd->id, static_cast<memory::WindowType>(request.type));
    ++pd->uses;
    reply.rkey = object->window->key();
    reply.handle = windows_.add(std::move(object));
    return 0;
}

int Context::dealloc_mw(std::uint32_t handle) {
    const WindowObject* object = windows_.get(handle);
    if (object == nullptr) return ENOENT;
    adapter_.keys().remove_window(object->window);
    --object->pd->uses;
    windows_.take(handle);
    return 0;
}

int Context::alloc_dm(Client& client, const ipc::AllocDmRequest& request, ipc::AllocDmReply& reply) {
    if (request.length == 0 || request.length > Limits::kMaxDm || request.log_align > 12) return EINVAL;
    if (dms_.live() >= Limits::kMaxDmObjects) return ENOMEM;
    auto object = std::make_unique<DeviceMemory>();
    object->owner = &client;
    object->length = request.length;
    object->fd = ipc::UniqueFd(::memfd_create("uib-device-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!object->fd) return errno;
    if (::ftruncate(object->fd.get(), static_cast<off_t>(request.length)) != 0) return errno;
    auto made = memory::MappedSpace::map_file(object->fd.get(), 0, request.length, true);
    if (made.error != 0) return made.error;
    object->space = made.space;
    reply.length = request.length;
    reply.handle = dms_.add(std::move(object));
    return 0;
}

int Context::free_dm(std::uint32_t handle) {
    const DeviceMemory* object = dms_.get(handle);
    if (object == nullptr) return ENOENT;
    if (object->uses != 0) return EBUSY;
    dms_.take(handle);
    return 0;
}

transport::Status Context::bind_window(Qp& qp, const transport::SendRequest& request) {
    const WindowObject* object = windows_.get(request.window_handle);
    if (object == nullptr || static_cast<std::uint8_t>(object->window->type()) != request.bind_window_type)
        return transport::Status::kWindowBind;
    memory::BindRequest bind;
    bind.pd = qp.init().pd->id;
    bind.qp_number = qp.number();
    bind.region_key = static_cast<std::uint32_t>(request.swap);
    bind.new_key = request.rkey;
    bind.address = request.remote_address;
    bind.length = request.compare_add;
    bind.access = static_cast<std::uint32_t>(request.swap >> 32);
    return adapter_.keys().bind(object->window, bind) == memory::AccessError::kNone
               ? transport::Status::kSuccess
               : transport::Status::kWindowBind;
}

}  // namespace uib::verbs
