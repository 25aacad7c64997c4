// The adapter: everything that one lane owns, and one turn of its loop.
//
// One Adapter runs all devices of the engine on the internal fabric (design.md, decision 2: one lane so far;
// devices joined by the internal switch share nothing with other lanes). It is the transport machines' Host.
// It has no thread: the daemon's lane calls turn(), the control thread calls the rest, and the lane's baton
// (daemon/baton.h) keeps them apart. So nothing in here or below is locked or atomic, except what clients
// share.
//
// A turn:
//   1. doorbells: QPs that were rung go on the active list;
//   2. requesters and responders of the active list send, a bounded burst each (the internal port's queue is
//   bounded, and
//      so is the staging memory behind the packets);
//   3. every packet sent is delivered: responders execute, requesters digest. Nothing is left when the turn
//   ends, so packets may
//      refer to client memory, and no region, QP or client can go away under one;
//   4. staged writes are flushed, completion events written, timers fired.
// A QP stays on the active list, where its ring is watched without doorbells, for kIdleTurns turns without
// work.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "engine/management/engine_subnet.h"
#include "engine/management/general_services.h"
#include "engine/management/trunk_joint.h"
#include "engine/memory/key_table.h"
#include "engine/memory/mover.h"
#include "engine/transport/host.h"
#include "engine/verbs/client.h"
#include "engine/verbs/device.h"
#include "engine/verbs/ethernet_paths.h"
#include "engine/verbs/multicast.h"
#include "engine/verbs/port_taps.h"
#include "engine/verbs/xrc_domain.h"
#include "net/fabric/internal_switch.h"
#include "net/fabric/router.h"

namespace uib::verbs {

class CompletionQueue;
class Qp;

class Adapter final : public transport::Host {
  public:
    /// A device each. Where no other manager is, LIDs in a subnet count up from 1. Several subnets are joined
    /// by a router. Throws std::invalid_argument if a device names a subnet that is not there.
    explicit Adapter(const std::vector<DeviceConfig>& devices,
                     const std::vector<SubnetConfig>& subnets = std::vector<SubnetConfig>(1),
                     std::vector<std::unique_ptr<net::IbTrunk>> trunks = {});
    ~Adapter() override;

    // -- the lane --
    /// Runs one turn. True when anything was done.
    bool turn();
    /// True when nothing is on the active list and no doorbell is rung: the lane may sleep until
    /// next_deadline().
    [[nodiscard]] bool quiet() const;
    /// When turn() must run again without a doorbell; kNever if not at all.
    [[nodiscard]] transport::Time next_deadline() const;

    /// True once after a client was condemned, or one of its pipes got a backlog.
    [[nodiscard]] bool take_attention() { return std::exchange(attention_, false); }

    // -- ports with a way out, and taps (adapter_uplinks.cc; baton held) --
    /// Before the first turn.
    void attach_uplink(Device& device, std::unique_ptr<net::Uplink> uplink);
    /// Before the lane sleeps (after which it must turn once more) and when it has woken.
    void watch_outside(bool asleep);
    [[nodiscard]] std::vector<int> wake_descriptors() const;
    [[nodiscard]] bool has_outside() const { return !outside_.empty() || !joints_.empty(); }
    /// A port has nothing to wake the lane with: what arrives there is found by turns only.
    [[nodiscard]] bool must_poll() const { return must_poll_; }
    [[nodiscard]] const std::vector<std::unique_ptr<management::TrunkJoint>>& links() const {
        return joints_;
    }
    /// True once after ports have changed (state, GIDs, MTU).
    [[nodiscard]] bool take_port_changes() { return std::exchange(ports_changed_, false); }
    /// Tells the clients of those changes: when what they will look at in the file system shows them.
    void raise_port_events();
    std::uint32_t add_fault(const net::FaultRule& rule);
    /// False if there is no such rule.
    bool remove_fault(std::uint32_t id);
    [[nodiscard]] std::vector<net::FaultStatus> faults() const;
    /// What rules have done so far, those that are gone included.
    [[nodiscard]] const net::FaultTotals& fault_totals() const { return taps_.totals; }
    /// False if a capture runs already.
    bool start_capture(const net::CaptureOptions& options);
    void stop_capture();
    [[nodiscard]] net::Capture* capture() { return taps_.capture.get(); }

