// A subnet manager (IBA 14.4): finds the nodes of its subnet by directed route SMPs, agrees with other
// managers who is master, and as master gives LIDs, forwarding tables, VL tables and port states.
//
// It has no thread and no clock. Its owner calls start(), and on_timer() when next_deadline() has come; the
// node that it runs on brings answers. Between engine-internal nodes answers come within the call, so a whole
// sweep is over when start() returns.
//
// A sweep is a row of phases; the next one starts when all requests of one have been answered or given up:
//   discover    NodeInfo, SwitchInfo and PortInfo of everything that the links lead to
//   managers    SMInfo of the other managers; then the election: a master is followed; without one the
//   highest
//               priority wins, then the lowest GUID. A master that finds a better manager hands over to it;
//               one that finds a worse master goes on and waits to be handed over to.
//   identify    LIDs, path MTU, VLs: what differs is set; ports that are new to this master are told to
//               register their multicast memberships with it
//   tables      forwarding tables (routes.cc), P_Keys, SL to VL, VL arbitration: what differs is set
//   arm, activate   port states
// A master looks at its switches each sweep interval whether a port has changed, and sweeps if so, and now
// and then anyway; a switch's trap makes it sweep at once. A sweep in which something did not answer is
// repeated after a while that doubles each time. A standby asks the manager that it follows each poll
// interval, and discovers anew when that does not answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/management/administration_mad.h"
#include "engine/management/mlid_uses.h"
#include "engine/management/smp_node.h"
#include "engine/management/smp_requests.h"
#include "engine/management/topology.h"

namespace uib::management {

struct SubnetOptions {
    std::uint8_t priority = 0;  ///< 0 to 15; the highest becomes master
    std::uint8_t lmc = 0;       ///< 0 to 7: each end port gets 2^lmc LIDs
    std::uint64_t gid_prefix = kDefaultGidPrefix;
    Time sweep_interval = 10'000'000'000;  ///< 0: only when told or when something did not answer
    Time poll_interval = 1'000'000'000;    ///< of a standby
    SmpRequests::Options requests{};
};

class SubnetManager final : public SmpManager {
  public:
    /// Runs on `port` of `node`, which outlives it.
    SubnetManager(SmpNode& node, unsigned port, const SubnetOptions& options);
    ~SubnetManager() override;
    SubnetManager(const SubnetManager&) = delete;
    SubnetManager& operator=(const SubnetManager&) = delete;

    void start(Time now);
    /// Something has changed (a link, a node): sweeps at once if it is master.
    void wake(Time now);
    void on_timer(Time now);
    [[nodiscard]] Time next_deadline() const;

    // -- subnet administration (subnet_groups.cc) --
    /// The answer to a request that came from `from`; nothing if this manager is not master. Knows
    /// McMemberRecord only.
    std::optional<AdministrationMad> on_administration(const AdministrationMad& request, net::Lid from,
                                                       Time now);
    /// The port becomes a member of the group, which is made as `wanted` says if need be. Its multicast LID:
    /// the wanted one if the switches have it (groups may share one), else one that is free; 0 if this
    /// manager is not master or none is left.
    net::Lid join(const McMemberRecord& wanted, std::uint64_t port_guid, Time now);
    /// False if the port has no such state in the group. Without a full member the group is gone.
    bool leave(const net::Gid& group, std::uint64_t port_guid, std::uint8_t join_state, Time now);

    [[nodiscard]] SmState state() const { return state_; }
    [[nodiscard]] std::uint64_t guid() const { return guid_; }
    /// Nothing is under way.
    [[nodiscard]] bool settled() const { return phase_ == Phase::kIdle && !groups_changed_; }
    /// What the last discovery found.
    [[nodiscard]] const Topology& topology() const { return topology_; }
    [[nodiscard]] const LidMap& lids() const { return lids_; }
    [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }
    [[nodiscard]] const SmpRequests& requests() const { return requests_; }

    // -- SmpManager --
    void on_response(const SmpPacket& packet, Time now) override;
    net::Smp on_sm_info(const net::Smp& request, Time now) override;
    bool on_trap(const net::Smp& trap, Time now) override;

  private:
    /// As many as there are multicast LIDs: what a client could make the manager remember has an end.
    static constexpr std::size_t kMaxGroups = 0x3FFF;
    struct Group {
        McMemberRecord record;                        ///< without a member
        std::map<std::uint64_t, std::uint8_t> ports;  ///< join states by port GUID
    };
    using Groups = std::map<net::Gid, Group>;

