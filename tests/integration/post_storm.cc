// A client that posts as fast as it can: the victim of the kill tests, and the witness of an engine's death.
//
// One process, two contexts, some RC QPs between them that send, write, read and do atomics in bulk while
// regions, QPs and completion queues come and go. Prints "ready" when it starts. Without --until-fatal it
// runs until it is killed. With it, it waits for the device-fatal event of both contexts, then demands that
// every outstanding request is flushed, that posting and destroying still return, and exits with 0. Whatever
// else goes wrong ends it with 1. --seconds N ends a run in good order.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "examples/kit/memory.h"
#include "examples/kit/verbs.h"

namespace {

using Clock = std::chrono::steady_clock;
using namespace uib::kit;

constexpr std::uint32_t kPairs = 4;
constexpr std::uint32_t kDepth = 64;
constexpr std::size_t kBytes = std::size_t{1} << 20;

struct End {
    explicit End(const std::string& device)
        : context(open_device(device)),
          pd(make_pd(*context)),
          channel(make_channel(*context)),
          cq(make_cq(*context, 4 * kPairs * kDepth, channel.get())),
          memory(MemoryKind::kPrivate, kBytes),
          region(register_memory(*pd, memory.data(), memory.size(), kAllAccess)) {
        QueueSizes sizes{kDepth, kDepth, 1, 1, 64};
        for (std::uint32_t i = 0; i < kPairs; ++i)
            queue_pairs.push_back(make_qp(*pd, *cq, IBV_QPT_RC, sizes));
        ::fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
    }

    /// Whether the device-fatal event has come.
    bool take_events() {
        ibv_async_event event{};
        while (ibv_get_async_event(context.get(), &event) == 0) {
            if (event.event_type == IBV_EVENT_DEVICE_FATAL) fatal = true;
            ibv_ack_async_event(&event);
        }
        return fatal;
    }

    Context context;
    ProtectionDomain pd;
    Channel channel;
    CompletionQueue cq;
    Buffer memory;
    Region region;
    std::vector<QueuePair> queue_pairs;
    std::uint64_t posted = 0;     ///< signaled requests and receives
    std::uint64_t completed = 0;  ///< and their completions
    std::uint64_t flushed = 0;    ///< of them, those with an error
    bool fatal = false;
};

class Storm {
  public:
    Storm(const std::string& first, const std::string& second, unsigned seed)
        : a_(first), b_(second), random_(seed) {
        for (std::uint32_t i = 0; i < kPairs; ++i) {
            const Address here = address_of(*a_.queue_pairs[i], 1);
            const Address there = address_of(*b_.queue_pairs[i], 1);
            connect_qp(*a_.queue_pairs[i], here, there, kAllAccess);
            connect_qp(*b_.queue_pairs[i], there, here, kAllAccess);
        }
    }

    /// One burst and what completed meanwhile.
    void turn() {
        const std::uint32_t pair = random_() % kPairs;
        for (int i = 0; i < 8; ++i) post(pair);
        poll(a_);
        poll(b_);
        if (random_() % 64 == 0) churn();
    }

    bool saw_fatal() {
        const bool first = a_.take_events();
        return b_.take_events() && first;
    }

    /// After the fatal event: all that is outstanding is flushed, and calls still return.
    void expect_flushed() {
        const auto end = Clock::now() + std::chrono::seconds(5);
        while (a_.completed < a_.posted || b_.completed < b_.posted) {
            poll(a_);
            poll(b_);
            if (Clock::now() > end)
                throw Error("after the fatal event " +
                            std::to_string(a_.posted - a_.completed + b_.posted - b_.completed) +
                            " requests were not flushed");
        }
        post(0);
        const std::uint64_t flushed = a_.flushed + b_.flushed;
        std::printf("device fatal on both contexts, %llu requests flushed\n",
                    static_cast<unsigned long long>(flushed));
    }

    bool failed() const { return a_.flushed + b_.flushed != 0; }