    // -- clients and objects (baton held) --
    void add_client(Client& client) {
        client.set_attention(&attention_);
        clients_.push_back(&client);
    }
    void remove_client(Client& client);
    [[nodiscard]] const std::vector<Client*>& clients() const { return clients_; }
    [[nodiscard]] std::vector<std::unique_ptr<Device>>& devices() { return devices_; }
    [[nodiscard]] Device* device_named(const std::string& name);
    [[nodiscard]] const net::InternalSwitch& fabric() const { return fabric_; }
    [[nodiscard]] memory::PdId next_pd() { return ++last_pd_; }
    MulticastGroups& multicast() { return multicast_; }
    /// nullptr if there is no InfiniBand device in the first subnet.
    [[nodiscard]] management::EngineSubnet* subnet() { return subnets_.front().nodes.get(); }
    /// One subnet of the InfiniBand devices.
    struct Subnet {
        SubnetConfig config;
        std::unique_ptr<net::InternalSwitch> own_fabric;  ///< of all but the first
        net::InternalSwitch* fabric = nullptr;
        std::vector<Device*> devices;  ///< by adapter of `nodes`; the router comes behind them
        std::unique_ptr<management::EngineSubnet> nodes;  ///< none without devices
    };
    [[nodiscard]] const std::vector<Subnet>& subnets() const { return subnets_; }
    /// nullptr unless there are several subnets.
    [[nodiscard]] const net::Router* router() const { return router_.get(); }
    /// nullptr without links out of the engine: nobody could ask or be asked.
    [[nodiscard]] const management::GeneralServices* general() const { return general_.get(); }
    XrcDomains& xrc() { return xrc_; }
    /// Sums over the device's QPs, living and gone.
    [[nodiscard]] transport::QpCounters qp_counters(const Device& device) const;

    /// A number for a new QP; 0 when there is none left.
    std::uint32_t reserve_qp_number();
    /// Gives back a number that add_qp() has not seen.
    void release_qp_number(std::uint32_t number) { free_numbers_.push_back(number); }
    /// From now on packets reach the QP. Its number must be reserved.
    void add_qp(Qp& qp);
    void remove_qp(Qp& qp);
    /// Before a QP goes: responses that it owes its peer go out. What its own client wanted sent is not
    /// waited for.
    void pay_debts(Qp& qp);
    /// The QP starts afresh or goes: failed writes that nobody asked about are forgotten.
    void forget_writes(const Qp& qp);
    /// A CQ is going away.
    void forget(CompletionQueue& cq);
    /// Puts the QP on the active list.
    void activate(Qp& qp);

    // -- transport::Host --
    [[nodiscard]] transport::Time now() const override { return now_; }
    memory::KeyTable& keys() override { return keys_; }
    memory::Mover& mover() override { return mover_; }
    [[nodiscard]] std::uint32_t send_room() const override;
    void send(const net::Packet& packet) override;
    bool complete_send(transport::QueuePair& machine, const transport::Completion& completion) override;
    bool complete_receive(transport::QueuePair& machine, const transport::Completion& completion) override;
    void raise(transport::QueuePair& machine, transport::QpEvent event) override;
    const transport::XrcReceiveQueue* xrc_receive_queue(std::uint32_t number, std::uint32_t domain) override {
        return xrc_.receive_queue(number, domain);
    }
    transport::PortView port_of(const transport::QueuePair& machine) override;
    transport::Status bind_window(transport::QueuePair& machine,
                                  const transport::SendRequest& request) override;

    struct Statistics {
        std::uint64_t turns = 0;
        std::uint64_t busy_turns = 0;
        std::uint64_t doorbells = 0;
        std::uint64_t packets = 0;
    };
    [[nodiscard]] const Statistics& statistics() const { return statistics_; }

  private:
    static constexpr std::size_t kQueueDepth = 2048;  ///< packets that the internal port holds in a turn
    static constexpr std::uint32_t kBurst = 64;       ///< packets a QP may send in a turn
    static constexpr std::uint32_t kIdleTurns = 64;
    static constexpr int kTurnsToPay = 16;
    /// Packets a QP may have under way outside: a share of what a receiver's ring holds (net/port/dpdk).
    static constexpr std::uint32_t kFlightLimit = 256;
    static constexpr std::size_t kStagingBytes = std::size_t{512} << 10;

    struct TimerEntry {
        transport::Time at;
        std::uint32_t qp_number;
        friend bool operator>(const TimerEntry& a, const TimerEntry& b) { return a.at > b.at; }
    };

    /// Where an uplink puts what it has received.
    class OutsideSink final : public net::PacketSink {
      public:
        OutsideSink(Adapter& adapter, Device& device) : adapter_(adapter), device_(device) {}
        void on_packet(net::Packet& packet) override;

      private:
        Adapter& adapter_;
        Device& device_;
    };