    enum class Phase : std::uint8_t {
        kIdle,
        kLook,
        kPoll,
        kDiscover,
        kManagers,
        kHandOver,
        kIdentify,
        kTables,
        kArm,
        kActivate,
    };
    struct OtherManager {
        SmInfo info;
        DirectedPath path;
    };
    /// What a switch is known to hold; that of one that has started anew is forgotten.
    struct Programmed {
        std::map<std::uint32_t, std::array<std::byte, net::kSmpDataBytes>> linear;     ///< by block
        std::map<std::uint32_t, std::array<std::byte, net::kSmpDataBytes>> multicast;  ///< by modifier
    };

    void progress();
    void advance();
    void finish();
    void schedule(Time at) { due_ = std::min(due_, at); }
    [[nodiscard]] SmInfo own_info() const;
    [[nodiscard]] bool better(const SmInfo& other) const;
    SmpRequests::Done checked(SmpRequests::Done done);

    // subnet_discovery.cc
    void sweep();
    void probe(const DirectedPath& path, NodeIndex from, unsigned from_port);
    void on_node(const net::Smp& reply, const DirectedPath& path, NodeIndex from, unsigned from_port);
    void ask_switch(NodeIndex index);
    void ask_ports(NodeIndex index);
    void on_port(const net::Smp& reply, NodeIndex index, unsigned port);
    void ask_managers();
    void elect();
    void hand_over(const OtherManager& other);
    void follow(const OtherManager& other);
    void poll();
    void look();

    // subnet_setup.cc
    void identify();
    void identify_port(NodeIndex index, unsigned port);
    void identify_switch(NodeIndex index);
    void set_port(NodeIndex index, unsigned port, const PortInfo& wanted, Number state);
    void set_states(Number from, Number to);
    void set_tables();
    void set_linear(NodeIndex index, const SwitchRoutes& routes);
    void set_multicast(NodeIndex index, const SwitchRoutes& routes);
    void set_block(NodeIndex index, AttributeId attribute, std::uint32_t modifier,
                   const std::array<std::byte, net::kSmpDataBytes>& block,
                   std::map<std::uint32_t, std::array<std::byte, net::kSmpDataBytes>>& held);
    void set_virtual_lanes(NodeIndex index, unsigned port);
    void set_pkeys(NodeIndex index);
    void note_presence(const NodeRecord& node);

    // subnet_groups.cc
    std::uint16_t administer(AdministrationMad& mad, net::Lid from, Time now);
    std::uint16_t set_membership(const McMemberRecord& wanted, std::uint64_t components, net::Lid from,
                                 Time now);
    [[nodiscard]] std::uint16_t check_member(const McMemberRecord& wanted, net::Lid from) const;
    [[nodiscard]] net::Lid choose_mlid(net::Lid wanted);
    Groups::iterator forget_group(Groups::iterator group);
    [[nodiscard]] McMemberRecord record_of(const net::Gid& group, const net::Gid& port) const;
    [[nodiscard]] MulticastMembers members() const;
    void forget_absent_members();
    void regroup();

    SmpNode& node_;
    unsigned port_;
    SubnetOptions options_;
    std::uint64_t guid_;
    SmpRequests requests_;
    SmState state_ = SmState::kNotActive;
    Phase phase_ = Phase::kIdle;
    Time now_ = 0;
    Time due_ = kNever;  ///< of the next sweep, look or poll
    bool busy_ = false;
    bool changed_ = false;         ///< a look has found a switch with a changed port
    bool incomplete_ = false;      ///< something of this sweep did not answer or refused
    bool silent_rival_ = false;    ///< a node says that it has a manager, which does not answer
    bool handed_over_ = false;     ///< another master has handed over to this manager
    bool groups_changed_ = false;  ///< since the routes were computed
    unsigned failures_ = 0;        ///< incomplete sweeps in a row
    unsigned looks_ = 0;           ///< since the last sweep
    std::uint32_t act_count_ = 0;
    std::uint64_t sweeps_ = 0;
    Topology topology_;
    LidMap lids_;
    std::vector<OtherManager> others_;
    OtherManager followed_;
    std::map<NodeIndex, SwitchRoutes> routes_;
    std::map<std::uint64_t, Programmed> programmed_;          ///< by switch GUID
    std::set<std::uint64_t> present_;                         ///< ports that the last sweep as master found
    std::set<std::uint64_t> fresh_;                           ///< ports that showed no LID in this sweep
    std::set<std::uint64_t> unregistered_;                    ///< ports to be told to register anew
    std::set<std::pair<std::uint64_t, unsigned>> lanes_set_;  ///< ports whose VL tables are set
    Groups groups_;
    MlidUses mlids_;  ///< of groups_
};

}  // namespace uib::management
