// One end of a connection for tests: a queue pair, its queues as vectors, a memory of its own, a clock that
// the test sets, and everything the machine did, recorded. Packets that it sends are copied at once.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/memory/buffer_space.h"
#include "engine/memory/key_table.h"
#include "engine/memory/mover.h"
#include "engine/transport/queue_pair.h"

namespace uib::transport::testing {

struct SentPacket {
    net::Packet packet;
    std::vector<std::byte> payload;

    explicit SentPacket(const net::Packet& from)
        : packet(from), payload(from.payload.begin(), from.payload.end()) {
        packet.payload = {};
    }
    [[nodiscard]] net::Operation operation() const { return packet.bth.operation(); }
    [[nodiscard]] std::uint32_t psn() const { return packet.bth.psn; }
    /// The packet with its payload, valid as long as this.
    [[nodiscard]] net::Packet whole() const {
        net::Packet out = packet;
        out.payload = payload;
        return out;
    }
};

/// A work request to post; entries are (address, length) in the station's memory.
struct Work {
    ipc::WorkOpcode opcode = ipc::WorkOpcode::kSend;
    std::uint8_t flags = ipc::kWorkSignaled;
    std::vector<ipc::ScatterGatherEntry> entries;
    std::vector<std::byte> inline_data;
    std::uint64_t remote_address = 0;
    std::uint32_t rkey = 0;
    std::uint32_t immediate = 0;
    std::uint64_t compare_add = 0;
    std::uint64_t swap = 0;
    std::uint32_t remote_qpn = 0;
    std::uint32_t remote_qkey = 0;
    std::uint32_t xrc_srq = 0;
    ipc::AddressVector address_vector{};
    bool malformed = false;
};

class ListSendQueue final : public SendQueue {
  public:
    std::uint32_t producer() override { return base + static_cast<std::uint32_t>(works.size()); }
    void fetch(std::uint32_t index, SendRequest& out) override;

    std::uint32_t base = 0;
    std::deque<Work> works;
    std::uint32_t fetches = 0;
};

class ListReceiveQueue final : public ReceiveQueue {
  public:
    struct Entry {
        std::uint64_t wr_id = 0;
        std::vector<ipc::ScatterGatherEntry> entries;
        bool malformed = false;
    };
    bool take(ReceiveRequest& out) override;
    std::uint32_t available() override { return static_cast<std::uint32_t>(posted.size()); }
    [[nodiscard]] bool shared() const override { return is_shared; }
    [[nodiscard]] bool failed() const override { return is_failed; }

    std::deque<Entry> posted;
    bool is_shared = false;
    bool is_failed = false;
    /// Inline area of the slot of request `wr_id`, if inline receives are on.
    bool inline_receives = false;
    std::deque<std::vector<std::byte>> areas;
    std::uint32_t taken = 0;
};

class Station final : public Host {
  public:
    static constexpr std::uint64_t kBase = 0x10000;
    static constexpr std::size_t kMemory = std::size_t{1} << 20;

    Station(Service service, std::uint32_t number, bool lend = true);

    // Host
    [[nodiscard]] Time now() const override { return clock; }
    memory::KeyTable& keys() override { return keys_; }
    memory::Mover& mover() override { return mover_; }
    [[nodiscard]] std::uint32_t send_room() const override { return room; }
    void send(const net::Packet& packet) override { out.emplace_back(packet); }
    bool complete_send(QueuePair& qp, const Completion& completion) override;
    bool complete_receive(QueuePair& qp, const Completion& completion) override;
    void raise(QueuePair& qp, QpEvent event) override;
    Status bind_window(QueuePair& qp, const SendRequest& request) override;
    const XrcReceiveQueue* xrc_receive_queue(std::uint32_t number, std::uint32_t domain) override;
    PortView port_of(const QueuePair&) override { return port; }

    /// Reset to RTS (or less) against `peer_number`; the address of a station is its QP number.
    void connect(std::uint32_t peer_number, QpState to = QpState::kRts);
    void post(const Work& work) { send_queue.works.push_back(work); }
    void post_receive(std::uint64_t wr_id, std::uint64_t address, std::uint32_t length);
    /// Runs until there is nothing more to do at once, and ends the turn.
    void run(std::uint32_t burst = 1000);
    void deliver(const net::Packet& packet) {
        qp->on_packet(packet);
        mover_.end_turn();
    }
    void advance(Time time) {
        clock += time;
        if (qp->next_timer() <= clock) qp->on_timer();
    }
    std::vector<SentPacket> take_out();

    [[nodiscard]] ipc::ScatterGatherEntry entry(std::uint64_t offset, std::uint32_t length) const {
        return {kBase + offset, length, region->key()};
    }
    std::byte* at(std::uint64_t offset) { return space->bytes().data() + offset; }
    void fill(std::uint64_t offset, std::size_t length, unsigned seed);
    bool holds(std::uint64_t offset, std::size_t length, unsigned seed);
    [[nodiscard]] const QpCounters& count() const { return qp->counters(); }

    Time clock = 1'000'000;
    std::uint32_t room = 100'000;
    bool queue_full = false;
    /// Called with each completion at the moment it is made, as a polling client would see it.
    std::function<void(const Completion&)> on_completion;
    Status bind_result = Status::kSuccess;
    PortView port;  ///< to be set before connect()
    std::vector<SentPacket> out;
    std::vector<Completion> sends;
    std::vector<Completion> receives;
    std::vector<QpEvent> events;
    std::vector<std::uint64_t> binds;
    /// An XRC target's SRQ is receive_queue, by this number and in this domain; 0: it is gone.
    static constexpr std::uint32_t kXrcDomain = 5;
    std::uint32_t srq_number = 0x51;
    std::uint32_t srq_domain = kXrcDomain;
    memory::PdId srq_pd = 1;
    ListSendQueue send_queue;
    ListReceiveQueue receive_queue;
    QpParameters parameters;
    std::shared_ptr<memory::BufferSpace> space;
    memory::Region* region = nullptr;
    std::unique_ptr<QueuePair> qp;

  private:
    memory::KeyTable keys_{7};
    memory::Mover mover_;
    XrcReceiveQueue xrc_queue_;
};

/// The byte at `index` of pattern `seed`.
std::byte pattern(unsigned seed, std::size_t index);

/// A packet for `to` as its peer would send it.
net::Packet packet_for(const Station& to, net::Operation operation, std::uint32_t psn,
                       std::span<const std::byte> payload = {}, bool ack_req = false);
net::Packet response_for(const Station& to, net::Operation operation, std::uint32_t psn,
                         std::uint8_t syndrome = 0, std::uint32_t msn = 0,
                         std::span<const std::byte> payload = {});

/// Two stations and a wire without loss.
struct Pair {
    explicit Pair(Service service = Service::kRc, bool lend = true)
        : a(service, 0x11, lend), b(service, 0x12, lend) {}
    void connect() {
        a.connect(0x12);
        b.connect(0x11);
    }
    /// Runs both and carries packets until nothing moves. Keeps a copy of all in `seen`.
    void settle(std::uint32_t burst = 1000);

    Station a;
    Station b;
    std::vector<SentPacket> seen;
};

}  // namespace uib::transport::testing
