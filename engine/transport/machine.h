// What the machines of all services share, and what their halves (requester, responder) see of a queue pair.
//
// Owns the queue pair's state, counters, parameters, the receive request in use, and the work of the error
// states: enter_error() is the only way there; run() of each service then calls flush(), which completes
// everything outstanding and later posted as flushed (IBA 10.3.1, 9.9). Single thread, allocates nothing.
#pragma once

#include <cstdint>

#include "engine/transport/path_migration.h"
#include "engine/transport/queue_pair.h"
#include "engine/transport/receive_message.h"

namespace uib::transport {

class Machine : public QueuePair {
  public:
    Machine(const QpConfig& config, Host& host);

    // QueuePair
    void apply(QpState to, const QpParameters& parameters, bool drained_event) final;
    [[nodiscard]] std::uint32_t send_consumed() const final { return consumed_; }
    [[nodiscard]] MigrationState migration() const final { return migration_.state(); }
    [[nodiscard]] std::uint32_t migrations() const final { return migration_.swaps(); }

    // For the halves.
    Host& host() { return host_; }
    memory::KeyTable& keys() { return host_.keys(); }
    memory::Mover& mover() { return host_.mover(); }
    QpCounters& count() { return counters_; }
    [[nodiscard]] std::uint32_t number() const { return config_.number; }
    [[nodiscard]] memory::PdId pd() const { return config_.pd; }
    [[nodiscard]] std::uint32_t mtu() const { return 1U << mtu_shift_; }
    [[nodiscard]] std::uint32_t mtu_shift() const { return mtu_shift_; }
    ReceiveMessage& receive() { return receive_; }
    SendQueue& send_queue() { return *config_.send_queue; }
    [[nodiscard]] ReceiveQueue* receive_queue() const { return config_.receive_queue; }
    /// Oldest send request that has not completed.
    std::uint32_t& consumed() { return consumed_; }

    /// Fills in what every packet of the connection carries.
    void address(net::Packet& packet) const;
    /// Sends, with the pad count that the payload needs.
    void transmit(net::Packet& packet);
    /// If armed, puts the alternate path in the primary's place and tells the client.
    bool migrate();
    [[nodiscard]] const PortView& port() const { return port_; }

    // Static rate control (9.11).
    /// How many of `budget` packets may go to `dlid` now: all, if there is no limit; else one, or none and
    /// held() until held_until().
    std::uint32_t admit(std::uint32_t budget, net::Lid dlid) {
        return rate_limit_ == 0 ? budget : admit_limited(budget, dlid);
    }
    /// From now on packets have this static rate (ibv_rate).
    void set_rate_limit(std::uint8_t code);
    [[nodiscard]] bool held() const { return held_until_ != kNever; }
    [[nodiscard]] Time held_until() const { return held_until_; }
    /// Forgets held_until() if it has come.
    void release();
    /// Writes what was received into memory. False when a write of this QP has failed.
    bool flush_writes() { return mover().flush(number()); }

    /// Completes send request consumed() and steps past it.
    void complete_request(std::uint64_t wr_id, ipc::WorkOpcode opcode, std::uint32_t length, Status status,
                          std::uint16_t vendor_error = 0);
    void complete_receive(const Completion& completion);
    void raise(QpEvent event) { host_.raise(*this, event); }
    void enter_error();
    void enter_send_error();
    /// Raises the communication event for the first packet in RTR.
    void note_arrival();
    /// Something is at fault with the receive in use, or with the queue that has none to give: that ends with
    /// `status` or an event, and the QP with it (classes A, D1, E).
    void receive_fault(Status status);
    /// Executes a bind or a local invalidate; kWindowBind (memory management operation error, 11.6.2) when it
    /// fails.
    Status execute_local(const SendRequest& request);

  protected:
    /// Hooks of apply(): state() is still the old one.
    virtual void restart() = 0;          ///< forget everything; send requests start at consumed()
    virtual void start_receiving() = 0;  ///< INIT to RTR
    virtual void start_sending() = 0;    ///< RTR to RTS
    virtual void stop() = 0;             ///< to the error state by the verbs layer
    virtual void refresh() = 0;          ///< parameters or state have changed

    /// Flush completions for the error states, at most `budget`.
    void flush(std::uint32_t budget);
    [[nodiscard]] bool wants_flush();
    void raise_if_drained();
    [[nodiscard]] bool wants_drained_event() { return drain_event_ && state_ == QpState::kSqd && drained(); }
    /// Checks of 9.6 that are alike for RC and UC; counts and answers false for a packet to drop.
    bool accept_connected(const net::Packet& packet);
    bool accept_pkey(const net::Packet& packet);
    /// QP1: any P_Key of the port will do (C9-42).
    bool accept_port_pkey(const net::Packet& packet);

  private:
    using Fault = std::uint64_t QpCounters::*;
    /// The counter of the check that the packet's addresses and P_Key do not pass; nullptr if it fits.
    static Fault path_fault(const net::Packet& packet, const Path& path, std::uint16_t pkey);
    void note_mig_req(const net::Packet& packet);
    std::uint32_t admit_limited(std::uint32_t budget, net::Lid dlid);
    bool flush_receives(std::uint32_t& budget);
    void completion_queue_failed();

    ReceiveMessage receive_;
    PathMigration migration_;
    PortView port_;
    std::uint32_t rate_limit_ = 0;  ///< Mb/s; 0: none
    Time held_until_ = kNever;
    std::uint32_t consumed_ = 0;
    std::uint32_t mtu_shift_ = 10;
    bool established_ = false;  ///< communication event raised
    bool fatal_raised_ = false;
    bool drain_event_ = false;       ///< owed when SQD has drained
    bool last_wqe_event_ = false;    ///< owed when the taken receive of an SRQ is done
    bool receive_in_error_ = false;  ///< the receive in use is still to be flushed
};

}  // namespace uib::transport
