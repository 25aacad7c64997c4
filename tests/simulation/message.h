// Work that a simulated client posts, as the model remembers it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transport/opcodes.h"
#include "tests/simulation/adapter.h"

namespace uib::simulation {

/// What is wrong with a work request that must fail; who finds it.
enum class Illegal : std::uint8_t {
    kNone,
    kRemoteKey,     ///< responder: no such R_Key
    kRemoteBounds,  ///< responder: runs over the region's end
    kRemoteRights,  ///< responder: the QP does not allow the operation
    kMisaligned,    ///< responder: atomic at an odd address
    kTooLong,       ///< responder: longer than the receive; UD: requester, longer than the MTU
    kLocalKey,      ///< requester: no such L_Key
    kMalformed,     ///< requester: the host found the request malformed
    kInlineRead,    ///< requester
    kBadBind,       ///< requester: no such window
    kWrongQkey,     ///< UD: dropped in silence
};

/// True when the requester itself finds the fault.
constexpr bool is_local(Illegal what) {
    return what == Illegal::kLocalKey || what == Illegal::kMalformed || what == Illegal::kInlineRead ||
           what == Illegal::kBadBind;
}

struct Message {
    ipc::WorkOpcode opcode{};
    std::uint8_t flags = 0;
    Illegal illegal = Illegal::kNone;
    std::uint32_t length = 0;
    std::uint32_t immediate = 0;
    std::vector<std::byte> content;  ///< what must arrive; READ: here, else there
    Pieces local;
    std::uint64_t target = 0;  ///< offset in the responder's memory
    bool overlaps = false;     ///< a WRITE into the area that several WRITEs share
    ReceiveList* receives = nullptr;
    std::vector<Qp*> recipients;  ///< who may get it

    std::uint64_t operand = 0;  ///< atomics: what is added, or compared
    std::uint64_t swap = 0;
    std::uint64_t original = 0;  ///< atomics: what the requester was told

    bool confirmed =
        false;  ///< completed with success, or known to have been executed by a later one that did
    struct Arrival {
        Qp* at;
        ReceiveList* list;
        std::uint32_t buffer;
    };
    std::vector<Arrival> arrivals;

    [[nodiscard]] bool signaled() const { return (flags & ipc::kWorkSignaled) != 0; }
    [[nodiscard]] bool is_write() const {
        return opcode == ipc::WorkOpcode::kRdmaWrite || opcode == ipc::WorkOpcode::kRdmaWriteWithImmediate ||
               opcode == ipc::WorkOpcode::kAtomicWrite;
    }
    [[nodiscard]] bool is_atomic() const {
        return opcode == ipc::WorkOpcode::kCompareSwap || opcode == ipc::WorkOpcode::kFetchAdd;
    }
    [[nodiscard]] bool is_read() const { return opcode == ipc::WorkOpcode::kRdmaRead; }
    [[nodiscard]] bool takes_receive() const { return transport::uses_receive(opcode); }
    [[nodiscard]] bool has_immediate() const {
        return opcode == ipc::WorkOpcode::kSendWithImmediate ||
               opcode == ipc::WorkOpcode::kRdmaWriteWithImmediate;
    }
};

/// What the two ends and the links between them allow, for one direction.
struct FlowPlan {
    bool reliable = true;
    std::uint32_t mtu = 1024;
    std::uint32_t longest = 4096;  ///< bytes of a message
    std::uint32_t most_pieces = 3;
    bool may_break = false;   ///< the path may be so bad that retries run out
    bool may_starve = false;  ///< RNR retries may run out
    bool overlaps = false;    ///< nothing can break: WRITEs may overlap, the last one wins
    bool ordered = false;     ///< unreliable: the path keeps the order
    bool repeats = false;     ///< unreliable: the path may repeat
    bool perfect = false;     ///< the path has no faults: what needs no receive arrives
    double late_receives = 0;
    std::uint32_t illegal_at = ~0U;  ///< number of the request that is to be illegal
    std::vector<ReceiveList*> xrc_receives;
    std::vector<Qp*> datagram_peers;
};

}  // namespace uib::simulation
