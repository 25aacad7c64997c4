// Reading a list of ranges in pieces of any size, for copies whose two sides are cut differently and whose
// calls take only so many ranges and bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/memory/address_space.h"

namespace uib::memory {

/// A place in a list of ranges (RemoteRange, ConstBytes). Empty ranges are passed over.
template <typename Range>
class RangeCursor {
  public:
    explicit RangeCursor(std::span<const Range> ranges) : ranges_(ranges) { pass_empty(); }

    [[nodiscard]] bool done() const { return index_ == ranges_.size(); }
    /// Bytes left of the current range.
    [[nodiscard]] std::uint64_t left() const { return ranges_[index_].length - used_; }
    [[nodiscard]] const Range& range() const { return ranges_[index_]; }
    [[nodiscard]] std::uint64_t used() const { return used_; }

    void advance(std::uint64_t bytes) {
        used_ += bytes;
        if (used_ == ranges_[index_].length) {
            ++index_;
            used_ = 0;
            pass_empty();
        }
    }

  private:
    void pass_empty() {
        while (index_ < ranges_.size() && ranges_[index_].length == 0) ++index_;
    }
    std::span<const Range> ranges_;
    std::size_t index_ = 0;
    std::uint64_t used_ = 0;
};

}  // namespace uib::memory
