// Send, receive and shared receive rings in the client's memory, as the transport's SendQueue and
// ReceiveQueue.
//
// Everything read here was written by the client. A request is copied once into private memory and only the
// copy is checked. A producer index more than the ring's size ahead of what was consumed, or a shared receive
// queue's list that names no slot, condemns the client. An XRC SRQ whose completions cannot be written goes
// to the error state (IBA 9.9.3.1.12), where every queue pair ends that asks it for a receive (9.9.3.1.1).
#pragma once

#include <cstdint>
#include <memory>

#include "engine/ipc/control.h"
#include "engine/ipc/control_qp.h"
#include "engine/ipc/control_srq.h"
#include "engine/ipc/doorbell.h"
#include "engine/transport/host.h"
#include "engine/transport/queue_pair.h"
#include "engine/verbs/client.h"
#include "engine/verbs/pd.h"
#include "engine/verbs/xrc_domain.h"

namespace uib::verbs {

/// Sizes of a ring, already checked against the device's limits.
struct RingShape {
    std::uint32_t entries = 0;  ///< a power of two
    std::uint32_t stride = 0;
    std::uint32_t max_sge = 0;
    std::uint32_t max_inline = 0;
};

class SendRing final : public transport::SendQueue {
  public:
    SendRing(Client& client, transport::Service service, const RingShape& shape, bool signal_all);
    ~SendRing() override;

    bool allocate();
    /// After a move to RESET: indices start again at 0.
    void reset();

    std::uint32_t producer() override;
    void fetch(std::uint32_t index, transport::SendRequest& out) override;

    /// The machine knows how far the ring is consumed; the client's index is judged by it.
    void set_machine(const transport::QueuePair& machine) { machine_ = &machine; }
    [[nodiscard]] ipc::QueueControl& control() const {
        return *reinterpret_cast<ipc::QueueControl*>(block_.memory);
    }
    [[nodiscard]] ipc::QueueLocation location() const;
    [[nodiscard]] const RingShape& shape() const { return shape_; }

  private:
    void fetch_staged(const ipc::SendWqe& wqe, transport::SendRequest& out) const;

    Client& client_;
    transport::Service service_;
    RingShape shape_;
    bool signal_all_;
    ArenaBlock block_;
    const transport::QueuePair* machine_ = nullptr;
    std::uint32_t consumed_ = 0;  ///< as of the last look at the machine
};

/// What RingReceiveQueue and SharedReceiveQueue have in common: slots of receive requests.
class ReceiveSlots {
  public:
    ReceiveSlots(Client& client, const RingShape& shape, bool shared);
    ~ReceiveSlots();
    bool allocate();
    void read(std::uint32_t slot, transport::ReceiveRequest& out) const;

    [[nodiscard]] Client& client() const { return client_; }
    [[nodiscard]] ipc::QueueControl& control() const {
        return *reinterpret_cast<ipc::QueueControl*>(block_.memory);
    }
    [[nodiscard]] ipc::QueueLocation location() const;
    [[nodiscard]] ipc::Location available_location() const;
    [[nodiscard]] const RingShape& shape() const { return shape_; }
    /// SRQ: the slot number at place `index` of the list of posted slots.
    [[nodiscard]] std::uint32_t posted_slot(std::uint32_t index) const;

  private:
    [[nodiscard]] std::size_t slots_offset() const;

    Client& client_;
    RingShape shape_;
    bool shared_;
    ArenaBlock block_;
};

class ReceiveRing final : public transport::ReceiveQueue {
  public:
    ReceiveRing(Client& client, const RingShape& shape) : slots_(client, shape, false) {}
    bool allocate() { return slots_.allocate(); }
    void reset();

    bool take(transport::ReceiveRequest& out) override;
    std::uint32_t available() override;
    [[nodiscard]] bool shared() const override { return false; }
    [[nodiscard]] const ReceiveSlots& slots() const { return slots_; }

  private:
    ReceiveSlots slots_;
    std::uint32_t consumed_ = 0;
};

class SharedReceiveQueue final : public transport::ReceiveQueue {
  public:
    /// Takes a number from `domains`; number() is 0 if there was none left.
    SharedReceiveQueue(Client& client, const RingShape& shape, std::uint64_t user_handle, XrcDomains& domains)
        : slots_(client, shape, true),
          user_handle_(user_handle),
          domains_(domains),
          number_(domains.take_srq_number()) {}
    ~SharedReceiveQueue() override {
        xrc.reset();
        domains_.free_srq_number(number_);
        if (pd != nullptr) --pd->uses;
    }
    bool allocate() { return slots_.allocate(); }

    bool take(transport::ReceiveRequest& out) override;
    std::uint32_t available() override;
    [[nodiscard]] bool shared() const override { return true; }
    [[nodiscard]] bool failed() const override { return failed_; }
    /// To the error state, for good: the client is told once (o9-157.2.2).
    void fail();

    void set_limit(std::uint32_t limit) { limit_ = limit; }
    [[nodiscard]] std::uint32_t limit() const { return limit_; }
    [[nodiscard]] const ReceiveSlots& slots() const { return slots_; }
    [[nodiscard]] std::uint64_t user_handle() const { return user_handle_; }
    [[nodiscard]] std::uint32_t number() const { return number_; }

    std::uint32_t uses = 0;
    std::uint32_t async_events = 0;
    std::uint32_t max_wr = 0;         ///< what the client asked for, as queries show it
    Pd* pd = nullptr;                 ///< counted as a use while this lives
    std::unique_ptr<XrcBinding> xrc;  ///< of an XRC SRQ

  private:
    ReceiveSlots slots_;
    std::uint64_t user_handle_;
    XrcDomains& domains_;
    std::uint32_t number_;
    std::uint32_t consumed_ = 0;
    std::uint32_t limit_ = 0;
    bool failed_ = false;
};

}  // namespace uib::verbs
