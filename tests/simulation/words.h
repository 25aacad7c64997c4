// Words of memory that atomics of several queue pairs work on, and whether what the requesters were told can
// be explained by some order of execution in which each was executed once (linearisability).
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tests/simulation/adapter.h"

namespace uib::simulation {

class Flow;
class Image;

class Words {
  public:
    struct Operation {
        const Flow* flow;
        std::size_t index;  ///< of the message
    };
    /// A word of `adapter`, one of a few or a new one.
    std::uint64_t pick(Random& random, Adapter& adapter);
    void add(const Adapter& adapter, std::uint64_t at, Operation operation);
    /// The value that the word has at this moment, or had at first.
    static std::uint64_t initial_value(const Adapter& adapter, std::uint64_t at);
    /// Empty if all words of `adapter` can be explained; writes them into the image.
    std::string check(const Adapter& adapter, Image& image) const;

  private:
    struct Word {
        const Adapter* adapter;
        std::uint64_t at;
        std::vector<Operation> operations;
    };
    static std::string explain(const Word& word);

    std::deque<Word> words_;
};

}  // namespace uib::simulation
