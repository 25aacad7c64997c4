// Protection, parent and thread domains. A parent domain stands for its protection domain everywhere: it has
// the same handle. Its allocators are accepted and not used, as the manual allows: queues live in memory that
// the engine makes.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

namespace uib::provider {

struct Td {
    ibv_td td;  // first: the program's handle
    std::atomic<std::uint32_t> users{0};

    static Td& of(ibv_td* td) { return *reinterpret_cast<Td*>(td); }
};

struct Pd {
    ibv_pd pd;             // first: the program's handle
    Pd* parent = nullptr;  ///< of a parent domain: what it stands for
    Td* thread_domain = nullptr;
    bool imported = false;
    std::atomic<std::uint32_t> users{0};  ///< parent domains that stand for this one

    static Pd& of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }
};

ibv_pd* alloc_pd(ibv_context* context);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes);
int dealloc_pd(ibv_pd* pd);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes);
int dealloc_td(ibv_td* td);
ibv_pd* import_pd(ibv_context* context, std::uint32_t handle);
void unimport_pd(ibv_pd* pd);

}  // namespace uib::provider
