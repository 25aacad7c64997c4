// The initiator's side: draws the cases, posts them, checks what comes back, and counts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>

#include "examples/uib_verify/pattern.h"
#include "examples/uib_verify/side.h"

namespace uib::verify {

namespace {

struct Tally {
    std::uint64_t cases = 0;
    std::uint64_t bytes = 0;
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
};

ibv_wr_opcode opcode_of(Operation operation) {
    switch (operation) {
        case Operation::kSend:
        case Operation::kUnreliableSend:
        case Operation::kDatagram:
            return IBV_WR_SEND;
        case Operation::kSendImmediate:
        case Operation::kUnreliableSendImmediate:
        case Operation::kDatagramImmediate:
            return IBV_WR_SEND_WITH_IMM;
        case Operation::kSendInvalidate:
            return IBV_WR_SEND_WITH_INV;
        case Operation::kWrite:
        case Operation::kWriteToWindow:
        case Operation::kUnreliableWrite:
            return IBV_WR_RDMA_WRITE;
        case Operation::kWriteImmediate:
        case Operation::kUnreliableWriteImmediate:
            return IBV_WR_RDMA_WRITE_WITH_IMM;
        case Operation::kRead:
            return IBV_WR_RDMA_READ;
        case Operation::kCompareSwap:
            return IBV_WR_ATOMIC_CMP_AND_SWP;
        case Operation::kFetchAdd:
            return IBV_WR_ATOMIC_FETCH_AND_ADD;
    }
    throw kit::Error("unknown operation");
}

class Initiator {
  public:
    Initiator(const Options& options, std::uint32_t slots, std::uint64_t slot_bytes,
              kit::SideChannel& channel)
        : channel_(channel),
          verbose_(options.verbose),
          side_(options, options.device, ~options.seed, slots, slot_bytes) {
        side_.connect(channel_);
    }

    Side& side() { return side_; }
    void run(const std::vector<Case>& batch);
    void run_counter(std::uint32_t queue_pairs);
    void end() { channel_.send(Command::kEnd); }
    void report(std::uint64_t seed, double seconds) const;

  private:
    void post(const Case& one, std::uint64_t id, std::uint32_t window_key);
    void check_case(const Case& one, std::uint64_t own, std::uint64_t theirs);

    kit::SideChannel& channel_;
    bool verbose_;
    Side side_;
    std::map<Operation, Tally> tally_;
    std::uint64_t counted_ = 0;
};

void Initiator::post(const Case& one, std::uint64_t id, std::uint32_t window_key) {
    const Traits& traits = traits_of(one.operation);
    ibv_sge pieces[kMaxPieces];
    for (std::uint32_t i = 0; i < one.initiator_count; ++i)
        pieces[i] = {side_.address_of(one.initiator[i].offset),
                     static_cast<std::uint32_t>(one.initiator[i].length), side_.lkey()};
    ibv_send_wr request{};
    request.wr_id = id;
    request.sg_list = pieces;
    request.num_sge = static_cast<int>(one.initiator_count);
    request.opcode = opcode_of(one.operation);
    request.send_flags = IBV_SEND_SIGNALED | (traits.uses_receive ? IBV_SEND_SOLICITED : 0);
    if (one.operation == Operation::kSendInvalidate)
        request.invalidate_rkey = window_key;
    else
        request.imm_data = one.immediate;
    const std::uint64_t remote =
        side_.peer().memory_address + (one.target_count == 0 ? one.target_slot : one.target[0].offset);
    const std::uint32_t rkey = one.operation == Operation::kWriteToWindow ? window_key : side_.peer().rkey;
    if (traits.atomic) {
        const bool swap = one.operation == Operation::kCompareSwap;
        request.wr.atomic = {remote, swap ? one.compare : one.operand, swap ? one.operand : 0, rkey};
    } else if (traits.service == Service::kDatagram) {
        request.wr.ud = {side_.datagram_path(one.queue_pair), side_.datagram_peer(one.queue_pair),
                         kit::kDatagramKey};
    } else if (!traits.fills_receive) {
        request.wr.rdma = {remote, rkey};
    }
    ibv_send_wr* bad = nullptr;
    kit::check(ibv_post_send(&side_.queue_pair(traits.service, one.queue_pair), &request, &bad),
               "ibv_post_send");
}

void Initiator::check_case(const Case& one, std::uint64_t own, std::uint64_t theirs) {
    const bool returned = writes_initiator(one.operation);
    const std::span<const Piece> pieces(one.initiator, one.initiator_count);
    side_.check_guards(one, one.initiator_slot, returned ? pieces : std::span<const Piece>{});
    if (traits_of(one.operation).atomic) {
        std::uint64_t old = 0;
        std::memcpy(&old, side_.bytes_of(one.initiator[0]).data(), sizeof old);
        if (old != pattern_word(~side_.seed(), one.target[0].offset / 8))
            throw kit::Error("an atomic brought a wrong old value: " + describe(one));
    } else if (own != theirs) {
        throw kit::Error("checksums differ: " + describe(one));
    }
    if (returned) side_.restore(pieces);
    Tally& tally = tally_[one.operation];
    ++tally.cases;
    tally.bytes += one.bytes;
    tally.least = std::min(tally.least, one.bytes);
    tally.most = std::max(tally.most, one.bytes);
}

void Initiator::run(const std::vector<Case>& batch) {
    channel_.send(Command::kBatch);
    channel_.send_all(batch);
    const auto keys = channel_.receive_all<std::uint32_t>();
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (verbose_) std::fprintf(stderr, "%s\n", describe(batch[i]).c_str());
        post(batch[i], i, keys.at(i));
        total += batch[i].bytes;
    }
    std::vector<bool> done(batch.size(), false);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const ibv_wc completion = side_.wait_completion(limit_for(total));
        if (completion.wr_id >= batch.size() || done[completion.wr_id])
            throw kit::Error("a completion with a wr_id that is not outstanding");
        done[completion.wr_id] = true;
    }
    std::vector<std::uint64_t> sums;
    sums.reserve(batch.size());
    for (const Case& one : batch) sums.push_back(side_.checksum({one.initiator, one.initiator_count}));
    channel_.send_all(sums);
    const auto theirs = channel_.receive_all<std::uint64_t>();
    for (std::size_t i = 0; i < batch.size(); ++i) check_case(batch[i], sums[i], theirs.at(i));
}

