// What losses cost a reliable connection, as a table that is kept in loss_sweep.txt and must not change
// unseen.
//
// One queue pair writes messages of 4 KiB to another over a link of 100 Gb/s and 2 us each way that loses
// packets in both directions; a client keeps `depth` messages under way. UIB_SIMULATION_WRITE_SWEEP=1 writes
// the file anew.
#include <gtest/gtest.h>

#include <algorithm>
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

struct Work {
    const char* name;
    ipc::WorkOpcode opcode;
};
constexpr std::array kWorks = {Work{"WRITE", ipc::WorkOpcode::kRdmaWrite},
                               Work{"READ", ipc::WorkOpcode::kRdmaRead},
                               Work{"SEND", ipc::WorkOpcode::kSend}};
/// A receiver of SENDs has so many receives posted, and takes so long to post one again.
constexpr std::uint32_t kReceives = 8;
constexpr Time kRepostTime = 20'000;

/// Two ends; a new message whenever one has completed.
class Sweep final : public Watcher {
  public:
    Sweep(ipc::WorkOpcode opcode, double loss, std::uint32_t mtu, std::uint32_t depth)
        : world_(1), opcode_(opcode) {
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
        for (std::uint32_t i = 0; i < kReceives; ++i) to->receives->post({{0, kMessage}});
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
        const std::uint64_t sent = packets() * 100 / needed_;
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
    void received(Qp& qp, const transport::Completion& /*completion*/) override {
        world_.at(world_.now() + kRepostTime, [&qp] { qp.receives->post({{0, kMessage}}); });
    }

  private:
    Qp* add(std::size_t index, std::uint32_t mtu) {
        Adapter& adapter = world_.adapters[index];
        Qp* qp = adapter.add_qp(transport::Service::kRc, 0x11, adapter.add_receives(false, false));
        qp->sends.base = 0;
        transport::QpParameters& p = qp->parameters;
        p.mtu_bytes = mtu;
        p.dest_qp = 0x11;
        p.path.dlid = static_cast<net::Lid>(2 - index);
        p.access = ipc::kAccessRemoteWrite | ipc::kAccessRemoteRead;
        p.max_rd_atomic = p.max_dest_rd_atomic = 16;
        p.min_rnr_timer = 1;
        p.timeout = 8;
        p.retry_count = p.rnr_retry = 7;
        return qp;
    }
    /// Those that carry the data.
    [[nodiscard]] std::uint64_t packets() const {
        const Qp& source = opcode_ == ipc::WorkOpcode::kRdmaRead ? world_.adapters[1].qps.front() : *from_;
        return source.machine->counters().packets_sent;
    }
    void post() {
        if (from_->sends.entries.size() == kMessages) return;
        transport::SendRequest& request = from_->sends.entries.emplace_back().request;
        request.wr_id = request.index = static_cast<std::uint32_t>(from_->sends.entries.size()) - 1;
        request.opcode = opcode_;
        request.flags = ipc::kWorkSignaled;
        request.length = kMessage;
        request.sge_count = 1;
        request.sge[0] = {Adapter::kBase, kMessage, world_.adapters[0].key()};
        request.rkey = world_.adapters[1].key();
        request.remote_address = Adapter::kBase;
    }

    World world_;
    ipc::WorkOpcode opcode_;
    Qp* from_ = nullptr;
    std::uint64_t needed_ = 0;
    std::uint32_t done_ = 0;
    Time finished_ = 0;
};

constexpr const char* kHead =
    "# What losses cost a reliable connection: 200 messages of 4 KiB over a simulated link of 100 Gb/s "
    "(12500 MB/s), 2 us\n"
    "# each way, that loses packets both ways with the chance at the head of the column; `depth` messages "
    "are under way.\n"
    "# Local ACK timeout 2.1 ms. READs: at most 16 at a time. SENDs: to a receiver with 8 receives that "
    "needs 20 us to post\n"
    "# one again (so at most 1638 MB/s), RNR timer 10 us. In each field: goodput in MB/s (bytes delivered a "
    "simulated\n"
    "# microsecond) / packets that the side with the data sent for each that a perfect link would need; "
    "\"broke\": retries\n"
    "# ran out. It is one seed: neighbours may be out of order. UIB_SIMULATION_WRITE_SWEEP=1 simulation_test "
    "writes it anew.\n";

std::string table() {
    std::ostringstream out;
    out << kHead;
    const auto field = [&](const std::string& text) {
        constexpr std::size_t kWidth = 12;
        out << std::string(kWidth - std::min(kWidth - 1, text.size()), ' ') << text;
    };
    for (const char* head : {"work", "MTU", "depth"}) field(head);
    for (const double loss : kLosses) {
        std::ostringstream percent;
        percent << loss * 100 << " %";
        field(percent.str());
    }
    for (const Work& work : kWorks) {
        for (const std::uint32_t mtu : kMtus) {
            for (const std::uint32_t depth : kDepths) {
                out << '\n';
                field(work.name);
                field(std::to_string(mtu));
                field(std::to_string(depth));
                for (const double loss : kLosses) field(Sweep(work.opcode, loss, mtu, depth).run());
            }
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
