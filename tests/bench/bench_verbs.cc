// Figures that perftest does not give, over plain libibverbs between two devices (UIB_BENCH_DEVICE and
// UIB_BENCH_PEER, else the first one twice). One "name value unit" a line.
//
//   bench_verbs bandwidth write|read|send BYTES private|shared   GB/s, two processes, memory of that kind on
//   both sides bench_verbs idle N                                            messages a second of 16 busy
//   QPs, alone and beside N idle ones bench_verbs create N                                          QPs a
//   second from creation to RTS bench_verbs hold N                                            makes N idle
//   QPs, prints "ready", holds them until stdin ends
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "examples/kit/memory.h"
#include "examples/kit/side_channel.h"
#include "examples/kit/verbs.h"

namespace {

using Clock = std::chrono::steady_clock;
using namespace uib::kit;

constexpr std::uint32_t kBusy = 16;
constexpr std::uint32_t kDepth = 64;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string name_of(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
}
std::string first_device() {
    return name_of("UIB_BENCH_DEVICE");
}
std::string second_device() {
    return name_of("UIB_BENCH_PEER");
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct End {
    End(const std::string& device, MemoryKind kind, std::size_t bytes, int entries)
        : context(open_device(device)),
          pd(make_pd(*context)),
          cq(make_cq(*context, entries)),
          memory(kind, bytes),
          region(register_memory(*pd, memory.data(), bytes, kAllAccess)) {
        std::memset(memory.data(), 1, bytes);
    }
    ibv_sge all() const {
        return {reinterpret_cast<std::uintptr_t>(memory.data()), static_cast<std::uint32_t>(memory.size()),
                region->lkey};
    }

    Context context;
    ProtectionDomain pd;
    CompletionQueue cq;
    Buffer memory;
    Region region;
};

/// Takes completions; returns how many. Throws on one that failed.
int take(ibv_cq& cq) {
    ibv_wc completions[32];
    const int count = ibv_poll_cq(&cq, 32, completions);
    if (count < 0) throw Error("ibv_poll_cq failed");
    for (int i = 0; i < count; ++i)
        if (completions[i].status != IBV_WC_SUCCESS) throw Error(ibv_wc_status_str(completions[i].status));
    return count;
}

struct Peer {
    Address address;
    std::uint64_t memory;
    std::uint32_t rkey;
    std::uint32_t reserved;
};

Peer introduce(const End& end, ibv_qp& qp) {
    return {address_of(qp, 1), reinterpret_cast<std::uintptr_t>(end.memory.data()), end.region->rkey, 0};
}

void post_receive(ibv_qp& qp, ibv_sge piece) {
    ibv_recv_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(&qp, &request, &bad), "ibv_post_recv");
}

void post(ibv_qp& qp, ibv_wr_opcode opcode, ibv_sge piece, const Peer& peer) {
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {peer.memory, peer.rkey};
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(&qp, &request, &bad), "ibv_post_send");
}

/// The passive side: receives for SENDs, and waits for the end of the run.
void serve(SideChannel& channel, ibv_wr_opcode opcode, std::size_t bytes, MemoryKind kind,
           std::uint64_t messages) {
    const End end(second_device(), kind, bytes, 2 * kDepth);
    QueueSizes sizes{kDepth, 2 * kDepth, 1, 1, 0};
    const QueuePair qp = make_qp(*end.pd, *end.cq, IBV_QPT_RC, sizes);
    const Peer own = introduce(end, *qp);
    channel.send(own);
    const Peer peer = channel.receive<Peer>();
    connect_qp(*qp, own.address, peer.address, kAllAccess);
    std::uint64_t posted = 0;
    if (opcode == IBV_WR_SEND)
        for (; posted < std::min<std::uint64_t>(2 * kDepth, messages); ++posted) post_receive(*qp, end.all());
    channel.send(1);
    if (opcode == IBV_WR_SEND) {
        for (std::uint64_t received = 0; received < messages;) {
            const int count = take(*end.cq);
            received += static_cast<std::uint64_t>(count);
            for (int i = 0; i < count && posted < messages; ++i, ++posted) post_receive(*qp, end.all());
        }
    }
    channel.receive<int>();
}

double drive(SideChannel& channel, ibv_wr_opcode opcode, std::size_t bytes, MemoryKind kind,
             std::uint64_t messages) {
    const End end(first_device(), kind, bytes, 2 * kDepth);
    const QueuePair qp = make_qp(*end.pd, *end.cq, IBV_QPT_RC, QueueSizes{kDepth, 1, 1, 1, 0});
    const Peer own = introduce(end, *qp);
    const Peer peer = channel.receive<Peer>();
    channel.send(own);
    connect_qp(*qp, own.address, peer.address, kAllAccess);
    channel.receive<int>();
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    std::uint64_t counted_from = 0;
    const std::uint64_t warm_up = messages / 10;
    auto start = Clock::now();
    while (completed < messages) {
        while (posted < messages && posted - completed < kDepth) {
            post(*qp, opcode, end.all(), peer);
            ++posted;
        }
        const bool warm = completed >= warm_up;
        completed += static_cast<std::uint64_t>(take(*end.cq));
        if (!warm && completed >= warm_up) {
            start = Clock::now();
            counted_from = completed;
        }
    }
    const double rate = static_cast<double>((completed - counted_from) * bytes) / since(start) / 1e9;
    channel.send(1);
    return rate;
}

