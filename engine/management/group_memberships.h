// The ports' memberships of multicast groups, as subnet administration is to know them (IBA 15.2.5.17): a
// client of the master's, wherever that runs.
//
// join() and leave() say what is wanted; a membership is asked for, one request at a time, and repeated until
// the answer comes. Whenever what the master knows may be lost (another master, another LID, a port that was
// down, ClientReregister) all of the port's memberships are asked for anew. The master chooses the group's
// multicast LID; the one that the first member's program named is asked for.
//
// Driven like the subnet manager: no thread, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "engine/management/administration_mad.h"
#include "engine/management/engine_subnet.h"

namespace uib::management {

class GroupMemberships {
  public:
    static constexpr Time kFirstRetry = 100'000'000;
    static constexpr Time kLastRetry = 6'400'000'000;
    /// Requests that are sent at a time.
    static constexpr unsigned kBurst = 32;
    /// Requests to leave; then the master's record stays until it misses the port.
    static constexpr unsigned kLeaveAttempts = 5;
    /// Memberships that wait for the master to hear that they are over; what is more is forgotten at once, as
    /// after the last attempt. Members come and go faster than a silent master is given up.
    static constexpr std::size_t kMostLeaving = 1024;

    /// A request from the port of an adapter to its master.
    using Send = std::function<void(std::size_t adapter, const AdministrationMad& request)>;

    GroupMemberships(const EngineSubnet& subnet, std::uint64_t first_transaction, Send send)
        : subnet_(subnet),
          seen_(subnet.adapters()),
          next_transaction_(first_transaction),
          send_(std::move(send)) {}

    /// The port of `adapter` is to be a full member. `mlid` and `qkey` count if it makes the group.
    void join(std::size_t adapter, const net::Gid& group, net::Lid mlid, std::uint32_t qkey, Time now);
    void leave(std::size_t adapter, const net::Gid& group, Time now);
    /// Something at the adapter's port may have changed.
    void port_changed(std::size_t adapter, Time now);
    /// False if it is the answer to nothing.
    bool on_response(std::size_t adapter, const AdministrationMad& response, Time now);
    void on_timer(Time now);
    [[nodiscard]] Time next_deadline() const { return due_; }

    /// The LID that the master has given the group; 0 as long as no port of this engine is a member.
    [[nodiscard]] net::Lid mlid(const net::Gid& group) const;

    struct Status {
        net::Gid group{};
        std::size_t adapter = 0;
        net::Lid mlid = 0;
        bool registered = false;
    };
    [[nodiscard]] std::vector<Status> list() const;

    struct Counters {
        std::uint64_t requests = 0;
        std::uint64_t refused = 0;     ///< by the master, or with no multicast LID; asked again all the same
        std::uint64_t unanswered = 0;  ///< repeated, or given up
        std::uint64_t abandoned = 0;   ///< left without a word to the master: kMostLeaving
    };
    [[nodiscard]] const Counters& counters() const { return counters_; }

  private:
    using Key = std::pair<net::Gid, std::size_t>;  ///< group and adapter
    struct Membership {
        net::Lid wanted_mlid = 0;
        std::uint32_t qkey = 0;
        net::Lid mlid = 0;  ///< that a master has given
        bool wanted = true;
        bool registered = false;        ///< the present master has said so
        bool asked = false;             ///< the present master may know of it
        std::uint64_t transaction = 0;  ///< of the latest request; 0: answered
        unsigned attempts = 0;
        Time due = kNever;
    };
    /// What a port showed when its memberships were last asked for.
    struct Seen {
        Number lid = 0;
        Number master = 0;
        Number prefix = 0;
        bool active = false;
        std::uint32_t reregistrations = 0;
        bool operator==(const Seen&) const = default;
    };
    void schedule(Membership& membership, Time at) {
        membership.due = at;
        due_ = std::min(due_, at);
    }
    [[nodiscard]] Seen look(std::size_t adapter) const;
    bool tend(const Key& key, Membership& membership, Time now);
    void request(const Key& key, Membership& membership, Time now);

    const EngineSubnet& subnet_;
    std::map<Key, Membership> memberships_;
    std::size_t leaving_ = 0;  ///< of these that are not wanted
    std::vector<Seen> seen_;   ///< by adapter
    std::uint64_t next_transaction_;
    Send send_;
    Time due_ = kNever;
    Counters counters_;
};

}  // namespace uib::management
