#include "net/port/dpdk/xdp_buffers.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uib::net::dpdk {

void set_unmapped_buffers_aside(rte_mempool& pool) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t stride = ::rte_mempool_calc_obj_size(pool.elt_size, pool.flags, nullptr);
    const auto first = reinterpret_cast<std::uintptr_t>(STAILQ_FIRST(&pool.mem_list)->addr);
    const std::uintptr_t end = (first & ~(page - 1)) + std::uintptr_t{pool.populated_size} * stride;
    std::vector<rte_mbuf*> usable;
    // Those behind the end are never given back: the pool goes as a whole.
    while (rte_mbuf* const buffer = ::rte_pktmbuf_alloc(&pool)) {
        if (reinterpret_cast<std::uintptr_t>(buffer) + stride <= end) usable.push_back(buffer);
    }
    ::rte_pktmbuf_free_bulk(usable.data(), static_cast<unsigned>(usable.size()));
}

}  // namespace uib::net::dpdk