void bandwidth(const std::string& operation, std::size_t bytes, const std::string& memory) {
    const MemoryKind kind = memory_kind(memory);
    const ibv_wr_opcode opcode = operation == "write"  ? IBV_WR_RDMA_WRITE
                                 : operation == "read" ? IBV_WR_RDMA_READ
                                                       : IBV_WR_SEND;
    const std::uint64_t messages = std::max<std::uint64_t>(200, (std::uint64_t{4} << 30) / bytes);
    std::vector<double> rates;
    for (int i = 0; i < 5; ++i) {
        auto [mine, theirs] = SideChannel::make_pair(60);
        const pid_t child = ::fork();
        if (child < 0) fail("fork", errno);
        if (child == 0) {
            int status = 0;
            try {
                { const SideChannel not_mine = std::move(mine); }
                serve(theirs, opcode, bytes, kind, messages);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "bench_verbs, passive side: %s\n", error.what());
                status = 1;
            }
            ::_exit(status);
        }
        { const SideChannel not_mine = std::move(theirs); }
        rates.push_back(drive(mine, opcode, bytes, kind, messages));
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status != 0) throw Error("the passive side failed");
    }
    std::printf("%s_%s_%zuk %.3f GB/s\n", memory.c_str(), operation.c_str(), bytes >> 10, median(rates));
}

/// QPs in connected pairs between two ends of this process.
std::vector<QueuePair> connected(const End& a, const End& b, std::uint32_t count, const QueueSizes& sizes) {
    std::vector<QueuePair> made;
    for (std::uint32_t i = 0; i < count; i += 2) {
        made.push_back(make_qp(*a.pd, *a.cq, IBV_QPT_RC, sizes));
        made.push_back(make_qp(*b.pd, *b.cq, IBV_QPT_RC, sizes));
        ibv_qp& first = *made[i];
        ibv_qp& second = *made[i + 1];
        const Address here = address_of(first, 1);
        const Address there = address_of(second, 1);
        connect_qp(first, here, there, kAllAccess);
        connect_qp(second, there, here, kAllAccess);
    }
    return made;
}

double busy_rate(const End& a, const End& b, const std::vector<QueuePair>& busy, double seconds) {
    const Peer peer{{}, reinterpret_cast<std::uintptr_t>(b.memory.data()), b.region->rkey, 0};
    ibv_sge piece = a.all();
    piece.length = 64;
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    const auto start = Clock::now();
    while (since(start) < seconds) {
        // As many again as have completed, in turns over the busy QPs of this side.
        for (; posted - completed < kBusy * kDepth / 2; ++posted)
            post(*busy[posted % kBusy * 2], IBV_WR_RDMA_WRITE, piece, peer);
        completed += static_cast<std::uint64_t>(take(*a.cq));
    }
    const double rate = static_cast<double>(completed) / since(start);
    while (completed < posted) completed += static_cast<std::uint64_t>(take(*a.cq));
    return rate;
}

void idle(std::uint32_t count) {
    const End a(first_device(), MemoryKind::kPrivate, 4096, static_cast<int>(kBusy * kDepth * 2));
    const End b(second_device(), MemoryKind::kPrivate, 4096, 16);
    const auto busy = connected(a, b, 2 * kBusy, QueueSizes{kDepth, 1, 1, 1, 0});
    std::vector<double> alone;
    std::vector<double> beside;
    busy_rate(a, b, busy, 0.5);
    for (int round = 0; round < 3; ++round) {
        alone.push_back(busy_rate(a, b, busy, 1.0));
        const auto sleeping = connected(a, b, count, QueueSizes{8, 8, 1, 1, 0});
        busy_rate(a, b, busy, 0.2);
        beside.push_back(busy_rate(a, b, busy, 1.0));
    }
    std::printf("busy_alone %.0f 1/s\nbusy_beside_idle %.0f 1/s\n", median(alone), median(beside));
}

void create(std::uint32_t count) {
    const End a(first_device(), MemoryKind::kPrivate, 4096, 64);
    const End b(second_device(), MemoryKind::kPrivate, 4096, 64);
    std::vector<double> rates;
    for (int round = 0; round < 5; ++round) {
        const auto start = Clock::now();
        const auto made = connected(a, b, count, QueueSizes{16, 16, 1, 1, 0});
        rates.push_back(count / since(start));
    }
    std::printf("qp_create_to_rts %.0f 1/s\n", median(rates));
}

void hold(std::uint32_t count) {
    const End a(first_device(), MemoryKind::kPrivate, 4096, 64);
    const End b(second_device(), MemoryKind::kPrivate, 4096, 64);
    const auto made = connected(a, b, count, QueueSizes{1, 1, 1, 1, 0});
    std::printf("ready\n");
    std::fflush(stdout);
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

int run(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 0)); };
    if (what == "bandwidth" && argc == 5)
        bandwidth(argv[2], number(3), argv[4]);
    else if (what == "idle" && argc == 3)
        idle(number(2));
    else if (what == "create" && argc == 3)
        create(number(2));
    else if (what == "hold" && argc == 3)
        hold(number(2));
    else {
        std::fprintf(stderr,
                     "usage: bench_verbs bandwidth write|read|send BYTES private|shared | idle N | create N "
                     "| hold N\n");
        return 2;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_verbs: %s\n", error.what());
        return 1;
    }
}