    bool take_doorbells();
    bool run_active();
    // adapter_uplinks.cc
    bool receive_from_outside();
    void from_outside(Device& device, net::Packet& packet);
    void notify_congestion(Device& device, const net::Packet& marked);
    void follow(Device& device, std::uint8_t changes);
    void note_port_event(const Device& device, std::uint32_t type) {
        port_events_.emplace_back(&device, type);
    }
    void apply_link_faults();
    void end_outside_turn();
    [[nodiscard]] transport::Time outside_deadline() const;
    // adapter_subnet.cc
    void name_subnets(const std::vector<SubnetConfig>& subnets, const std::vector<DeviceConfig>& devices);
    [[nodiscard]] std::uint8_t subnet_named(const std::string& name) const;
    void start_subnets();
    void start_subnet(std::size_t number);
    void tend_subnets();
    /// Of an InfiniBand device among its subnet's.
    [[nodiscard]] std::size_t adapter_number(const Device& device) const;
    void follow_subnet(std::size_t number, std::size_t adapter);
    void address_router(const Device& device, net::Packet& packet) const;
    void pass_router(const net::Packet& packet);
    // adapter_links.cc
    void add_external_ports();
    void join_trunks();
    bool receive_from_links();
    void send_through(std::uint32_t port, const net::Packet& packet);
    // adapter_general.cc
    void start_general();
    [[nodiscard]] bool has_general(const Device& device) const {
        return general_ != nullptr && !device.ethernet() && device.subnet_number() == 0;
    }
    bool send_general();
    void take_general(const Device& device, const net::Packet& packet);
    void follow_membership(const Qp& qp, const net::Gid& gid, net::Lid mlid, bool member);
    [[nodiscard]] net::Lid mlid_on_wire(const net::Packet& packet) const;
    // adapter_wire.cc
    void put_on_wire(Device& device, const net::Packet& packet);
    void leave(Device& device, const net::Packet& packet);
    void enter(Device& device, const net::Packet& packet);
    void pass_in(Device& device, const net::Packet& packet);
    void arrive(Device& device, const net::Packet& packet);
    void release_held();
    bool deliver();
    void deliver_frame(const net::Packet& packet);
    void take_frame(Device& device, const net::Packet& packet);
    void deliver_unicast(const net::Packet& packet);
    void deliver_multicast(const net::Packet& packet);
    void deliver_to(Qp& qp, const net::Packet& packet);
    bool fire_timers();
    void settle_cqs();
    void watch_timer(Qp& qp);
    /// After anything that may have moved the machine: state changes and timers are taken note of.
    void after_event(Qp& qp);
    bool push(CompletionQueue& cq, const ipc::Cqe& entry);
    [[nodiscard]] Qp* qp_numbered(std::uint32_t number) const {
        return number < qps_.size() ? qps_[number] : nullptr;
    }

    transport::Time now_ = 0;
    memory::KeyTable keys_;
    memory::Mover mover_;
    net::InternalSwitch fabric_;
    EthernetPaths ethernet_paths_;
    net::EthernetSwitch ethernet_switch_;
    std::vector<Qp*> receivers_;  ///< of the frame being delivered
    MulticastGroups multicast_;
    XrcDomains xrc_;
    std::vector<std::unique_ptr<Device>> devices_;
    std::vector<Subnet> subnets_;
    transport::Time subnets_due_ = transport::kNever;  ///< of what they do by themselves
    std::unique_ptr<net::Router> router_;
    net::InternalSwitch::PortIndex router_port_ = net::InternalSwitch::kNoPort;  ///< of every fabric
    std::vector<Client*> clients_;
    std::vector<Qp*> qps_;  ///< by number
    std::deque<std::uint32_t> free_numbers_;
    std::vector<Qp*> active_;
    std::vector<net::Packet> wire_;                      ///< packets of this turn
    std::vector<std::unique_ptr<net::IbTrunk>> trunks_;  ///< until they are joined
    std::vector<std::unique_ptr<management::TrunkJoint>> joints_;
    std::unique_ptr<management::GeneralServices> general_;
    std::deque<management::GeneralServices::Datagram> datagrams_;  ///< of QP1, sent in this turn
    std::vector<Device*> outside_;                                 ///< devices with uplinks
    PortTaps taps_;
    std::vector<std::unique_ptr<UplinkTap>> uplink_taps_;  ///< while a capture runs
    bool must_poll_ = false;                               ///< an uplink cannot wake the lane
    bool drop_faults_ = false;                             ///< no rule is left and nothing is held
    bool ports_changed_ = false;
    std::vector<std::pair<const Device*, std::uint32_t>> port_events_;  ///< that clients have not been told
    Qp* running_ = nullptr;                                             ///< whose machine is sending
    std::uint64_t progress_ = 0;  ///< counts completions and events, to tell work from looking for it
    std::vector<CompletionQueue*> unsettled_;
    std::priority_queue<TimerEntry, std::vector<TimerEntry>, std::greater<>> timers_;
    transport::Time moderation_due_ = transport::kNever;
    memory::PdId last_pd_ = 0;
    bool attention_ = false;
    Statistics statistics_;
};

/// CLOCK_MONOTONIC in nanoseconds: the clock of timers and of completion timestamps.
transport::Time monotonic_now();

}  // namespace uib::verbs
