// The receive request in use by an inbound SEND or WRITE with immediate, for all services.
//
// take() gets one from the receive queue (or the one a dropped message left for reuse, class D1), put() lays
// payload into it, complete() or fail() ends it. Short whole messages go into the slot's inline area; the
// rest is scattered, and the caller flushes before it completes. Keys are checked as bytes arrive.
//
// The receive queue is the QP's own. An XRC target has none: draw_from() names the SRQ of each packet, whose
// PD then holds for the buffers; the completion carries the SRQ's number.
#pragma once

#include <cstdint>
#include <span>

#include "engine/memory/mover.h"
#include "engine/transport/host.h"
#include "engine/transport/types.h"

namespace uib::transport {

class Machine;

class ReceiveMessage {
  public:
    enum class Take { kTaken, kNone, kMalformed };
    enum class Put { kDone, kTooLong, kProtection };

    explicit ReceiveMessage(Machine& machine);

    /// XRC: the SRQ of the packet at hand; take() may be called until the packet is done.
    void draw_from(const XrcReceiveQueue& queue);

    /// Whose writes those of payloads are, for Mover::flush; the QP's number if not set.
    void write_as(memory::Mover::Owner owner) { owner_ = owner; }

    Take take();
    /// True when take() found nothing because the queue itself is in error (o9-157.2.3).
    [[nodiscard]] bool queue_failed() const;
    /// Appends payload; `whole` when the message is this one packet.
    Put put(std::span<const std::byte> payload, bool whole);
    /// A datagram with the 40 bytes in front of it. `grh` is empty when the packet had none: the bytes are
    /// then left as they are, or zero in an inline area.
    Put put_datagram(std::span<const std::byte> grh, std::span<const std::byte> payload);

    /// Completes with the parts that the caller has set; adds request, length (unless set) and flags.
    void complete(Completion completion);
    /// Completes in error if a request is in use or kept for reuse.
    void fail(Status status, std::uint16_t vendor_error = 0);
    /// Ends the message without completion; the request serves the next one (class D1).
    void reuse();
    void forget() { in_use_ = kept_ = false; }

    [[nodiscard]] bool in_use() const { return in_use_; }
    [[nodiscard]] std::uint64_t received() const { return received_; }

  private:
    bool scatter(std::span<const std::byte> payload);
    enum class Entries { kInline, kScatter, kRefused };
    Entries check_entries(std::uint64_t length) const;
    bool skip(std::uint64_t length);

    Machine& machine_;
    memory::Mover::Owner owner_;
    XrcReceiveQueue source_;  ///< its number is 0 for the QP's own queue
    bool in_use_ = false;
    bool kept_ = false;
    bool inlined_ = false;
    std::uint32_t entry_ = 0;  ///< where the next byte goes
    std::uint32_t entry_offset_ = 0;
    std::uint64_t received_ = 0;
    ReceiveRequest request_;
};

}  // namespace uib::transport
