// Control messages between the provider (or the `uib` command) and the engine.
//
// Transport: SOCK_SEQPACKET Unix socket, one message a packet; descriptors by SCM_RIGHTS; the peer's identity
// by SO_PEERCRED. A request is a RequestHeader and the operation's body; the engine answers each request with
// exactly one reply (ReplyHeader and body) in order. One request is outstanding per connection: the provider
// holds a mutex over request and reply. The first request must be kHello; anything else before it, a wrong
// size, an unknown operation or a reused tag closes the connection (the engine logs why). Refusals answer
// with a positive errno in ReplyHeader::status and change nothing.
//
// A connection is a session. The objects that a session makes live in its context; they die with the session.
// A context can be joined by a second session that shows the first one's socket (kImportContext): see
// ibv_import_device.
//
// Memory: the engine passes arena chunks (memfd). ReplyHeader::new_chunks descriptors come first among the
// reply's descriptors; the client maps each one whole (size by fstat) and numbers them on in the order in
// which they come, starting at 0. Locations name a chunk and an offset in it. Chunk 0 comes with the hello's
// reply and starts with the DoorbellMap.
//
// All structs are plain, packed by hand (no implicit padding), little/big-endian as the machine. Limits of
// strings include the terminating zero.
#pragma once

#include <cstdint>

namespace uib::ipc {

inline constexpr std::uint32_t kProtocolMagic = 0x5549424D;  // "UIBM"
inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::uint32_t kMaxMessageBytes = 4096;
inline constexpr std::uint32_t kMaxMessageFds = 8;
inline constexpr std::uint32_t kDeviceNameMax = 64;

enum class Operation : std::uint16_t {
    kHello = 1,
    kStatus,  ///< for the command line: no hello needed beyond kHello with empty device name; reply carries a
              ///< memfd of JSON
    kQueryDevice,  ///< and kQueryPort: control_device.h
    kQueryPort,
    kImportContext,
    kAllocPd,
    kDeallocPd,
    kImportPd,
    kRegMr,  ///< to kImportDm: control_memory.h
    kReregMr,
    kDeregMr,
    kImportMr,
    kAllocMw,
    kDeallocMw,
    kAllocDm,
    kFreeDm,
    kImportDm,
    kCreateChannel,  ///< to kDestroyCq: control_cq.h
    kDestroyChannel,
    kCreateCq,
    kResizeCq,
    kModifyCq,
    kDestroyCq,
    kCreateSrq,  ///< to kDestroySrq: control_srq.h
    kModifySrq,
    kQuerySrq,
    kDestroySrq,
    kCreateQp,  ///< to kDetachMulticast, and kOpenQp: control_qp.h
    kModifyQp,
    kQueryQp,
    kDestroyQp,
    kAttachMulticast,
    kDetachMulticast,
    kAllocStaging,
    kOpenXrcd,  ///< and kCloseXrcd: control_srq.h
    kCloseXrcd,
    kOpenQp,
    kCreateFlow,  ///< and kDestroyFlow: control_flow.h
    kDestroyFlow,
    kCreateWq,  ///< to kCreateHashQp: control_rss.h
    kModifyWq,
    kDestroyWq,
    kCreateRwqTable,
    kDestroyRwqTable,
    kCreateHashQp,
    kStartCapture,  ///< to kListFaults: control_taps.h
    kStopCapture,
    kAddFault,
    kRemoveFault,
    kListFaults,  ///< reply as kStatus: a memfd of JSON
    kOperationEnd,
};

struct RequestHeader {
    std::uint32_t magic;  ///< kProtocolMagic
    std::uint16_t version;
    std::uint16_t operation;  ///< Operation
    std::uint32_t length;     ///< bytes of the whole message, header included
    std::uint32_t tag;        ///< counts up by one per request on the connection, starting at 1
};
static_assert(sizeof(RequestHeader) == 16);

struct ReplyHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t operation;
    std::uint32_t length;
    std::uint32_t tag;
    std::int32_t status;  ///< 0 or a positive errno; then no body follows
    std::uint32_t new_chunks;
};
static_assert(sizeof(ReplyHeader) == 24);

/// Where a piece of shared memory is.
struct Location {
    std::uint32_t chunk;
    std::uint32_t reserved;
    std::uint64_t offset;
};

/// Body of a request or reply that names one object.
struct HandleBody {
    std::uint32_t handle;
    std::uint32_t reserved;
};

// Session.

enum HelloFlags : std::uint32_t {
    kHelloCommand = 1 << 0,  ///< the `uib` command: no context is made
    kHelloImport = 1 << 1,   ///< an importing provider: kImportContext follows
};

/// Descriptors with the request: [0] the connection's own socket (so that kImportContext can recognise it),
/// [1] write end of the asynchronous-event pipe, [2] the engine's end of the copy-helper socket pair
/// (SOCK_SEQPACKET). None with kHelloCommand.
struct HelloRequest {
    std::uint32_t flags;
    std::uint32_t reserved;
    char device[kDeviceNameMax];
    /// Address in the client of a 64-bit word that holds `probe_value`; the engine reads it, and writes its
    /// complement to the word behind it, to learn whether it may reach the client's memory itself.
    std::uint64_t probe_address;
    std::uint64_t probe_value;
};

/// How the engine reaches memory of this client that is not mapped.
enum class MemoryMode : std::uint32_t { kRemote = 1, kHelper = 2 };

/// Descriptors: chunks (chunk 0 first), then [0] the engine page (read-only), [1] the wake-up eventfd, [2]
/// the helper's staging memfd (only with MemoryMode::kHelper).
struct HelloReply {
    std::uint32_t context_id;
    std::uint32_t memory_mode;  ///< MemoryMode
    std::uint32_t device_index;
    std::uint32_t engine_usable_cpus;
    Location doorbells;  ///< DoorbellMap
    char device[kDeviceNameMax];
    char engine_version[32];
};

struct StatusReply {  // one descriptor: a memfd with JSON text
    std::uint64_t bytes;
};

/// Descriptor with the request: [0] the socket of the session whose context is joined (a duplicate of its
/// cmd_fd).
struct ImportContextReply {
    std::uint32_t context_id;
    std::uint32_t reserved;
};

// Copy helper.

/// On the helper socket, engine to provider: copy between client memory and the staging memfd; answered by
/// HelperReply with the same tag. `count` pieces follow.
struct HelperRequest {
    std::uint32_t tag;
    std::uint16_t to_client;  ///< 1: staging to client memory; 0: client memory to staging
    std::uint16_t count;      ///< 1 to kHelperMaxPieces
};
struct HelperPiece {
    std::uint64_t address;
    std::uint64_t staging_offset;
    std::uint64_t length;
};
inline constexpr std::uint32_t kHelperMaxPieces = 64;
struct HelperReply {
    std::uint32_t tag;
    std::int32_t status;  ///< 0 or errno (EFAULT)
    std::uint32_t failed_piece;
    std::uint32_t reserved;
};

// Staging pool.

inline constexpr std::uint64_t kMaxStagingBytes = std::uint64_t{64} << 20;

/// Memory in the session's arena through which the client hands over payloads (kWorkStaged, ring.h). One a
/// session, asked for when it is first wanted; it goes with the session. The engine only reads it. EINVAL: no
/// whole number of pages up to kMaxStagingBytes; EEXIST: there is one.
struct AllocStagingRequest {
    std::uint64_t bytes;
};
struct AllocStagingReply {
    Location memory;
    std::uint64_t bytes;
};

}  // namespace uib::ipc
