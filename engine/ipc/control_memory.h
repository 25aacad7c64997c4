// Control messages about memory: regions, windows, device memory.
#pragma once

#include <cstdint>

namespace uib::ipc {

/// Access rights, values as ibv_access_flags.
enum AccessFlags : std::uint32_t {
    kAccessLocalWrite = 1 << 0,
    kAccessRemoteWrite = 1 << 1,
    kAccessRemoteRead = 1 << 2,
    kAccessRemoteAtomic = 1 << 3,
    kAccessBindWindow = 1 << 4,
    kAccessZeroBased = 1 << 5,
    kAccessOnDemand = 1 << 6,
    kAccessHugeTlb = 1 << 7,
    kAccessRelaxedOrdering = 1 << 20,
};

enum class RegionKind : std::uint32_t {
    kPrivate = 0,  ///< reached by the session's MemoryMode
    kShared = 1,   ///< descriptor [0]: the file behind the mapping, readable and writable as the access asks;
                   ///< the engine maps it
    kDmaBuf = 2,   ///< descriptor [0]: the dma-buf
    kDeviceMemory = 3,
    kNull = 4,     ///< reads give zeros, writes vanish
    kSysvShm = 5,  ///< file_offset within the System V segment `object_handle` names (shmid)
};

struct RegMrRequest {
    std::uint32_t pd;
    std::uint32_t access;   ///< AccessFlags
    std::uint64_t address;  ///< in the client
    std::uint64_t length;
    std::uint64_t iova;           ///< address that work requests use
    std::uint32_t kind;           ///< RegionKind
    std::uint32_t object_handle;  ///< kDeviceMemory: the DM; kSysvShm: the shmid
    std::uint64_t
        file_offset;  ///< kShared, kDmaBuf, kDeviceMemory, kSysvShm: offset of `address` in the file
};
struct RegMrReply {
    std::uint32_t handle;
    std::uint32_t lkey;
    std::uint32_t rkey;
    std::uint32_t reserved;
};
enum ReregFlags : std::uint32_t {
    kReregTranslation = 1,
    kReregPd = 2,
    kReregAccess = 4
};  // as ibv_rereg_mr_flags
struct ReregMrRequest {
    std::uint32_t handle;
    std::uint32_t flags;  ///< ReregFlags
    RegMrRequest to;      ///< the parts that `flags` names
};
struct AllocMwRequest {
    std::uint32_t pd;
    std::uint32_t type;  ///< 1 or 2
};
struct AllocMwReply {
    std::uint32_t handle;
    std::uint32_t rkey;
};
struct AllocDmRequest {
    std::uint64_t length;
    std::uint32_t log_align;
    std::uint32_t reserved;
};
struct AllocDmReply {  // descriptor behind the chunks: the memory itself, for ibv_memcpy_to_dm and _from_dm
    std::uint32_t handle;
    std::uint32_t reserved;
    std::uint64_t length;
};
struct ImportMrRequest {
    std::uint32_t pd;
    std::uint32_t handle;
};
struct ImportMrReply {
    std::uint32_t lkey;
    std::uint32_t rkey;
    std::uint64_t length;
    std::uint64_t iova;
};
struct ImportDmReply {  // descriptor: the memory
    std::uint64_t length;
};

}  // namespace uib::ipc
