// Receive side scaling: which receive work queue of an indirection table gets a frame (ibv_rx_hash_conf).
//
// The Toeplitz function hashes the headers that the queue pair asked for, in the order source address,
// destination address, source port, destination port; a field that the frame does not have is left out, and
// so are the ports of fragments, so that all fragments of a datagram go one way. The hash's low bits are the
// entry; a frame with none of the fields goes to entry 0. Pure functions, but for the table's count of uses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/ipc/control_rss.h"
#include "engine/verbs/flow_table.h"

namespace uib::verbs {

class Client;

using HashKey = std::array<std::uint8_t, ipc::kHashKeyBytes>;

/// `input` has at most kHashKeyBytes - 4 bytes.
std::uint32_t toeplitz(const HashKey& key, std::span<const std::uint8_t> input);

/// 0; EINVAL for fields that exclude each other; EOPNOTSUPP for such as are not known.
int check_hash_fields(std::uint32_t fields);

/// Keeps the work queues that it leads to from going.
class RwqTable {
  public:
    /// As many queues as a power of two says.
    RwqTable(const Client& owner, std::vector<Qp*> queues);
    ~RwqTable();
    RwqTable(const RwqTable&) = delete;
    RwqTable& operator=(const RwqTable&) = delete;

    [[nodiscard]] const Client& owner() const { return owner_; }
    [[nodiscard]] Qp* entry(std::uint32_t hash) const { return queues_[hash & (queues_.size() - 1)]; }

    std::uint32_t uses = 0;  ///< queue pairs that spread over it

  private:
    const Client& owner_;
    std::vector<Qp*> queues_;
};

struct RxHash {
    RwqTable* table = nullptr;
    std::uint32_t fields = 0;  ///< ipc::HashFields
    HashKey key{};

    [[nodiscard]] std::uint32_t hash(const FrameHeaders& headers) const;
    [[nodiscard]] Qp* choose(const FrameHeaders& headers) const { return table->entry(hash(headers)); }
};

}  // namespace uib::verbs
