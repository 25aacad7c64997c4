// The cases: what is moved from where to where. All of it is drawn from one seed by the initiator, which
// tells the target.
//
// Each side's memory is cut into slots, one for each case in flight. A case uses bytes of its own slot only,
// at random offsets in random pieces, so every byte of a slot outside the pieces is a guard byte.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "examples/uib_verify/options.h"

namespace uib::verify {

enum class Operation : std::uint32_t {
    kSend,
    kSendImmediate,
    kSendInvalidate,
    kWrite,
    kWriteImmediate,
    kWriteToWindow,
    kRead,
    kCompareSwap,
    kFetchAdd,
    kUnreliableSend,
    kUnreliableSendImmediate,
    kUnreliableWrite,
    kUnreliableWriteImmediate,
    kDatagram,
    kDatagramImmediate,
};
inline constexpr std::uint32_t kOperationCount = 15;

enum class Service : std::uint32_t { kReliable, kUnreliable, kDatagram };
inline constexpr std::uint32_t kServiceCount = 3;

/// What an operation is, in words that both sides look up.
struct Traits {
    const char* name;
    Service service;
    bool uses_receive;   ///< consumes a receive at the target
    bool fills_receive;  ///< and puts its bytes there
    bool has_immediate;
    bool uses_window;
    bool atomic;
};
const Traits& traits_of(Operation operation);

struct Piece {
    std::uint64_t offset;  ///< in the side's memory
    std::uint64_t length;
};
inline constexpr std::uint32_t kMaxPieces = 16;

struct Case {
    Operation operation;
    std::uint32_t queue_pair;  ///< among those of its service
    std::uint64_t bytes;
    std::uint64_t slot_bytes;
    std::uint64_t initiator_slot, target_slot;  ///< offsets of the slots
    std::uint32_t initiator_count, target_count;
    Piece initiator[kMaxPieces];  ///< gathered from, or for READ and atomics scattered to
    Piece target[kMaxPieces];     ///< receive's pieces (they may hold more than `bytes`), or one remote range
    std::uint32_t immediate;
    std::uint32_t reserved;
    std::uint64_t compare, operand;  ///< CAS: compare and swap; FAA: operand is added
};

struct Limits {
    std::uint64_t slot_bytes;
    std::uint32_t in_flight;
    std::uint32_t pieces;  ///< that a work request takes here
    std::uint32_t datagram_bytes;
    std::uint64_t target_seed;  ///< of the target's pattern, for operands that must match
    bool windows;               ///< type 2 windows exist
};

class Plan {
  public:
    Plan(const Options& options, const Limits& limits);

    /// Names of the operations that will be used.
    const std::vector<Operation>& operations() const { return operations_; }

    /// A batch of cases in the slots 0 to in_flight - 1.
    std::vector<Case> next_batch();

    /// One case of just that size in slot 0.
    std::vector<Case> single(Operation operation, std::uint64_t bytes);

  private:
    Case make_case(Operation operation, std::uint64_t bytes, std::uint32_t slot);
    std::uint64_t draw_size(const Traits& traits);
    std::uint64_t draw(std::uint64_t least, std::uint64_t most);
    void draw_pieces(Piece* pieces, std::uint32_t& count, std::uint64_t slot, std::uint64_t bytes, bool one);
    void draw_operands(Case& one);

    Options options_;
    Limits limits_;
    std::vector<Operation> operations_;
    std::mt19937_64 random_;
};

}  // namespace uib::verify
