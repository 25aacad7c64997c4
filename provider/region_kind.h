// Which memory is shared already, so that the engine can map the same pages instead of copying through the
// kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ipc/control_memory.h"
#include "provider/descriptors.h"

namespace uib::provider {

/// How a region of this process's memory is to be registered.
struct RegionSource {
    ipc::RegionKind kind = ipc::RegionKind::kPrivate;
    UniqueFd file;                    ///< kShared: the file behind the mapping
    std::uint32_t object_handle = 0;  ///< kSysvShm: the segment
    std::uint64_t file_offset = 0;
};

/// kShared or kSysvShm if one shared mapping covers all of the range and its file can be had; kPrivate in
/// every other case, and for ranges too short to be worth the search.
RegionSource find_region_source(std::uint64_t address, std::uint64_t length);

/// Whether every byte of the range is mapped readable (and writable, where asked). True where the kernel does
/// not tell (no /proc).
bool is_mapped(std::uint64_t address, std::uint64_t length, bool writable);

}  // namespace uib::provider
