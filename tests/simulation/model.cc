#include "tests/simulation/model.h"

#include <algorithm>
#include <cstring>

#include "engine/transport/opcodes.h"
#include "engine/transport/send_window.h"

namespace uib::simulation {

using ipc::WorkOpcode;
using transport::Status;
using transport::testing::Work;

namespace {

constexpr std::uint32_t kGuard = 16;
constexpr std::byte kGuardByte{0xA5};
constexpr std::uint32_t kLargest = 20'000;

bool guarded(Station& station, std::uint64_t at) {
    return std::all_of(station.at(at), station.at(at) + kGuard, [](std::byte b) { return b == kGuardByte; });
}

}  // namespace

Direction::Direction(World& world, Station& from, Station& to, std::uint64_t base, bool reliable)
    : world_(world),
      from_(from),
      to_(to),
      base_(base),
      reliable_(reliable),
      next_local_(base),
      next_remote_(base + 64 + kSharedBytes) {
    // This direction uses [base, base + share / 2) as sources and READ targets at `from`, and the other half
    // of `to`'s share as its targets; the other direction has the other share.
    std::memset(from.at(base), static_cast<int>(kGuardByte), kShare);
    std::memset(to.at(base), static_cast<int>(kGuardByte), kShare);
    std::memset(to.at(base), 0, 64 + kSharedBytes);
}

// A piece of memory with guards around it.
std::uint64_t Direction::take(std::uint64_t& next, std::uint32_t length) {
    const std::uint64_t at = (next + kGuard + 7) / 8 * 8;
    next = at + length + kGuard;
    return at;
}

void Direction::trickle() {
    if (late_.empty()) return;
    to_.receive_queue.posted.push_back(late_.front());
    late_.pop_front();
}

void Direction::post(unsigned count, bool late) {
    posts_late_ = late;
    while (!late && !late_.empty()) trickle();
    for (unsigned i = 0; i < count; ++i) {
        if (std::max(next_local_, next_remote_) + 2 * kLargest > base_ + kShare) return;
        post_one();
    }
}

void Direction::post_one() {
    constexpr WorkOpcode kReliable[] = {WorkOpcode::kSend,        WorkOpcode::kSendWithImmediate,
                                        WorkOpcode::kRdmaWrite,   WorkOpcode::kRdmaWriteWithImmediate,
                                        WorkOpcode::kRdmaRead,    WorkOpcode::kFetchAdd,
                                        WorkOpcode::kCompareSwap, WorkOpcode::kBindWindow};
    Expected item;
    item.seed = static_cast<unsigned>(items_.size() * 2 + (base_ == 0 ? 1 : 2));
    Work& work = item.work;
    work.opcode = kReliable[world_.draw(0, reliable_ ? 7 : 3)];
    work.flags = world_.chance(0.6) ? ipc::kWorkSignaled : 0;
    if (world_.chance(0.2)) work.flags |= ipc::kWorkFence;
    work.immediate = item.seed * 77;
    const std::uint64_t size = world_.draw(0, 9);
    item.length = static_cast<std::uint32_t>(size == 0  ? 0
                                             : size < 6 ? world_.draw(1, 600)
                                                        : world_.draw(1, kLargest));
    work.rkey = to_.region->key();
    const auto kind = transport::kind_of(work.opcode);
    if (kind == transport::RequestKind::kAtomic) {
        plan_atomic(item);
    } else if (kind == transport::RequestKind::kRead) {
        plan_read(item);
    } else if (kind == transport::RequestKind::kMessage) {
        plan_message(item);
    } else {
        item.length = 0;
        item.source = take(next_local_, 0);
        item.target = take(next_remote_, 0);
    }
    if (work.inline_data.empty() && item.length > 0) {  // one to three entries
        const auto cut = static_cast<std::uint32_t>(world_.draw(0, item.length));
        const std::uint64_t local = item.source;
        work.entries = {from_.entry(local, cut), from_.entry(local + cut, item.length - cut)};
        if (kind == transport::RequestKind::kAtomic) work.entries = {from_.entry(local, 8)};
    }
    item.takes_receive = transport::uses_receive(work.opcode);
    if (item.takes_receive) post_receive(item);
    from_.post(work);
    items_.push_back(std::move(item));
}

void Direction::post_receive(const Expected& item) {
    const bool send = item.work.opcode != WorkOpcode::kRdmaWriteWithImmediate;
    const std::uint32_t length = send ? item.length : 0;
    const auto cut = static_cast<std::uint32_t>(world_.draw(0, length));
    late_.push_back(
        {items_.size(), {to_.entry(item.target, cut), to_.entry(item.target + cut, length - cut)}, false});
    if (!posts_late_) trickle();
    receives_.push_back(items_.size());
}

void Direction::plan_message(Expected& item) {
    Work& work = item.work;
    item.source = take(next_local_, item.length);
    from_.fill(item.source, item.length, item.seed);
    item.in_shared =
        work.opcode == WorkOpcode::kRdmaWrite && item.length <= kSharedBytes && world_.chance(0.7);
    if (item.in_shared) {
        const std::uint64_t offset = world_.draw(0, kSharedBytes - item.length);
        item.target = base_ + 64 + offset;
        std::memcpy(shared_.data() + offset, from_.at(item.source), item.length);
    } else {
        item.target = take(next_remote_, item.length);
    }
    work.remote_address = Station::kBase + item.target;
    if (world_.chance(0.3) && item.length <= 700) {
        work.flags |= ipc::kWorkInline;
        work.inline_data.assign(from_.at(item.source), from_.at(item.source) + item.length);
    }
}

void Direction::plan_read(Expected& item) {
    item.source = take(next_local_, item.length);
    item.target = take(next_remote_, item.length);
    to_.fill(item.target, item.length, item.seed);
    item.work.remote_address = Station::kBase + item.target;
}

// All atomics of a direction work on one word; the model keeps its value.
void Direction::plan_atomic(Expected& item) {
    item.length = 8;
    item.source = take(next_local_, 8);
    item.target = base_;
    item.work.remote_address = Station::kBase + base_;
    item.atomic_before = word_;
    if (item.work.opcode == WorkOpcode::kFetchAdd) {
        item.work.compare_add = world_.draw(0, ~std::uint64_t{0});
        word_ += item.work.compare_add;
    } else {
        item.work.compare_add = world_.chance(0.5) ? word_ : word_ + 1;
        item.work.swap = world_.draw(0, ~std::uint64_t{0});
        if (item.work.compare_add == word_) word_ = item.work.swap;
    }
}

std::string Direction::check() {
    std::vector<std::uint32_t> signaled;
    for (std::uint32_t i = 0; i < items_.size(); ++i)
        if ((items_[i].work.flags & ipc::kWorkSignaled) != 0) signaled.push_back(i);
    if (from_.sends.size() != signaled.size())
        return "send completions: " + std::to_string(from_.sends.size()) + " of " +
               std::to_string(signaled.size());
    for (std::size_t i = 0; i < signaled.size(); ++i) {
        if (from_.sends[i].status != Status::kSuccess) return "send completion in error";
        if (from_.sends[i].wr_id != signaled[i]) return "send completions out of order";
    }
    if (from_.qp->send_consumed() != items_.size()) return "requests left in the send queue";
    if (std::string wrong = check_receives(); !wrong.empty()) return wrong;
    for (std::size_t i = 0; i < items_.size(); ++i) {
        const Expected& item = items_[i];
        const bool atomic = transport::kind_of(item.work.opcode) == transport::RequestKind::kAtomic;
        if (!guarded(from_, item.source - kGuard) || !guarded(from_, item.source + item.length) ||
            (!atomic && !item.in_shared &&
             (!guarded(to_, item.target - kGuard) || !guarded(to_, item.target + item.length))))
            return "guard bytes of request " + std::to_string(i) + " were changed";
        if (!reliable_ || item.work.opcode == WorkOpcode::kBindWindow) continue;
        if (std::string wrong = check_reliable_memory(item); !wrong.empty())
            return wrong + " of request " + std::to_string(i);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, to_.at(base_), sizeof word);
    if (reliable_ && std::memcmp(shared_.data(), to_.at(base_ + 64), kSharedBytes) != 0)
        return "the shared area is not as the last writes left it";
    return word == word_ ? "" : "the word of the atomics is wrong";
}

// Reliable: each once, in order. Unreliable: some, each whole and once.
std::string Direction::check_receives() {
    const auto& done = to_.receives;
    if (reliable_ && done.size() != receives_.size())
        return "receive completions: " + std::to_string(done.size()) + " of " +
               std::to_string(receives_.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < done.size(); ++i) {
        if (done[i].status != Status::kSuccess) return "receive completion in error";
        if (done[i].wr_id != receives_.at(i)) return "receives taken out of order";
        if (!reliable_) {
            if (!is_some_message(done[i], items_[receives_[i]].target))
                return "a message arrived that was not sent, or not whole, or arrived before";
            continue;
        }
        const Expected& item = items_[receives_[next++]];
        if (done[i].byte_len != item.length) return "wrong length received";
        const bool immediate = item.work.opcode != WorkOpcode::kSend;
        if (immediate != ((done[i].flags & ipc::kCqeImmediate) != 0)) return "immediate flag";
        if (immediate && done[i].immediate != item.work.immediate) return "wrong immediate";
    }
    return "";
}

// One of the messages that have not been matched yet. Delayed packets may let a later one overtake: UC takes
// any First or Only (C9-184).
bool Direction::is_some_message(const transport::Completion& completion, std::uint64_t at) {
    const bool send = completion.opcode == static_cast<std::uint8_t>(ipc::ReceiveOpcode::kReceive);
    const bool immediate = (completion.flags & ipc::kCqeImmediate) != 0;
    const auto is_it = [&](const Expected& item) {
        return item.takes_receive && !item.arrived && item.length == completion.byte_len &&
               send == (item.work.opcode != WorkOpcode::kRdmaWriteWithImmediate) &&
               immediate == (item.work.opcode != WorkOpcode::kSend) &&
               (!immediate || item.work.immediate == completion.immediate) &&
               to_.holds(send ? at : item.target, item.length, item.seed);
    };
    const auto found = std::find_if(items_.begin(), items_.end(), is_it);
    if (found == items_.end()) return false;
    found->arrived = true;
    return true;
}

std::string Direction::check_reliable_memory(const Expected& item) {
    switch (transport::kind_of(item.work.opcode)) {
        case transport::RequestKind::kAtomic: {
            std::uint64_t found = 0;
            std::memcpy(&found, from_.at(item.source), sizeof found);
            return found == item.atomic_before ? "" : "result";
        }
        case transport::RequestKind::kRead:
            return from_.holds(item.source, item.length, item.seed) ? "" : "bytes read";
        default:
            return item.in_shared || to_.holds(item.target, item.length, item.seed) ? "" : "bytes delivered";
    }
}

}  // namespace uib::simulation
