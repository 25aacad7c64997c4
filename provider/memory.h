// Memory regions, memory windows and device memory.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "provider/abi_34.h"
#include "provider/descriptors.h"

namespace uib::provider {

struct Mr {
    abi::VerbsMr verbs;  // first: the program's handle
    std::uint64_t iova = 0;
    bool mapped = false;  ///< the engine reaches the bytes without a system call

    static Mr& of(ibv_mr* mr) { return *reinterpret_cast<Mr*>(mr); }
    static Mr& of(abi::VerbsMr* mr) { return *reinterpret_cast<Mr*>(mr); }
    ibv_mr& handle() { return verbs.mr; }
};

struct Dm {
    abi::VerbsDm verbs;  // first: the program's handle
    Mapping memory;
    std::uint64_t length = 0;
    bool imported = false;

    static Dm& of(ibv_dm* dm) { return *reinterpret_cast<Dm*>(dm); }
    ibv_dm& handle() { return verbs.dm; }
};

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access);
ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                      int access);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access);
ibv_mr* alloc_null_mr(ibv_pd* pd);
int rereg_mr(abi::VerbsMr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access);
int dereg_mr(abi::VerbsMr* mr);
ibv_mr* import_mr(ibv_pd* pd, std::uint32_t handle);
void unimport_mr(ibv_mr* mr);
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count);

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes);
int free_dm(ibv_dm* dm);
ibv_dm* import_dm(ibv_context* context, std::uint32_t handle);
void unimport_dm(ibv_dm* dm);

}  // namespace uib::provider
