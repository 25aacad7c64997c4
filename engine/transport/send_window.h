// In-flight records: what the requester remembers of each work request between its start and its completion.
//
// A ring of power-of-two size, indexed by the request's free-running number, that doubles when the requests
// under way outgrow it. It never holds more than the send ring's depth, so a QP soon stops allocating.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transport/psn.h"
#include "engine/transport/types.h"

namespace uib::transport {

enum class RequestKind : std::uint8_t { kMessage, kRead, kAtomic, kAtomicWrite, kLocal };

constexpr RequestKind kind_of(ipc::WorkOpcode opcode) {
    switch (opcode) {
        case ipc::WorkOpcode::kRdmaRead:
            return RequestKind::kRead;
        case ipc::WorkOpcode::kCompareSwap:
        case ipc::WorkOpcode::kFetchAdd:
            return RequestKind::kAtomic;
        case ipc::WorkOpcode::kAtomicWrite:
            return RequestKind::kAtomicWrite;
        case ipc::WorkOpcode::kBindWindow:
        case ipc::WorkOpcode::kLocalInvalidate:
            return RequestKind::kLocal;
        default:
            return RequestKind::kMessage;
    }
}

/// Requests that have a response of their own: they count against max_rd_atomic and fences wait for them.
constexpr bool is_answered(RequestKind kind) {
    return kind == RequestKind::kRead || kind == RequestKind::kAtomic || kind == RequestKind::kAtomicWrite;
}

struct SendRecord {
    std::uint64_t wr_id = 0;
    std::uint32_t first_psn = 0;
    std::uint32_t packets = 0;  ///< PSNs it takes: its packets, or a READ's responses; 0 for local operations
    std::uint32_t length = 0;
    ipc::WorkOpcode opcode{};
    std::uint8_t flags = 0;  ///< ipc::WorkFlags
    RequestKind kind = RequestKind::kMessage;
    bool limited = false;  ///< started without credit (9.7.7.2.5)

    [[nodiscard]] std::uint32_t end_psn() const { return psn_add(first_psn, packets); }
    [[nodiscard]] bool answered() const { return is_answered(kind); }
};

class SendWindow {
  public:
    SendWindow() : records_(kInitial) {}

    SendRecord& operator[](std::uint32_t index) { return records_[index & (records_.size() - 1)]; }

    /// The record for `index`, the next after those in [oldest, index).
    SendRecord& open(std::uint32_t oldest, std::uint32_t index) {
        if (index - oldest == records_.size()) grow(oldest, index);
        return (*this)[index];
    }

  private:
    static constexpr std::size_t kInitial = 16;

    void grow(std::uint32_t oldest, std::uint32_t end) {
        std::vector<SendRecord> larger(records_.size() * 2);
        for (std::uint32_t index = oldest; index != end; ++index) {
            larger[index & (larger.size() - 1)] = (*this)[index];
        }
        records_.swap(larger);
    }

    std::vector<SendRecord> records_;
};

}  // namespace uib::transport
