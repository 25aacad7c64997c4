// A simulated channel adapter: the Host of several queue pairs, with a memory, keys, queues and a LID.
//
// Its memory starts as noise, of which `initial` is a copy: messages are pieces of that noise, so nothing has
// to be filled, and what no message may have written must still be noise in the end. Memory for messages is
// handed out piece by piece and never twice. Completions go to a Watcher at the moment they are made, as a
// polling client would see them. Send queues of all QPs and receive queues are lists that only grow.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/memory/buffer_space.h"
#include "engine/memory/key_table.h"
#include "engine/memory/mover.h"
#include "engine/transport/queue_pair.h"
#include "tests/simulation/random.h"

namespace uib::simulation {

class Adapter;
class World;
struct Qp;

/// Bytes of an adapter's memory, from its start.
struct Piece {
    std::uint64_t at = 0;
    std::uint32_t length = 0;
};
using Pieces = std::vector<Piece>;

class SendList final : public transport::SendQueue {
  public:
    struct Entry {
        transport::SendRequest request;
        std::vector<std::byte> inline_data;
    };
    std::uint32_t producer() override { return base + static_cast<std::uint32_t>(entries.size()); }
    void fetch(std::uint32_t index, transport::SendRequest& out) override;

    std::uint32_t base = 0;  ///< the free-running number of the first
    std::deque<Entry> entries;
};

class ReceiveList final : public transport::ReceiveQueue {
  public:
    enum class State : std::uint8_t { kPosted, kTaken, kDone, kFailed };
    struct Buffer {
        Pieces pieces;
        std::uint32_t length = 0;
        std::vector<std::byte> inline_area;
        State state = State::kPosted;
        std::uint32_t used = 0;     ///< bytes received
        std::uint32_t unknown = 0;  ///< of them, first bytes that have no value (the GRH area without a GRH)
    };

    ReceiveList(Adapter& adapter, bool is_shared, bool inline_areas)
        : adapter_(adapter), shared_(is_shared), inline_areas_(inline_areas) {}

    void post(Pieces pieces);
    bool take(transport::ReceiveRequest& out) override;
    std::uint32_t available() override { return static_cast<std::uint32_t>(buffers.size()) - taken_; }
    [[nodiscard]] bool shared() const override { return shared_; }

    std::deque<Buffer> buffers;   ///< the work request's number is its index
    std::uint32_t completed = 0;  ///< of a queue that is not shared: in order
    std::uint32_t number = 0;     ///< XRC: of the SRQ
    std::deque<Pieces> late;      ///< receives that the client will post later

  private:
    Adapter& adapter_;
    bool shared_;
    bool inline_areas_;
    std::uint32_t taken_ = 0;
};

/// Learns of everything that a client can learn.
class Watcher {
  public:
    virtual ~Watcher() = default;
    virtual void sent(Qp& qp, const transport::Completion& completion) = 0;
    virtual void received(Qp& qp, const transport::Completion& completion) = 0;
};

struct Qp {
    Adapter* adapter = nullptr;
    SendList sends;
    ReceiveList* receives = nullptr;
    transport::QpParameters parameters;
    std::unique_ptr<transport::QueuePair> machine;
    std::vector<transport::QpEvent> events;
    bool in_group = false;  ///< attached to the adapter's multicast group

    [[nodiscard]] std::uint32_t number() const { return machine->config().number; }
    [[nodiscard]] transport::Service service() const { return machine->config().service; }
    /// Reset to RTS.
    void start();
};

class Adapter final : public transport::Host {
  public:
    static constexpr std::uint64_t kBase = 0x10000;
    static constexpr memory::PdId kPd = 1;

    Adapter(World& world, net::Lid lid, std::size_t memory_bytes, bool lend);

    /// nullptr for a service that the transport does not have.
    Qp* add_qp(transport::Service service, std::uint32_t number, ReceiveList* receives);
    ReceiveList* add_receives(bool shared, bool inline_areas);
    /// An XRC SRQ of domain 1.
    ReceiveList* add_xrc_receives(std::uint32_t number, bool inline_areas);
    /// A type 2 window; its handle is its index.
    memory::Window* add_window();
    [[nodiscard]] std::uint32_t last_window() const {
        return static_cast<std::uint32_t>(windows_.size()) - 1;
    }

    // Host
    [[nodiscard]] transport::Time now() const override;
    memory::KeyTable& keys() override { return keys_; }
    memory::Mover& mover() override { return mover_; }
    [[nodiscard]] std::uint32_t send_room() const override { return 32; }
    void send(const net::Packet& packet) override;
    bool complete_send(transport::QueuePair& machine, const transport::Completion& completion) override;
    bool complete_receive(transport::QueuePair& machine, const transport::Completion& completion) override;
    void raise(transport::QueuePair& machine, transport::QpEvent event) override;
    const transport::XrcReceiveQueue* xrc_receive_queue(std::uint32_t number, std::uint32_t domain) override;
    transport::Status bind_window(transport::QueuePair& machine,
                                  const transport::SendRequest& request) override;

    /// A packet from the wire, to one QP or the multicast group.
    void deliver(const net::Packet& packet);

    [[nodiscard]] bool has_room(std::uint64_t length) const { return next_ + length + 512 <= initial.size(); }
    /// Memory of its own for `length` bytes, in up to `most` pieces with gaps between them.
    Pieces allocate(Random& random, std::uint32_t length, std::uint32_t most);
    std::uint64_t allocate_word();
    [[nodiscard]] std::vector<std::byte> bytes(const Pieces& pieces) const;
    [[nodiscard]] const std::byte* at(std::uint64_t offset) const { return space_->bytes().data() + offset; }
    [[nodiscard]] std::byte* at(std::uint64_t offset) { return space_->bytes().data() + offset; }
    [[nodiscard]] std::uint32_t key() const { return region_->key(); }
    [[nodiscard]] net::Lid lid() const { return lid_; }

    std::vector<std::byte> initial;
    std::deque<Qp> qps;
    std::deque<ReceiveList> receive_lists;

  private:
    void place_inline(Qp& qp, const transport::Completion& completion);

    World& world_;
    net::Lid lid_;
    memory::KeyTable keys_{7};
    memory::Mover mover_;
    std::shared_ptr<memory::BufferSpace> space_;
    memory::Region* region_ = nullptr;
    std::vector<memory::Window*> windows_;
    std::deque<transport::XrcReceiveQueue> xrc_queues_;
    std::uint64_t next_ = 64;
};

/// The receive queue that a completion is of.
ReceiveList& receives_of(Qp& qp, const transport::Completion& completion);

}  // namespace uib::simulation