/// All reliable QPs add 1 to the same word at once: each old value must come back exactly once.
void Initiator::run_counter(std::uint32_t queue_pairs) {
    channel_.send(Command::kCounter);
    channel_.receive<Command>();
    const std::uint32_t adds = queue_pairs * kCounterAdds;
    for (std::uint32_t i = 0; i < adds; ++i) {
        ibv_sge piece = {side_.address_of(i * 8), 8, side_.lkey()};
        ibv_send_wr request{};
        request.wr_id = i;
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        request.send_flags = IBV_SEND_SIGNALED;
        request.wr.atomic = {side_.peer().memory_address, 1, 0, side_.peer().rkey};
        ibv_send_wr* bad = nullptr;
        kit::check(ibv_post_send(&side_.queue_pair(Service::kReliable, i % queue_pairs), &request, &bad),
                   "ibv_post_send");
    }
    std::vector<std::uint64_t> olds(adds);
    for (std::uint32_t i = 0; i < adds; ++i) side_.wait_completion(limit_for(0));
    std::memcpy(olds.data(), side_.bytes_of({0, adds * 8}).data(), adds * 8);
    std::sort(olds.begin(), olds.end());
    for (std::uint32_t i = 0; i < adds; ++i)
        if (olds[i] != pattern_word(~side_.seed(), 0) + i)
            throw kit::Error("concurrent fetch-and-adds lost or doubled one");
    const Piece used{0, adds * 8};
    side_.restore({&used, 1});
    channel_.send(Command::kCounter);
    channel_.receive<Command>();
    counted_ += adds;
}

void Initiator::report(std::uint64_t seed, double seconds) const {
    std::uint64_t cases = 0;
    std::uint64_t bytes = 0;
    std::printf("%-26s %9s %16s %10s %12s\n", "operation", "cases", "bytes", "smallest", "largest");
    for (const auto& [operation, tally] : tally_) {
        std::printf(
            "%-26s %9llu %16llu %10llu %12llu\n", traits_of(operation).name,
            static_cast<unsigned long long>(tally.cases), static_cast<unsigned long long>(tally.bytes),
            static_cast<unsigned long long>(tally.least), static_cast<unsigned long long>(tally.most));
        cases += tally.cases;
        bytes += tally.bytes;
    }
    if (counted_ != 0)
        std::printf("%-26s %9llu\n", "concurrent fetch-and-adds", static_cast<unsigned long long>(counted_));
    std::printf(
        "uib_verify: %llu cases, %llu bytes verified with checksums and guard bytes, seed %llu, %.1f s\n",
        static_cast<unsigned long long>(cases), static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(seed), seconds);
}

Limits limits_of(Side& side, const Options& options, std::uint32_t slots, std::uint64_t slot_bytes) {
    const std::uint32_t mtu = std::min(side.own().datagram_bytes, side.peer().datagram_bytes);
    return {slot_bytes, slots,        std::min(side.own().pieces, side.peer().pieces),
            mtu,        options.seed, side.own().windows != 0 && side.peer().windows != 0};
}

void run_large(Initiator& initiator, Plan& plan) {
    constexpr std::uint64_t kLargest = std::uint64_t{1} << 31;
    for (const Operation operation : plan.operations()) {
        const Traits& traits = traits_of(operation);
        if (traits.atomic || traits.service == Service::kDatagram) continue;
        for (const std::uint64_t bytes : {kLargest, kLargest - 1, (kLargest >> 1) + 4097})
            initiator.run(plan.single(operation, bytes));
    }
}

}  // namespace

void run_initiator(const Options& options, kit::SideChannel& channel) {
    const auto started = std::chrono::steady_clock::now();
    const std::uint64_t slot_bytes = slot_for(options.max_bytes);
    Initiator initiator(options, options.in_flight, slot_bytes, channel);
    Plan plan(options, limits_of(initiator.side(), options, options.in_flight, slot_bytes));
    if (options.large) {
        run_large(initiator, plan);
    } else {
        for (std::uint32_t round = 0; round < options.rounds; ++round) initiator.run(plan.next_batch());
        if (options.only.empty()) initiator.run_counter(options.queue_pairs);
    }
    initiator.end();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    initiator.report(options.seed, seconds.count());
}

}  // namespace uib::verify
