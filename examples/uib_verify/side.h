// What initiator and target have alike: a device, memory full of the side's pattern, one completion queue,
// QPs of each service, and the checks of that memory. Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "examples/kit/memory.h"
#include "examples/kit/side_channel.h"
#include "examples/kit/verbs.h"
#include "examples/uib_verify/options.h"
#include "examples/uib_verify/plan.h"

namespace uib::verify {

/// What the initiator tells the target to do next.
enum class Command : std::uint32_t { kBatch, kCounter, kEnd };

/// Fetch-and-adds that each reliable QP makes on one word in the counter check.
inline constexpr std::uint32_t kCounterAdds = 4;

/// Bytes of a UD receive that the GRH takes, and of the scratch that takes it.
inline constexpr std::uint32_t kGrhBytes = 40;
inline constexpr std::uint32_t kGrhStride = 64;

/// What a side tells the other about itself.
struct Introduction {
    std::uint64_t memory_address;
    std::uint32_t rkey;
    std::uint32_t pieces;  ///< that its work requests take
    std::uint32_t datagram_bytes;
    std::uint32_t windows;  ///< 1: type 2 windows
};

class Side {
  public:
    /// `slots` of `slot_bytes` each, filled with the pattern of `seed`.
    Side(const Options& options, const std::string& device, std::uint64_t seed, std::uint32_t slots,
         std::uint64_t slot_bytes);

    /// Swaps introductions and addresses with the other side and brings all QPs to RTS.
    void connect(kit::SideChannel& channel);

    const Introduction& peer() const { return peer_; }
    const Introduction& own() const { return own_; }
    std::uint64_t seed() const { return seed_; }

    ibv_qp& queue_pair(Service service, std::uint32_t number) const;
    std::uint32_t lkey() const { return region_->lkey; }
    ibv_mr& region() const { return *region_; }
    ibv_pd& pd() const { return *pd_; }
    ibv_ah* datagram_path(std::uint32_t number) const { return paths_.at(number).get(); }
    std::uint32_t datagram_peer(std::uint32_t number) const { return datagram_peers_.at(number); }

    std::span<std::byte> bytes_of(const Piece& piece) const {
        return memory_.bytes().subspan(piece.offset, piece.length);
    }
    std::uint64_t address_of(std::uint64_t offset) const {
        return reinterpret_cast<std::uintptr_t>(memory_.data()) + offset;
    }
    ibv_sge grh_entry(std::uint32_t slot) const;

    /// The next completion, polled or after an event. Throws Error if there is none for `limit_seconds`, or
    /// where its status is not success.
    ibv_wc wait_completion(double limit_seconds);

    std::uint64_t checksum(std::span<const Piece> pieces) const;

    /// Throws Error if a byte of the slot outside `written` is not the pattern's.
    void check_guards(const Case& one, std::uint64_t slot, std::span<const Piece> written) const;

    /// Writes the pattern into those pieces again.
    void restore(std::span<const Piece> pieces);

  private:
    void make_queue_pairs(const Options& options, std::uint32_t slots);
    void sleep_until_event(double limit_seconds);

    std::uint64_t seed_;
    int path_mtu_;
    kit::Context context_;
    kit::ProtectionDomain pd_;
    kit::Channel channel_;  ///< only with events
    kit::CompletionQueue cq_;
    kit::Buffer memory_;
    kit::Buffer scratch_;  ///< where GRHs go
    kit::Region region_;
    kit::Region scratch_region_;
    std::vector<kit::QueuePair> queue_pairs_[kServiceCount];
    std::vector<kit::AddressHandle> paths_;
    std::vector<std::uint32_t> datagram_peers_;
    Introduction own_{};
    Introduction peer_{};
};

/// The first `bytes` bytes of a scatter or gather list.
std::vector<Piece> first_bytes(std::span<const Piece> pieces, std::uint64_t bytes);

/// Whether the operation's bytes come back to the initiator.
inline bool writes_initiator(Operation operation) {
    return operation == Operation::kRead || traits_of(operation).atomic;
}

std::string describe(const Case& one);

void run_initiator(const Options& options, kit::SideChannel& channel);
void run_target(const Options& options, kit::SideChannel& channel);

/// Bytes of a slot for messages up to `bytes`.
constexpr std::uint64_t slot_for(std::uint64_t bytes) {
    return (bytes + bytes / 4 + 4096 + 511) / 512 * 512;
}

/// How long a transfer of so many bytes may take before it counts as lost.
constexpr double limit_for(std::uint64_t bytes) {
    return 20.0 + static_cast<double>(bytes) / 50e6;
}

}  // namespace uib::verify
