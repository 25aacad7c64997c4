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
inline constexpr std::uint32_t kGidTableSize = 16;

enum class Operation : std::uint16_t {
    kHello = 1,
    kStatus,  ///< for the command line: no hello needed beyond kHello with empty device name; reply carries a
              ///< memfd of JSON
    kQueryDevice,
    kQueryPort,
    kImportContext,
    kAllocPd,
    kDeallocPd,
    kImportPd,
    kRegMr,
    kReregMr,
    kDeregMr,
    kImportMr,
    kAllocMw,
    kDeallocMw,
    kAllocDm,
    kFreeDm,
    kImportDm,
    kCreateChannel,
    kDestroyChannel,
    kCreateCq,
    kResizeCq,
    kModifyCq,
    kDestroyCq,
    kCreateSrq,
    kModifySrq,
    kQuerySrq,
    kDestroySrq,
    kCreateQp,
    kModifyQp,
    kQueryQp,
    kDestroyQp,
    kAttachMulticast,
    kDetachMulticast,
    kAllocStaging,
    kOpenXrcd,
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

// Device.

struct DeviceLimits {
    std::uint64_t max_mr_size;
    std::uint64_t page_size_cap;
    std::uint32_t vendor_id;
    std::uint32_t vendor_part_id;
    std::uint32_t hw_ver;
    std::uint32_t max_qp;
    std::uint32_t max_qp_wr;
    std::uint32_t max_sge;
    std::uint32_t max_sge_rd;
    std::uint32_t max_inline;
    std::uint32_t max_cq;
    std::uint32_t max_cqe;
    std::uint32_t max_mr;
    std::uint32_t max_pd;
    std::uint32_t max_mw;
    std::uint32_t max_qp_rd_atom;
    std::uint32_t max_res_rd_atom;
    std::uint32_t max_qp_init_rd_atom;
    std::uint32_t max_mcast_grp;
    std::uint32_t max_mcast_qp_attach;
    std::uint32_t max_ah;
    std::uint32_t max_srq;
    std::uint32_t max_srq_wr;
    std::uint32_t max_srq_sge;
    std::uint32_t local_ca_ack_delay;
    std::uint16_t max_pkeys;
    std::uint16_t ports;
    std::uint64_t max_dm_size;
    std::uint32_t max_wq;  ///< this and the next three: 0 without receive side scaling
    std::uint32_t max_rwq_tables;
    std::uint32_t max_rwq_table_entries;
    std::uint32_t rx_hash_fields;  ///< HashFields (control_rss.h)
    std::uint64_t node_guid;       ///< host order
    std::uint64_t sys_image_guid;
    char fw_ver[64];
};

struct QueryPortRequest {
    std::uint32_t port;
    std::uint32_t reserved;
};
struct PortAttributes {
    std::uint32_t state;  ///< ibv_port_state
    std::uint32_t max_mtu;
    std::uint32_t active_mtu;
    std::uint32_t gid_table_length;
    std::uint32_t port_cap_flags;
    std::uint32_t max_msg_sz;
    std::uint32_t bad_pkey_counter;
    std::uint32_t qkey_violation_counter;
    std::uint16_t pkey_table_length;
    std::uint16_t lid;
    std::uint16_t sm_lid;
    std::uint16_t port_cap_flags2;
    std::uint8_t lmc;
    std::uint8_t max_vl_num;
    std::uint8_t sm_sl;
    std::uint8_t subnet_timeout;
    std::uint8_t init_type_reply;
    std::uint8_t active_width;
    std::uint8_t active_speed;
    std::uint8_t phys_state;
    std::uint8_t link_layer;
    std::uint8_t reserved[3];
    std::uint32_t active_speed_ex;
    std::uint8_t gids[kGidTableSize][16];  ///< gid_table_length entries are valid
    std::uint16_t pkeys[16];
};

// Memory.

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

// Completion.

/// kCreateChannel: descriptor [0] is the pipe's write end; reply HandleBody. The engine writes 8 bytes an
/// event: the CQ's user_handle.
struct CreateCqRequest {
    std::uint64_t user_handle;  ///< the client's ibv_cq, given back in events
    std::uint32_t entries;      ///< wanted, 1 to max_cqe
    std::uint32_t channel;      ///< handle + 1, or 0
    std::uint32_t completion_vector;
    std::uint32_t flags;  ///< CqCreateFlags
};
enum CqCreateFlags : std::uint32_t { kCqIgnoreOverrun = 1 };
struct CqReply {
    std::uint32_t handle;
    std::uint32_t entries;  ///< true size, a power of two
    Location control;       ///< CqControl
    Location ring;          ///< Cqe[entries]
};
struct ResizeCqRequest {
    std::uint32_t handle;
    std::uint32_t entries;  ///< below what is unpolled: EINVAL
};                          // reply CqReply: a new ring; unpolled entries were moved, indices go on
struct ModifyCqRequest {
    std::uint32_t handle;
    std::uint16_t moderation_count;
    std::uint16_t moderation_period_us;
};
/// Reply of the destroy operations that owe events.
struct EventsReply {
    std::uint32_t completion_events;  ///< written to the channel over the object's life
    std::uint32_t async_events;       ///< written to the asynchronous pipe
};

// Queues.

struct QueueLocation {
    Location control;  ///< QueueControl
    Location slots;
    std::uint32_t entries;  ///< a power of two
    std::uint32_t stride;   ///< bytes a slot
    std::uint32_t max_sge;
    std::uint32_t max_inline;  ///< send queues
};
// XRC domains.

/// Descriptor with the request, if `has_file`: [0] the file whose inode names the domain among all processes
/// of the engine's devices (ibv_open_xrcd); without, the domain is the session's own. Flags as open(2):
/// O_CREAT makes the domain unless there is one, O_CREAT | O_EXCL fails with EEXIST if there is one, none
/// fails with ENOENT if there is none. Reply HandleBody. kCloseXrcd takes HandleBody; EBUSY while SRQs or
/// target QPs of this context use it. The domain goes with its last holder, and its target QPs with it.
struct OpenXrcdRequest {
    std::uint32_t flags;
    std::uint32_t has_file;
};

enum class SrqKind : std::uint32_t { kBasic = 0, kXrc = 1 };

struct CreateSrqRequest {
    std::uint64_t user_handle;
    std::uint32_t pd;
    std::uint32_t max_wr;
    std::uint32_t max_sge;
    std::uint32_t limit;
    std::uint32_t kind;  ///< SrqKind
    std::uint32_t xrcd;  ///< kXrc: handle + 1 of the domain
    std::uint32_t cq;    ///< kXrc: handle + 1 of the CQ for its receives
    std::uint32_t reserved;
};
struct SrqReply {
    std::uint32_t handle;
    std::uint32_t srq_number;
    QueueLocation queue;
    Location available;  ///< uint32_t[entries]: slot numbers in the order in which they were posted
};
enum SrqAttributes : std::uint32_t { kSrqMaxWr = 1, kSrqLimit = 2 };  // as ibv_srq_attr_mask
struct ModifySrqRequest {
    std::uint32_t handle;
    std::uint32_t mask;
    std::uint32_t max_wr;  ///< a resize beyond the ring's entries is refused (EINVAL)
    std::uint32_t limit;
};
struct QuerySrqReply {
    std::uint32_t max_wr;
    std::uint32_t max_sge;
    std::uint32_t limit;
    std::uint32_t reserved;
};

enum class Service : std::uint32_t {
    kRc = 2,
    kUc = 3,
    kUd = 4,
    kRawPacket = 8,
    kXrcSend = 9,
    kXrcReceive = 10,
};  // as ibv_qp_type; reliable datagrams follow with their issue

struct CreateQpRequest {
    std::uint64_t user_handle;
    std::uint32_t pd;
    std::uint32_t send_cq;
    std::uint32_t recv_cq;
    std::uint32_t srq;  ///< handle + 1, or 0
    std::uint32_t service;
    std::uint32_t signal_all;
    std::uint32_t max_send_wr;
    std::uint32_t max_recv_wr;
    std::uint32_t max_send_sge;
    std::uint32_t max_recv_sge;
    std::uint32_t max_inline;
    std::uint32_t create_flags;
    std::uint32_t xrcd;  ///< kXrcReceive: handle + 1 of the domain (and no PD, CQs, SRQ)
    std::uint32_t reserved;
};
/// kOpenQp: a target QP of the domain, by number (ibv_open_qp). Reply QpReply without queues; the QP lives
/// until it is destroyed by every holder or its domain goes.
struct OpenQpRequest {
    std::uint64_t user_handle;
    std::uint32_t xrcd;  ///< handle of the domain
    std::uint32_t qp_number;
};
struct QpReply {
    std::uint32_t handle;
    std::uint32_t qp_number;
    std::uint32_t slot;  ///< doorbell slot, dense from 0 in the context
    std::uint32_t reserved;
    QueueLocation send;
    QueueLocation receive;  ///< entries 0 with an SRQ or without receives
};

/// Path of a connected QP or destination of a datagram, field for field ibv_ah_attr.
struct PathAttributes {
    std::uint8_t dgid[16];
    std::uint32_t flow_label;
    std::uint16_t dlid;
    std::uint8_t sgid_index;
    std::uint8_t hop_limit;
    std::uint8_t traffic_class;
    std::uint8_t sl;
    std::uint8_t source_path_bits;
    std::uint8_t static_rate;
    std::uint8_t is_global;
    std::uint8_t port;
    std::uint8_t reserved[2];
};
static_assert(sizeof(PathAttributes) == 32);

/// Field for field ibv_qp_attr; `mask` has ibv_qp_attr_mask's bits, `*state` ibv_qp_state's values, MTUs
/// ibv_mtu's.
struct QpAttributes {
    PathAttributes path;
    PathAttributes alternate_path;
    std::uint32_t qkey;
    std::uint32_t rq_psn;
    std::uint32_t sq_psn;
    std::uint32_t dest_qp_number;
    std::uint32_t access;
    std::uint32_t rate_limit;
    std::uint16_t pkey_index;
    std::uint16_t alternate_pkey_index;
    std::uint8_t state;
    std::uint8_t current_state;
    std::uint8_t path_mtu;
    std::uint8_t path_migration_state;
    std::uint8_t enable_sqd_event;
    std::uint8_t sq_draining;
    std::uint8_t max_rd_atomic;
    std::uint8_t max_dest_rd_atomic;
    std::uint8_t min_rnr_timer;
    std::uint8_t port;
    std::uint8_t timeout;
    std::uint8_t retry_count;
    std::uint8_t rnr_retry;
    std::uint8_t alternate_port;
    std::uint8_t alternate_timeout;
    std::uint8_t reserved;
};
struct ModifyQpRequest {
    std::uint32_t handle;
    std::uint32_t mask;
    QpAttributes attributes;
};
struct QueryQpReply {
    QpAttributes attributes;
    std::uint32_t max_send_wr;
    std::uint32_t max_recv_wr;
    std::uint32_t max_send_sge;
    std::uint32_t max_recv_sge;
    std::uint32_t max_inline;
    std::uint32_t signal_all;
};
struct MulticastRequest {
    std::uint32_t qp;
    std::uint16_t lid;
    std::uint16_t reserved;
    std::uint8_t gid[16];
};

/// What the engine writes to the asynchronous-event pipe: the layout that ibv_get_async_event reads.
struct AsyncEvent {
    std::uint64_t element;  ///< user_handle of the QP, CQ or SRQ, or the port number
    std::uint32_t type;     ///< ibv_event_type
    std::uint32_t reserved;
};
static_assert(sizeof(AsyncEvent) == 16);

}  // namespace uib::ipc
