#include "tests/simulation/words.h"

#include <cstring>
#include <unordered_map>

#include "tests/simulation/flow.h"

namespace uib::simulation {
namespace {

constexpr std::size_t kWordsOfAdapter = 3;

std::uint64_t value_at(const std::byte* from) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// What the operation leaves when it finds `value`.
std::uint64_t after(const Message& message, std::uint64_t value) {
    if (message.opcode == ipc::WorkOpcode::kFetchAdd) return value + message.operand;
    return value == message.operand ? message.swap : value;
}

}  // namespace

std::uint64_t Words::pick(Random& random, Adapter& adapter) {
    std::vector<std::uint64_t> known;
    for (const Word& word : words_)
        if (word.adapter == &adapter) known.push_back(word.at);
    if (known.size() == kWordsOfAdapter) return random.pick(known);
    words_.push_back({&adapter, adapter.allocate_word(), {}});
    return words_.back().at;
}

void Words::add(const Adapter& adapter, std::uint64_t at, Operation operation) {
    for (Word& word : words_)
        if (word.adapter == &adapter && word.at == at) word.operations.push_back(operation);
}

std::uint64_t Words::initial_value(const Adapter& adapter, std::uint64_t at) {
    return value_at(adapter.initial.data() + at);
}

std::string Words::check(const Adapter& adapter, Image& image) const {
    for (const Word& word : words_) {
        if (word.adapter != &adapter) continue;
        image.leave_open(Piece{word.at, sizeof(std::uint64_t)});
        if (std::string wrong = explain(word); !wrong.empty())
            return wrong + " (word at " + std::to_string(word.at) + ')';
    }
    return "";
}

// Operands are random, so no value comes twice: the values found form a chain from the first value to the
// last. Each value is changed once; operations that found it and did not change it lie in between.
std::string Words::explain(const Word& word) {
    std::unordered_map<std::uint64_t, Operation> changes;
    std::unordered_map<std::uint64_t, std::vector<Operation>> looks;
    bool certain = true;
    for (const Operation& operation : word.operations) {
        const Message& message = operation.flow->message(operation.index);
        const Flow::Fate fate = operation.flow->fate(operation.index);
        if (fate == Flow::Fate::kNever) continue;
        if (fate == Flow::Fate::kPerhaps) {
            certain = false;
            continue;
        }
        if (after(message, message.original) == message.original) {
            looks[message.original].push_back(operation);
        } else if (!changes.emplace(message.original, operation).second) {
            return "two atomics found one value";
        }
    }
    if (!certain) return "";
    std::uint64_t value = initial_value(*word.adapter, word.at);
    std::unordered_map<const Flow*, std::size_t> newest;
    const auto in_order = [&](const Operation& operation) {
        const auto [at, fresh] = newest.try_emplace(operation.flow, operation.index);
        if (!fresh && at->second >= operation.index) return false;
        at->second = operation.index;
        return true;
    };
    for (std::size_t steps = changes.size() + 1; steps > 0; --steps) {
        for (const Operation& look : looks[value])
            if (!in_order(look)) return "atomics of one queue pair out of order";
        looks.erase(value);
        const auto change = changes.find(value);
        if (change == changes.end()) break;
        if (!in_order(change->second)) return "atomics of one queue pair out of order";
        value = after(change->second.flow->message(change->second.index), value);
        changes.erase(change);
    }
    if (!changes.empty() || !looks.empty())
        return "an atomic found a value that no order of execution explains";
    return value == value_at(word.adapter->at(word.at)) ? "" : "the last value is not that of the atomics";
}

}  // namespace uib::simulation
