// A world made from a seed: adapters, faults of the links, queue pairs of all services with their parameters,
// and clients that post at random times; and the watcher that hands each completion to the flow it belongs
// to.
//
// Files: scenario.cc draws the world; scenario_judge.cc watches it and judges what is left.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/flow.h"

namespace uib::simulation {

/// What happened in runs, so that a test can see that the seeds reach everything.
struct Totals {
    std::map<std::string, std::uint64_t> counts;
    void add(const std::string& what, std::uint64_t count) {
        if (count != 0) counts[what] += count;
    }
};

class Scenario final : public Watcher {
  public:
    explicit Scenario(std::uint64_t seed);

    /// Empty if all promises were kept.
    const std::string& run();
    [[nodiscard]] const Trace& trace() const { return world_.trace; }
    void add_to(Totals& totals) const;
    /// The queue pairs and what they counted, for people.
    [[nodiscard]] std::string describe() const;

    // Watcher
    void sent(Qp& qp, const transport::Completion& completion) override;
    void received(Qp& qp, const transport::Completion& completion) override;

  private:
    // scenario.cc
    void draw_faults();
    LinkFaults draw_link();
    void add_connection(transport::Service service);
    void add_xrc_group();
    void add_datagram_group();
    Qp* add_qp(Adapter& adapter, transport::Service service, ReceiveList* receives);
    void prepare(Qp& left, Qp& right);
    FlowPlan plan_between(const Qp& from, const Qp& to, bool reliable);
    void connect(Qp& left, Qp& right, bool two_ways);
    Flow& add_flow(Qp& from, Qp* to, FlowPlan plan);
    void schedule_clients();
    void schedule_drain(Qp& qp);
    void recover(Flow& flow);
    ReceiveList* receives_for(Adapter& adapter, bool reliable);
    std::uint32_t draw_psn();

    // scenario_judge.cc
    ReceiveList* settle_buffer(Qp& qp, const transport::Completion& completion);
    void finish();
    void check_memory(const Images& images);
    void check_events(const Qp& qp);

    World world_;
    Words words_;
    std::deque<Flow> flows_;
    std::map<const Qp*, Flow*> outbound_;
    std::map<const Qp*, Flow*> inbound_;
    std::map<const Adapter*, ReceiveList*> shared_;
    std::uint32_t mtu_ = 1024;
    std::uint32_t longest_ = 4096;  ///< bytes of a message
    std::uint32_t next_qp_ = 0x11;
    std::uint64_t recoveries_ = 0;
};

}  // namespace uib::simulation
