// A queue pair's transport machine: requester and responder halves of one service behind one interface.
//
// Driven by its owner (lane or simulation), which calls on_packet, run and on_timer and nothing else in
// between:
//   on_packet  takes one inbound packet. Executes requests, digests responses, makes completions. Never
//   sends: what it owes
//              (acknowledges, READ responses, retransmissions) is noted and sent by run.
//   run        sends what is due, at most `burst` packets and no more than Host::send_room: first responses,
//   then requests
//              from the send queue; makes flush completions in the error states. True when there is more to
//              do at once.
//   on_timer   to be called at or after next_timer(): retransmission, RNR and other timers.
//   wants_run  true when run would have something to do (responses owed, requests waiting and allowed).
// Transitions come from the verbs layer (apply), which has checked them against the state table, and from
// errors (the machine itself goes to kSqe or kError and raises the event).
#pragma once

#include <cstdint>
#include <memory>

#include "engine/transport/host.h"
#include "engine/transport/types.h"

namespace uib::transport {

/// Fixed at creation.
struct QpConfig {
    std::uint32_t number = 0;
    Service service = Service::kRc;
    memory::PdId pd = 0;
    std::uint32_t client = 0;       ///< the session that polls its completions (RegionInit::placing_client)
    std::uint32_t max_send_wr = 0;  ///< depth of the send ring
    std::uint32_t xrc_domain = 0;   ///< kXrcTarget: the domain whose SRQs it serves
    net::PacketKind raw_kind = net::PacketKind::kEthernet;  ///< kRaw: what it sends and takes
    std::uint16_t raw_ethertype = 0;                        ///< kRaw with kRawEthertype
    SendQueue* send_queue = nullptr;
    ReceiveQueue* receive_queue = nullptr;  ///< may be nullptr (no receives)
    void* owner = nullptr;                  ///< the verbs object, for the host
};

/// Counters of one QP, each named after its cause; `uib show qp` prints them.
struct QpCounters {
    std::uint64_t packets_sent = 0;
    std::uint64_t packets_received = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
    std::uint64_t duplicate_requests = 0;
    std::uint64_t out_of_sequence = 0;
    std::uint64_t sequence_naks_sent = 0;
    std::uint64_t rnr_naks_sent = 0;
    std::uint64_t rnr_naks_received = 0;
    std::uint64_t naks_received = 0;
    std::uint64_t implied_naks = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t retransmitted_packets = 0;
    std::uint64_t ghost_responses = 0;      ///< PSNs never sent (C9-136)
    std::uint64_t duplicate_responses = 0;  ///< C9-138, C9-145
    std::uint64_t unsolicited_credits = 0;  ///< duplicates that raised the credit limit (C9-144, C9-217)
    std::uint64_t reserved_syndromes = 0;   ///< C9-120, C9-135
    std::uint64_t bad_responses = 0;        ///< of the wrong kind for their PSN (Table 59)
    std::uint64_t path_migrations = 0;
    std::uint64_t path_migrations_refused = 0;
    std::uint64_t rate_waits = 0;  ///< times that a packet was held back by its static rate (9.11)
    std::uint64_t dropped_state = 0;
    std::uint64_t dropped_service = 0;
    std::uint64_t dropped_pkey = 0;
    std::uint64_t dropped_qkey = 0;
    std::uint64_t dropped_grh = 0;        ///< a GRH where the path has none, or the reverse (C9-43.1.2)
    std::uint64_t dropped_gid = 0;        ///< C9-47.1.1
    std::uint64_t dropped_lid = 0;        ///< C9-52 to C9-57
    std::uint64_t dropped_multicast = 0;  ///< C9-43.1.1, C9-58
    std::uint64_t dropped_no_receive = 0;
    std::uint64_t dropped_length = 0;
    std::uint64_t dropped_sequence = 0;
    std::uint64_t dropped_access = 0;
    std::uint64_t remote_access_errors = 0;
    std::uint64_t invalid_requests = 0;
    std::uint64_t remote_operation_errors = 0;
    std::uint64_t local_errors = 0;
    // What invalid_requests of a reliable responder were, check by check (Figure 89), and its class D drops.
    std::uint64_t opcode_sequence_errors = 0;
    std::uint64_t unsupported_requests = 0;
    std::uint64_t padding_errors = 0;
    std::uint64_t read_resource_errors = 0;
    std::uint64_t request_length_errors = 0;
    std::uint64_t misaligned_atomics = 0;
    std::uint64_t xrc_domain_errors = 0;
    std::uint64_t remote_invalidate_errors = 0;
    std::uint64_t dropped_duplicates = 0;
    std::uint64_t unsolicited_acknowledges = 0;
};

class QueuePair {
  public:
    static std::unique_ptr<QueuePair> make(const QpConfig& config, Host& host);
    virtual ~QueuePair() = default;
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    /// Moves to `state` with the parameters that hold from then on. Reset drops everything without
    /// completions. To kError: run flushes. To kSqd: running messages finish, then the drained event is
    /// raised if `drained_event`.
    virtual void apply(QpState state, const QpParameters& parameters, bool drained_event) = 0;

    virtual void on_packet(const net::Packet& packet) = 0;
    virtual bool run(std::uint32_t burst) = 0;
    virtual void on_timer() = 0;
    [[nodiscard]] virtual Time next_timer() const = 0;
    [[nodiscard]] virtual bool wants_run() = 0;
    /// An acknowledge or another response to the peer is still to be sent by run.
    [[nodiscard]] virtual bool owes_response() const { return false; }
    /// kSqd and nothing is under way any more.
    [[nodiscard]] virtual bool drained() const = 0;
    /// Current PSNs, for query (sq_psn, rq_psn).
    [[nodiscard]] virtual std::uint32_t send_psn() const = 0;
    [[nodiscard]] virtual std::uint32_t receive_psn() const = 0;
    /// Requests of the send queue that have completed (free-running): the ring's slots below it are free.
    [[nodiscard]] virtual std::uint32_t send_consumed() const = 0;
    /// State of path migration, and how often the alternate path has taken the primary's place.
    [[nodiscard]] virtual MigrationState migration() const { return MigrationState::kMigrated; }
    [[nodiscard]] virtual std::uint32_t migrations() const { return 0; }

    [[nodiscard]] const QpConfig& config() const { return config_; }
    [[nodiscard]] QpState state() const { return state_; }
    [[nodiscard]] const QpParameters& parameters() const { return parameters_; }
    [[nodiscard]] const QpCounters& counters() const { return counters_; }

  protected:
    QueuePair(const QpConfig& config, Host& host) : config_(config), host_(host) {}

    QpConfig config_;
    Host& host_;
    QpState state_ = QpState::kReset;
    QpParameters parameters_;
    QpCounters counters_;
};

}  // namespace uib::transport
