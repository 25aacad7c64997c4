// Mapped client memory that is lent out (Mover::gather) is also read by code that knows nothing of guards:
// checksums, the driver of a port. A FaultRange makes this safe: a fault inside it puts a page of zeros in
// place and marks the range, so the reader goes on with zeros and later accesses through the space fail.
//
// Ranges are kept in nodes that are never freed, only reused: the fault handler walks them without a lock.
#pragma once

#include <cstddef>

namespace uib::memory {

class FaultRange {
  public:
    /// `page` is the mapping's page size (larger for hugetlbfs).
    FaultRange(void* start, std::size_t length, std::size_t page);
    ~FaultRange();
    FaultRange(const FaultRange&) = delete;
    FaultRange& operator=(const FaultRange&) = delete;

    /// True once a page of the range was lost.
    [[nodiscard]] bool damaged() const;

    /// For the fault handler: async-signal-safe. True when `address` lies in a range and its page was
    /// replaced.
    static bool mend(void* address);

  private:
    struct Node;
    static Node* head();
    Node* node_;
};

}  // namespace uib::memory
