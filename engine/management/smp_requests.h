// Requests of a subnet manager that are under way: at most a window at once, the others wait; each is
// repeated until its answer comes or its attempts are used up.
//
// An answer may come within the call that sends the request (smp_node.h), so sending is one loop that is
// never entered twice: what an answer causes to be asked waits until the loop comes to it.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "engine/management/smp_node.h"
#include "engine/management/topology.h"

namespace uib::management {

class SmpRequests {
  public:
    /// Called with the answer; nullptr when none came.
    using Done = std::function<void(const net::Smp*)>;
    struct Options {
        Time timeout = 200'000'000;
        unsigned attempts = 4;
        std::size_t window = 8;  ///< a link's queue of VL15 holds twice as many
    };

    /// `port`: where the requests leave. The node outlives this.
    SmpRequests(SmpNode& node, unsigned port, std::uint64_t first_transaction, Options options)
        : node_(node), port_(port), next_transaction_(first_transaction), options_(options) {}

    void get(const DirectedPath& path, AttributeId attribute, std::uint32_t modifier, Done done);
    /// The status of the answer is the caller's to look at.
    void set(const DirectedPath& path, AttributeId attribute, std::uint32_t modifier, ConstData data,
             Done done);
    /// Sends what the window allows.
    void pump(Time now);
    /// True if it was the answer to something; its Done has been called.
    bool on_response(const net::Smp& response);
    /// Repeats or gives up what is due.
    void on_timer(Time now);
    [[nodiscard]] Time next_deadline() const;
    [[nodiscard]] bool idle() const { return waiting_.empty() && under_way_.empty(); }
    /// Forgets everything; late answers are nobody's.
    void clear();

    [[nodiscard]] std::uint64_t sent() const { return sent_; }
    [[nodiscard]] std::uint64_t timeouts() const { return timeouts_; }

  private:
    struct Request {
        net::Smp smp;
        Done done;
        Time due = kNever;
        unsigned attempts = 0;
    };
    void add(net::MadMethod method, const DirectedPath& path, AttributeId attribute, std::uint32_t modifier,
             const ConstData* data, Done done);
    void transmit(Request& request, Time now);

    SmpNode& node_;
    unsigned port_;
    std::uint64_t next_transaction_;
    Options options_;
    std::deque<Request> waiting_;
    std::map<std::uint64_t, Request> under_way_;  ///< by transaction
    bool pumping_ = false;
    std::uint64_t sent_ = 0;
    std::uint64_t timeouts_ = 0;
};

}  // namespace uib::management