  private:
    void post(std::uint32_t pair) {
        static constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                                     IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM};
        static constexpr std::uint32_t kSizes[] = {8, 100, 4096, 65536, 300000};
        const ibv_wr_opcode opcode = kOpcodes[random_() % std::size(kOpcodes)];
        const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
        if (opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            ibv_sge piece{address(b_), kBytes, b_.region->lkey};
            ibv_recv_wr receive{};
            receive.sg_list = &piece;
            receive.num_sge = 1;
            ibv_recv_wr* bad = nullptr;
            // A full queue refuses: then there are receives enough.
            if (ibv_post_recv(b_.queue_pairs[pair].get(), &receive, &bad) == 0) ++b_.posted;
        }
        ibv_sge piece{address(a_), atomic ? 8 : kSizes[random_() % std::size(kSizes)], a_.region->lkey};
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = opcode;
        request.send_flags = IBV_SEND_SIGNALED;
        if (atomic)
            request.wr.atomic = {address(b_), 1, 0, b_.region->rkey};
        else if (opcode != IBV_WR_SEND)
            request.wr.rdma = {address(b_), b_.region->rkey};
        ibv_send_wr* bad = nullptr;
        if (ibv_post_send(a_.queue_pairs[pair].get(), &request, &bad) == 0) ++a_.posted;
    }

    static std::uint64_t address(const End& end) {
        return reinterpret_cast<std::uintptr_t>(end.memory.data());
    }

    void poll(End& end) {
        ibv_wc completions[32];
        const int count = ibv_poll_cq(end.cq.get(), 32, completions);
        if (count < 0) throw Error("ibv_poll_cq failed");
        end.completed += static_cast<std::uint64_t>(count);
        for (int i = 0; i < count; ++i) end.flushed += completions[i].status != IBV_WC_SUCCESS ? 1 : 0;
    }

    /// Objects that come and go beside the traffic. A device that has just died may refuse them.
    void churn() {
        try {
            const ProtectionDomain pd = make_pd(*a_.context);
            const Region region = register_memory(*pd, a_.memory.data(), kBytes / 2, kAllAccess);
            const CompletionQueue cq = make_cq(*a_.context, 16);
            const QueuePair qp = make_qp(*pd, *cq, IBV_QPT_UD, QueueSizes{});
        } catch (const Error&) {
            ++refused_;
        }
    }

    End a_;
    End b_;
    std::mt19937 random_;
    std::uint64_t refused_ = 0;
};

int run(const std::string& first, const std::string& second, bool until_fatal, double seconds,
        unsigned seed) {
    Storm storm(first, second, seed);
    std::printf("ready\n");
    std::fflush(stdout);
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    auto error_since = Clock::time_point::max();
    while (seconds <= 0 || Clock::now() < end) {
        storm.turn();
        if (until_fatal && storm.saw_fatal()) {
            storm.expect_flushed();
            return 0;
        }
        if (!storm.failed()) continue;
        if (!until_fatal) throw Error("a completion with an error");
        if (error_since == Clock::time_point::max()) error_since = Clock::now();
        if (Clock::now() - error_since > std::chrono::seconds(5))
            throw Error("flushed work, but no fatal event in 5 s");
    }
    return until_fatal ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::string first;
    std::string second;
    bool until_fatal = false;
    double seconds = 0;
    unsigned seed = 1;
    for (int i = 1; i < argc; ++i) {
        const bool more = i + 1 < argc;
        if (std::strcmp(argv[i], "--until-fatal") == 0)
            until_fatal = true;
        else if (std::strcmp(argv[i], "--device") == 0 && more)
            first = argv[++i];
        else if (std::strcmp(argv[i], "--peer-device") == 0 && more)
            second = argv[++i];
        else if (std::strcmp(argv[i], "--seconds") == 0 && more)
            seconds = std::atof(argv[++i]);
        else if (std::strcmp(argv[i], "--seed") == 0 && more)
            seed = static_cast<unsigned>(std::atoi(argv[++i]));
        else {
            std::fprintf(stderr,
                         "usage: post_storm [--device D] [--peer-device D] [--until-fatal] [--seconds N] "
                         "[--seed N]\n");
            return 2;
        }
    }
    try {
        return run(first, second, until_fatal, seconds, seed);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "post_storm: %s\n", error.what());
        return 1;
    }
}
