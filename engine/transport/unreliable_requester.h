// The sending half of UC and UD (IBA 9.8.2.1, 9.8.3.1, 9.9.2): requests go out in order, each is complete
// once its last packet is with the wire.
//
// That is told at the next run, not at once: until the end of the turn packets refer to the client's memory,
// which the client may change when it has seen the completion. A request that fails stops the send queue
// (state SQE), the receive side goes on (class B).
#pragma once

#include <cstdint>

#include "engine/transport/machine.h"
#include "engine/transport/send_window.h"

namespace uib::transport {

/// Makes the packets of one request; the services differ in this only.
class PacketMaker {
  public:
    virtual ~PacketMaker() = default;
    struct Result {
        Status status = Status::kSuccess;
        std::uint32_t packets = 0;  ///< sent; 0 with kSuccess: no room in this turn
        std::uint32_t bytes = 0;
        bool done = false;  ///< that was the last packet
    };
    /// Sends at most `budget` packets of `request` from byte `offset` on, the first with `psn`.
    virtual Result make(const SendRequest& request, std::uint32_t offset, std::uint32_t psn,
                        std::uint32_t budget) = 0;
};

class UnreliableRequester {
  public:
    UnreliableRequester(Machine& machine, PacketMaker& maker) : machine_(machine), maker_(maker) {}

    void restart();
    void start(std::uint32_t psn) { psn_ = psn & kPsnMask; }
    void run(std::uint32_t budget);
    [[nodiscard]] bool wants_run();
    [[nodiscard]] bool drained() const { return machine_.send_consumed() == cursor_ && offset_ == 0; }
    [[nodiscard]] std::uint32_t next_psn() const { return psn_; }
    [[nodiscard]] bool owes_completions() const { return machine_.send_consumed() != cursor_; }
    /// Completes what is with the wire.
    void complete_sent();
    /// The queue has been flushed up to `consumed`.
    void skip_flushed();

  private:
    bool load();
    std::uint32_t send_some(std::uint32_t budget);
    void finish(Status status);

    Machine& machine_;
    PacketMaker& maker_;
    SendWindow window_;  ///< requests in [consumed, cursor): sent, not yet completed
    std::uint32_t cursor_ = 0;
    std::uint32_t producer_ = 0;
    std::uint32_t offset_ = 0;  ///< bytes of request `cursor_` that are sent
    std::uint32_t psn_ = 0;
    bool started_ = false;  ///< request `cursor_` has sent a packet
    bool loaded_ = false;   ///< request_ is that of cursor_
    SendRequest request_;
};

}  // namespace uib::transport
