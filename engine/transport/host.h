// What a transport machine needs of its surroundings. The daemon's lane implements it over shared rings and
// ports; the simulation over vectors, a wire and a clock of its own. Machines never block, read no clock and
// allocate nothing per packet.
#pragma once

#include <cstdint>
#include <span>

#include "engine/memory/key_table.h"
#include "engine/memory/mover.h"
#include "engine/transport/types.h"

namespace uib::transport {

class QueuePair;
class ReceiveQueue;
class StaticRate;

/// The port of a QP as its machine sees it. Tables live as long as the QP; their entries may change.
struct PortView {
    std::span<const net::Gid> gids;        ///< empty: the path's SGID is used for all
    std::span<const std::uint16_t> pkeys;  ///< empty: the QP's P_Key is the only one
    std::uint8_t lmc = 0;                  ///< path bits that a SLID may have
    StaticRate* static_rate = nullptr;     ///< nullptr: no static rate control
    /// Packets that a requester may have under way; 0: as many as PSNs allow. A link that loses what its
    /// receiver has no room for needs a limit.
    std::uint32_t flight_limit = 0;
};

/// An XRC shared receive queue as a target QP finds it: its PD holds for the message's access checks, its CQ
/// gets the completion (9.7.9.2).
struct XrcReceiveQueue {
    ReceiveQueue* queue = nullptr;
    memory::PdId pd = 0;
    std::uint32_t client = 0;  ///< the session that polls its CQ (QpConfig::client)
    std::uint32_t number = 0;  ///< never 0
};

/// The send queue of one QP. Requests stay in the client's ring until they complete and may be fetched again
/// (for a retransmission); each fetch checks afresh, and the machine compares with what it knows (length,
/// opcode).
class SendQueue {
  public:
    virtual ~SendQueue() = default;
    /// One past the newest request posted (free-running).
    virtual std::uint32_t producer() = 0;
    /// Copies and checks request `index`, which must be below producer().
    virtual void fetch(std::uint32_t index, SendRequest& out) = 0;
};

/// The receive queue of one QP, its own or shared.
class ReceiveQueue {
  public:
    virtual ~ReceiveQueue() = default;
    /// Takes the next receive request. False if there is none.
    virtual bool take(ReceiveRequest& out) = 0;
    /// Requests posted and not taken, as far as known (for end-to-end credits).
    virtual std::uint32_t available() = 0;
    [[nodiscard]] virtual bool shared() const = 0;
    /// A shared queue in the error state: nothing can be taken, and whoever tries goes to error (o9-157.2.3).
    [[nodiscard]] virtual bool failed() const { return false; }
};

class Host {
  public:
    virtual ~Host() = default;

    [[nodiscard]] virtual Time now() const = 0;
    virtual memory::KeyTable& keys() = 0;
    virtual memory::Mover& mover() = 0;

    /// Packets that may be sent now without loss for want of room.
    [[nodiscard]] virtual std::uint32_t send_room() const = 0;
    /// Sends; the payload's view must live until the end of the turn (Mover).
    virtual void send(const net::Packet& packet) = 0;

    /// Completions. False when the CQ has no room: the host has raised the CQ's event; the machine goes to
    /// the error state (class F/G).
    virtual bool complete_send(QueuePair& qp, const Completion& completion) = 0;
    virtual bool complete_receive(QueuePair& qp, const Completion& completion) = 0;

    virtual void raise(QueuePair& qp, QpEvent event) = 0;

    /// The QP's port; asked at each transition.
    virtual PortView port_of(const QueuePair& qp) {
        static_cast<void>(qp);
        return {};
    }

    /// The XRC SRQ with `number`; nullptr if there is none or it belongs to another domain than `domain`.
    /// What it returns is valid until the end of the call that asked; keep the number.
    virtual const XrcReceiveQueue* xrc_receive_queue(std::uint32_t number, std::uint32_t domain) {
        static_cast<void>(number);
        static_cast<void>(domain);
        return nullptr;
    }

    /// Carries out a bind work request: window_handle names a window of the QP's context. The status is
    /// kSuccess or kWindowBind.
    virtual Status bind_window(QueuePair& qp, const SendRequest& request) = 0;
};

}  // namespace uib::transport
