#include "examples/uib_verify/plan.h"

#include <algorithm>
#include <array>

#include "examples/kit/verbs.h"
#include "examples/uib_verify/pattern.h"

namespace uib::verify {

namespace {

constexpr std::array<Traits, kOperationCount> kTraits = {{
    {"SEND", Service::kReliable, true, true, false, false, false},
    {"SEND with immediate", Service::kReliable, true, true, true, false, false},
    {"SEND with invalidate", Service::kReliable, true, true, false, true, false},
    {"WRITE", Service::kReliable, false, false, false, false, false},
    {"WRITE with immediate", Service::kReliable, true, false, true, false, false},
    {"WRITE to a window", Service::kReliable, false, false, false, true, false},
    {"READ", Service::kReliable, false, false, false, false, false},
    {"compare-and-swap", Service::kReliable, false, false, false, false, true},
    {"fetch-and-add", Service::kReliable, false, false, false, false, true},
    {"UC SEND", Service::kUnreliable, true, true, false, false, false},
    {"UC SEND with immediate", Service::kUnreliable, true, true, true, false, false},
    {"UC WRITE", Service::kUnreliable, false, false, false, false, false},
    {"UC WRITE with immediate", Service::kUnreliable, true, false, true, false, false},
    {"UD SEND", Service::kDatagram, true, true, false, false, false},
    {"UD SEND with immediate", Service::kDatagram, true, true, true, false, false},
}};

/// Sizes at which implementations change their ways: inline limits, MTUs, pages, buffers.
constexpr std::uint64_t kCorners[] = {0,    1,    2,    4,    8,    63,    64,    65,    191,  192,  193,
                                      255,  256,  257,  511,  512,  513,   1023,  1024,  1025, 2047, 2048,
                                      2049, 4095, 4096, 4097, 8192, 16384, 65535, 65536, 65537};

}  // namespace

const Traits& traits_of(Operation operation) {
    return kTraits.at(static_cast<std::size_t>(operation));
}

Plan::Plan(const Options& options, const Limits& limits)
    : options_(options), limits_(limits), random_(options.seed) {
    for (std::uint32_t i = 0; i < kOperationCount; ++i) {
        const auto operation = static_cast<Operation>(i);
        const Traits& traits = traits_of(operation);
        if (traits.uses_window && !limits_.windows) continue;
        if (std::string(traits.name).find(options_.only) != std::string::npos)
            operations_.push_back(operation);
    }
    if (operations_.empty()) throw kit::Error("no operation is named " + options_.only);
}

std::uint64_t Plan::draw(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
}

std::uint64_t Plan::draw_size(const Traits& traits) {
    std::uint64_t most = options_.max_bytes;
    if (traits.service == Service::kDatagram) most = std::min<std::uint64_t>(most, limits_.datagram_bytes);
    if (draw(0, 2) == 0) return std::min(most, kCorners[draw(0, std::size(kCorners) - 1)]);
    // Every power of two is as likely as the next one.
    std::uint64_t top = 1;
    while (top <= most / 2 && draw(0, 9) != 0) top *= 2;
    return draw(0, std::min(most, top));
}

std::vector<Case> Plan::next_batch() {
    std::vector<Case> batch;
    for (std::uint32_t slot = 0; slot < limits_.in_flight; ++slot) {
        const Operation operation = operations_[draw(0, operations_.size() - 1)];
        const Traits& traits = traits_of(operation);
        batch.push_back(make_case(operation, traits.atomic ? 8 : draw_size(traits), slot));
    }
    return batch;
}

std::vector<Case> Plan::single(Operation operation, std::uint64_t bytes) {
    return {make_case(operation, bytes, 0)};
}

/// Cuts `bytes` into pieces in rising order with random gaps, then shuffles them: a list gathers and scatters
/// in its own order, not memory's.
void Plan::draw_pieces(Piece* pieces, std::uint32_t& count, std::uint64_t slot, std::uint64_t bytes,
                       bool one) {
    const std::uint64_t most = one ? 1 : std::min<std::uint64_t>({limits_.pieces, bytes, kMaxPieces});
    count = static_cast<std::uint32_t>(bytes == 0 ? 0 : draw(1, most));
    std::vector<std::uint64_t> cuts = {0, bytes};
    while (cuts.size() < count + 1) {
        const std::uint64_t cut = draw(1, bytes - 1);
        if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
    }
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::uint64_t> gaps;
    for (std::uint32_t i = 0; i < count; ++i) gaps.push_back(draw(0, limits_.slot_bytes - bytes));
    std::sort(gaps.begin(), gaps.end());
    for (std::uint32_t i = 0; i < count; ++i) pieces[i] = {slot + gaps[i] + cuts[i], cuts[i + 1] - cuts[i]};
    std::shuffle(pieces, pieces + count, random_);
}

void Plan::draw_operands(Case& one) {
    // The remote word is aligned; half of the comparisons are to succeed.
    one.target[0].offset = one.target_slot + draw(0, limits_.slot_bytes / 8 - 1) * 8;
    const std::uint64_t current = pattern_word(limits_.target_seed, one.target[0].offset / 8);
    one.compare = draw(0, 1) == 0 ? current : random_();
    one.operand = random_();
}

Case Plan::make_case(Operation operation, std::uint64_t bytes, std::uint32_t slot) {
    const Traits& traits = traits_of(operation);
    Case one{};
    one.operation = operation;
    one.queue_pair = static_cast<std::uint32_t>(draw(0, options_.queue_pairs - 1));
    one.bytes = bytes;
    one.slot_bytes = limits_.slot_bytes;
    one.initiator_slot = one.target_slot = slot * limits_.slot_bytes;
    one.immediate = static_cast<std::uint32_t>(random_());
    draw_pieces(one.initiator, one.initiator_count, one.initiator_slot, bytes, traits.atomic);
    std::uint64_t at_target = bytes;
    if (traits.fills_receive)
        at_target += std::min(draw(0, 300), limits_.slot_bytes - bytes);  // larger than the message
    draw_pieces(one.target, one.target_count, one.target_slot, at_target, !traits.fills_receive);
    if (traits.atomic) draw_operands(one);
    return one;
}

}  // namespace uib::verify
