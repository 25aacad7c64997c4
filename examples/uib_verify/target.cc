// The target's side: posts what each case needs, checks what arrived and that nothing else was touched.
#include <chrono>
#include <cstring>
#include <thread>

#include "examples/uib_verify/pattern.h"
#include "examples/uib_verify/side.h"

namespace uib::verify {

namespace {

class Target {
  public:
    Target(const Options& options, kit::SideChannel& channel)
        : channel_(channel),
          queue_pairs_(options.queue_pairs),
          side_(options, options.peer_device, options.seed, options.in_flight, slot_for(options.max_bytes)) {
        side_.connect(channel_);
    }

    void run_batch();
    void run_counter();

  private:
    void post_receive(const Case& one, std::uint64_t id);
    std::uint32_t bind_window(const Case& one);
    void take_receives(const std::vector<Case>& batch, const std::vector<std::uint32_t>& keys);
    void check_receive(const Case& one, const ibv_wc& completion, std::uint32_t key) const;
    std::vector<Piece> touched(const Case& one) const;
    std::uint64_t settle(const Case& one, std::uint64_t theirs);
    void check_atomic(const Case& one) const;

    kit::SideChannel& channel_;
    std::uint32_t queue_pairs_;
    Side side_;
    std::vector<kit::Window> windows_;
};

void Target::post_receive(const Case& one, std::uint64_t id) {
    const Traits& traits = traits_of(one.operation);
    ibv_sge pieces[kMaxPieces + 1];
    int count = 0;
    if (traits.service == Service::kDatagram)
        pieces[count++] = side_.grh_entry(static_cast<std::uint32_t>(id));
    for (std::uint32_t i = 0; traits.fills_receive && i < one.target_count; ++i)
        pieces[count++] = {side_.address_of(one.target[i].offset),
                           static_cast<std::uint32_t>(one.target[i].length), side_.lkey()};
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = pieces;
    request.num_sge = count;
    ibv_recv_wr* bad = nullptr;
    kit::check(ibv_post_recv(&side_.queue_pair(traits.service, one.queue_pair), &request, &bad),
               "ibv_post_recv");
}

/// A type 2 window over the case's slot on the QP that the case will come in by; returns its R_Key.
std::uint32_t Target::bind_window(const Case& one) {
    kit::Window window(ibv_alloc_mw(&side_.pd(), IBV_MW_TYPE_2));
    if (!window) kit::fail("ibv_alloc_mw", errno);
    ibv_send_wr request{};
    request.opcode = IBV_WR_BIND_MW;
    request.send_flags = IBV_SEND_SIGNALED;
    request.bind_mw.mw = window.get();
    request.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    request.bind_mw.bind_info = {&side_.region(), side_.address_of(one.target_slot), one.slot_bytes,
                                 IBV_ACCESS_REMOTE_WRITE};
    const std::uint32_t key = request.bind_mw.rkey;
    ibv_send_wr* bad = nullptr;
    kit::check(ibv_post_send(&side_.queue_pair(Service::kReliable, one.queue_pair), &request, &bad),
               "ibv_post_send");
    if (side_.wait_completion(limit_for(0)).opcode != IBV_WC_BIND_MW)
        throw kit::Error("a bind completed as something else");
    windows_.push_back(std::move(window));
    return key;
}

void Target::check_receive(const Case& one, const ibv_wc& completion, std::uint32_t key) const {
    const Traits& traits = traits_of(one.operation);
    const std::uint64_t expected = one.bytes + (traits.service == Service::kDatagram ? kGrhBytes : 0);
    // byte_len has 32 bits: 2^31 fits.
    if (completion.byte_len != expected)
        throw kit::Error("byte_len is " + std::to_string(completion.byte_len) + ": " + describe(one));
    if (completion.opcode != (traits.fills_receive ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
        throw kit::Error("a receive completed with opcode " + std::to_string(completion.opcode) + ": " +
                         describe(one));
    const bool immediate = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
    const bool invalidated = (completion.wc_flags & IBV_WC_WITH_INV) != 0;
    if (immediate != traits.has_immediate || (immediate && completion.imm_data != one.immediate))
        throw kit::Error("immediate data is wrong: " + describe(one));
    if (invalidated != (one.operation == Operation::kSendInvalidate) ||
        (invalidated && completion.invalidated_rkey != key))
        throw kit::Error("the invalidated R_Key is wrong: " + describe(one));
    if (completion.qp_num != side_.queue_pair(traits.service, one.queue_pair).qp_num)
        throw kit::Error("a completion names the wrong QP: " + describe(one));
}

void Target::take_receives(const std::vector<Case>& batch, const std::vector<std::uint32_t>& keys) {
    std::size_t expected = 0;
    std::uint64_t bytes = 0;
    for (const Case& one : batch) {
        expected += traits_of(one.operation).uses_receive ? 1 : 0;
        bytes += one.bytes;
    }
    std::vector<bool> done(batch.size(), false);
    for (; expected != 0; --expected) {
        const ibv_wc completion = side_.wait_completion(limit_for(bytes));
        if (completion.wr_id >= batch.size() || done[completion.wr_id])
            throw kit::Error("a receive completion with a wr_id that is not outstanding");
        done[completion.wr_id] = true;
        check_receive(batch[completion.wr_id], completion, keys[completion.wr_id]);
    }
}

/// What the case was to write at the target (READ: to read).
std::vector<Piece> Target::touched(const Case& one) const {
    return first_bytes({one.target, one.target_count}, one.bytes);
}

/// The checksum of what arrived. An unreliable WRITE tells the target nothing when it has arrived: waits for
/// it.
std::uint64_t Target::settle(const Case& one, std::uint64_t theirs) {
    const std::vector<Piece> pieces = touched(one);
    std::uint64_t sum = side_.checksum(pieces);
    if (one.operation != Operation::kUnreliableWrite) return sum;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_for(one.bytes));
    while (sum != theirs && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        sum = side_.checksum(pieces);
    }
    return sum;
}

void Target::check_atomic(const Case& one) const {
    std::uint64_t now = 0;
    std::memcpy(&now, side_.bytes_of({one.target[0].offset, 8}).data(), sizeof now);
    const std::uint64_t before = pattern_word(side_.seed(), one.target[0].offset / 8);
    std::uint64_t expected = before + one.operand;
    if (one.operation == Operation::kCompareSwap) expected = one.compare == before ? one.operand : before;
    if (now != expected) throw kit::Error("an atomic left a wrong value: " + describe(one));
}

void Target::run_batch() {
    const auto batch = channel_.receive_all<Case>();
    std::vector<std::uint32_t> keys(batch.size(), 0);
    for (std::size_t i = 0; i < batch.size(); ++i)
        if (traits_of(batch[i].operation).uses_window) keys[i] = bind_window(batch[i]);
    for (std::size_t i = 0; i < batch.size(); ++i)
        if (traits_of(batch[i].operation).uses_receive) post_receive(batch[i], i);
    channel_.send_all(keys);
    const auto theirs = channel_.receive_all<std::uint64_t>();
    take_receives(batch, keys);
    std::vector<std::uint64_t> sums;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const Case& one = batch[i];
        sums.push_back(settle(one, theirs.at(i)));
        const std::vector<Piece> pieces = touched(one);
        if (traits_of(one.operation).atomic)
            check_atomic(one);
        else if (sums.back() != theirs[i])
            throw kit::Error("checksums differ: " + describe(one));
        side_.check_guards(one, one.target_slot, pieces);
    }
    channel_.send_all(sums);
    for (const Case& one : batch)
        if (one.operation != Operation::kRead) side_.restore(touched(one));
    windows_.clear();
}

void Target::run_counter() {
    channel_.send(Command::kCounter);
    channel_.receive<Command>();
    std::uint64_t now = 0;
    std::memcpy(&now, side_.bytes_of({0, 8}).data(), sizeof now);
    if (now != pattern_word(side_.seed(), 0) + queue_pairs_ * kCounterAdds)
        throw kit::Error("the word of the concurrent fetch-and-adds has a wrong sum");
    const Piece word{0, 8};
    side_.restore({&word, 1});
    channel_.send(Command::kCounter);
}

}  // namespace

void run_target(const Options& options, kit::SideChannel& channel) {
    Target target(options, channel);
    while (true) {
        switch (channel.receive<Command>()) {
            case Command::kBatch:
                target.run_batch();
                break;
            case Command::kCounter:
                target.run_counter();
                break;
            case Command::kEnd:
                return;
        }
    }
}

}  // namespace uib::verify
