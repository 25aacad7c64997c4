// Which multicast LIDs groups have, and how many groups each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/wire/packet.h"

namespace uib::management {

class MlidUses {
  public:
    void take(net::Lid mlid) { ++uses_[index_of(mlid)]; }
    void give_back(net::Lid mlid) {
        const std::size_t index = index_of(mlid);
        if (--uses_[index] == 0) first_free_ = std::min(first_free_, index);
    }
    void clear() {
        std::fill(uses_.begin(), uses_.end(), std::uint16_t{0});
        first_free_ = 0;
    }
    /// The lowest of the first `entries` that no group has; 0: there is none.
    [[nodiscard]] net::Lid lowest_free(std::size_t entries) {
        while (first_free_ < uses_.size() && uses_[first_free_] != 0) ++first_free_;
        return first_free_ < std::min(entries, uses_.size())
                   ? static_cast<net::Lid>(net::kMulticastLidFirst + first_free_)
                   : net::Lid{0};
    }

  private:
    static std::size_t index_of(net::Lid mlid) { return std::size_t{mlid} - net::kMulticastLidFirst; }

    std::vector<std::uint16_t> uses_ =
        std::vector<std::uint16_t>(net::kPermissiveLid - net::kMulticastLidFirst);
    std::size_t first_free_ = 0;  ///< none is free below
};

}  // namespace uib::management
