// Errors that no single packet shows (7.12.1): local link integrity and excessive buffer overrun.
#pragma once

#include "net/link/link_types.h"

namespace uib::net::link {

/// Rises by one for a packet with a local physical error and falls by one, not below zero, for one without.
class LocalLinkIntegrity {
  public:
    /// True if the error is detected: more than `threshold`. The count then starts anew.
    bool on_packet(bool local_physical_error, std::uint32_t threshold);
    [[nodiscard]] std::uint32_t count() const { return count_; }

  private:
    std::uint32_t count_ = 0;
};

/// Counts consecutive flow control update periods with an overrun in them.
class BufferOverruns {
  public:
    explicit BufferOverruns(Time period) : period_(period) {}
    /// A packet found no room. True if the error is detected: more than `threshold` periods. The count then
    /// starts anew.
    bool on_overrun(Time now, std::uint32_t threshold);

  private:
    Time period_;
    Time last_ = kNoDeadline;  ///< number of the last period with an overrun
    std::uint32_t run_ = 0;
};

}  // namespace uib::net::link
