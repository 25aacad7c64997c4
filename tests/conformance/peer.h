// The scripted peer: sends exact packets at exact times to one machine under test, expects exact packets
// back.
//
// The machine runs by itself whenever the script looks, sends or waits, as under a lane that is never late;
// `hold` stops it, so that several packets or posts arrive before it acts, and `step` lets it send so many
// packets. Time stands still but in `after`, which fires each timer at its exact time. What the machine sends
// and completes is expected in order and nothing may be left over at the end of the script. Failures
// print the whole exchange. PSNs are relative to kStartPsn in both directions.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "tests/conformance/wire.h"
#include "tests/conformance/words.h"

namespace uib::conformance {

using ipc::WorkOpcode;
using transport::Completion;
using transport::QpEvent;
using transport::QpState;
using transport::Status;
using transport::testing::Work;
using Where = std::source_location;

/// Remote addresses and keys of work requests that need no real ones.
inline constexpr std::uint64_t kRemoteAddress = 0x5000;
inline constexpr std::uint32_t kRemoteKey = 0x99;
inline constexpr std::uint32_t kMachineQp = 0x11;
inline constexpr std::uint32_t kPeerQp = 0x12;

class Peer {
  public:
    explicit Peer(transport::Service service, std::uint32_t number = kMachineQp);

    /// The machine under test with its surroundings; parameters are set before connect().
    Station& machine() { return machine_; }
    [[nodiscard]] std::uint32_t rkey() const { return machine_.region->key(); }
    transport::QpParameters& parameters() { return machine_.parameters; }
    void connect(QpState to = QpState::kRts, std::uint32_t peer_number = kPeerQp);
    void moves_to(QpState state, bool drained_event = false);
    [[nodiscard]] QpState state() const { return machine_.qp->state(); }

    // Packets
    void sends(const Frame& frame);
    void expects(const Frame& frame, Where where = Where::current());
    void expects_nothing(Where where = Where::current());
    /// The next packet, for the test to look at; fails the test if there is none.
    Carried hears(Where where = Where::current());
    std::vector<Carried> hears_all();

    // Time
    void after(Time time);
    [[nodiscard]] Time now() const { return machine_.clock - start_; }
    void hold() { held_ = true; }
    void release() { held_ = false; }
    /// Lets a held machine do the work of `packets` packets.
    void step(std::uint32_t packets);

    // Work of the machine under test
    /// A work request on `length` bytes at `offset` of its memory; its wr_id is its number, from 0.
    [[nodiscard]] Work work(WorkOpcode opcode, std::uint32_t length, std::uint64_t offset = 0) const;
    void posts(const Work& work) { machine_.post(work); }
    void posts(WorkOpcode opcode, std::uint32_t length, std::uint8_t flags = ipc::kWorkSignaled);
    void posts_receive(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length);

    // What its client sees
    /// The next send completion is of request `wr_id` (the one after the last if not said).
    Completion completes(Status status = Status::kSuccess, std::optional<std::uint64_t> wr_id = {},
                         Where where = Where::current());
    Completion receives(std::uint64_t wr_id, Status status = Status::kSuccess,
                        Where where = Where::current());
    void completes_nothing(Where where = Where::current());
    void receives_nothing(Where where = Where::current());
    void raises(QpEvent event, Where where = Where::current());
    void raises_nothing(Where where = Where::current());

    /// Forgets what has been heard, completed and raised, for scripts that do not look at all of it.
    void forgets();
    /// Nothing may be left over.
    void ends();

  private:
    void settle();
    void collect();
    void note(const std::string& line);
    void fail(Where where, const std::string& what);

    Station machine_;
    Wire wire_;
    Time start_;
    bool held_ = false;
    std::deque<Carried> heard_;
    std::vector<std::string> transcript_;
    std::size_t told_ = 0;  ///< lines of it that a failure has printed
    std::size_t sends_seen_ = 0;
    std::size_t receives_seen_ = 0;
    std::size_t events_seen_ = 0;
    std::uint64_t next_wr_id_ = 0;
    std::size_t sends_noted_ = 0;
    std::size_t receives_noted_ = 0;
    std::size_t events_noted_ = 0;
};

}  // namespace uib::conformance
