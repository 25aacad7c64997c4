// What losses cost a reliable connection, as a table that is kept in loss_sweep.txt and must not change
// unseen.
//
// One queue pair writes messages of 4 KiB to another over a link of 100 Gb/s and 2 us each way that loses
// packets in both directions; a client keeps `depth` messages under way. UIB_SIMULATION_WRITE_SWEEP=1 writes
// the file anew.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/simulation/world.h"

namespace uib::simulation {
namespace {

constexpr std::uint32_t kMessage = 4096;
constexpr std::uint32_t kMessages = 200;
constexpr std::array kLosses = {0.0, 0.001, 0.003, 0.01, 0.03, 0.1};
constexpr std::array<std::uint32_t, 3> kMtus = {256, 1024, 4096};
constexpr std::array<std::uint32_t, 3> kDepths = {1, 8, 64};

/// One sender, one receiver; a new message whenever one has completed.
class Sweep final : public Watcher {
  public:
    Sweep(double loss, std::uint32_t mtu, std::uint32_t depth) : world_(1) {
        world_.watcher = this;
        world_.laziness = 0;
        world_.event_limit = 20'000'000;
        constexpr Time kPicosecondsAByte = 80;
        for (int i = 0; i < 2; ++i) world_.add(std::size_t{1} << 16, true);
        for (const auto& [from, to] : {std::pair<net::Lid, net::Lid>{1, 2}, {2, 1}}) {
            world_.link(from, to).faults.loss = loss;
            world_.link(from, to).byte_time = kPicosecondsAByte;
        }
        from_ = add(0, mtu);
        Qp* to = add(1, mtu);
        from_->start();
        to->start();
        needed_ = std::uint64_t{kMessages} * (kMessage / mtu);
        for (std::uint32_t i = 0; i < depth; ++i) post();
    }

    /// "goodput/packets", or what went wrong.
    std::string run() {
        const Time start = world_.now();
        world_.run();
        if (world_.failed()) return world_.wrong();
        if (done_ != kMessages) return "broke";
        const std::uint64_t goodput = std::uint64_t{kMessages} * kMessage * 1000 / (finished_ - start);
        const std::uint64_t sent = from_->machine->counters().packets_sent * 100 / needed_;
        std::array<char, 40> text{};
        std::snprintf(text.data(), text.size(), "%llu/%llu.%02llu", static_cast<unsigned long long>(goodput),
                      static_cast<unsigned long long>(sent / 100),
                      static_cast<unsigned long long>(sent % 100));
        return text.data();
    }

    void sent(Qp& /*qp*/, const transport::Completion& completion) override {
        if (completion.status != transport::Status::kSuccess) return;
        ++done_;
        finished_ = world_.now();
        post();
    }
    void received(Qp& /*qp*/, const transport::Completion& /*completion*/) override {}

  private:
    Qp* add(std::size_t index, std::uint32_t mtu) {
        Adapter& adapter = world_.adapters[index];
        Qp* qp = adapter.add_qp(transport::Service::kRc, 0x11, adapter.add_receives(false, false));
        qp->sends.base = 0;
        transport::QpParameters& p = qp->parameters;
        p.mtu_bytes = mtu;
        p.dest_qp = 0x11;
        p.path.dlid = static_cast<net::Lid>(2 - index);
        p.access = ipc::kAccessRemoteWrite;
        p.timeout = 8;
        p.retry_count = p.rnr_retry = 7;
        return qp;
    }
    void post() {
        if (from_->sends.entries.size() == kMessages) return;
        transport::SendRequest& request = from_->sends.entries.emplace_back().request;
        request.wr_id = request.index = static_cast<std::uint32_t>(from_->sends.entries.size()) - 1;
        request.opcode = ipc::WorkOpcode::kRdmaWrite;
        request.flags = ipc::kWorkSignaled;
        request.length = kMessage;
        request.sge_count = 1;
        request.sge[0] = {Adapter::kBase, kMessage, world_.adapters[0].key()};
        request.rkey = world_.adapters[1].key();
        request.remote_address = Adapter::kBase;
    }

    World world_;
    Qp* from_ = nullptr;
    std::uint64_t needed_ = 0;
    std::uint32_t done_ = 0;
    Time finished_ = 0;
};

std::string table() {
    std::ostringstream out;
    out << "# What losses cost a reliable connection: 200 RDMA WRITEs of 4 KiB over a simulated link of 100 "
           "Gb/s (12500 MB/s),\n"
           "# 2 us each way, that loses packets and acknowledges with the chance at the head of the column. "
           "Local ACK\n"
           "# timeout 2.1 ms. In each field: goodput in MB/s (bytes delivered a simulated microsecond) / "
           "request packets\n"
           "# sent for each that a perfect link would need; \"broke\": retries ran out. One seed: neighbours "
           "may be out of order.\n"
           "# Made by loss_sweep_test; UIB_SIMULATION_WRITE_SWEEP=1 writes it anew.\n";
    const auto field = [&](const std::string& text) {
        out << text << std::string(text.size() < 13 ? 13 - text.size() : 1, ' ');
    };
    field("MTU");
    field("depth");
    for (const double loss : kLosses) {
        std::ostringstream percent;
        percent << loss * 100 << " %";
        field(percent.str());
    }
    for (const std::uint32_t mtu : kMtus) {
        for (const std::uint32_t depth : kDepths) {
            out << '\n';
            field(std::to_string(mtu));
            field(std::to_string(depth));
            for (const double loss : kLosses) field(Sweep(loss, mtu, depth).run());
        }
    }
    out << '\n';
    return out.str();
}

TEST(Simulation, goodput_against_loss_is_as_it_was) {
    const std::string now = table();
    if (std::getenv("UIB_SIMULATION_WRITE_SWEEP") != nullptr) {
        std::ofstream(UIB_SIMULATION_SWEEP_FILE) << now;
        return;
    }
    std::ifstream file(UIB_SIMULATION_SWEEP_FILE);
    std::ostringstream kept;
    kept << file.rdbuf();
    EXPECT_EQ(now, kept.str())
        << "if this is meant: UIB_SIMULATION_WRITE_SWEEP=1 simulation_test writes the file anew";
}

}  // namespace
}  // namespace uib::simulation
